/** The flow of server.metadata: the host is configured whether the metadata service answers the guest. The guest itself
 *  is left alone. */
import { unchanged, type Decision, type OperationInput } from './decision.ts'
import { ensureInstance, powerOf } from './drafts.ts'
import { present } from '../../kit/operation/decision.ts'
import { hasObservedSpec } from './power/index.ts'

/** Done when the host has observed it. A server without an instance has no host to configure: the next instance is
 *  created with the setting. */
export function updateMetadata(input: OperationInput): Decision {
  const {
    server,
    observed: { claims, storage, instance },
  } = input
  const decision: Decision = { ...unchanged(input), step: 'done' }
  if (claims === undefined || storage === undefined || instance === undefined)
    return { ...decision, outcome: 'succeeded' }
  if (instance.metadata.deletionTimestamp !== undefined)
    return { ...decision, waitFor: 'the instance before to be gone' }
  const actions = present(ensureInstance(server, input.observed, claims, storage, powerOf(instance)))
  return actions.length === 0 && hasObservedSpec(instance)
    ? { ...decision, outcome: 'succeeded' }
    : { ...decision, actions, waitFor: 'the host to take over the setting' }
}
