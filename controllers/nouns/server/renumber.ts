/** The flow of server.renumber_ipv6: the server gets another /64, and its host is configured with it. The previous one
 *  stays routed, and how the guest uses the new one is up to the guest, so the operation ends at once. Power is left as
 *  it is. */
import { refusalOf } from '../../kit/refusal.ts'
import { RENUMBERED } from './conditions.ts'
import { currentAddress } from './addresses.ts'
import { unchanged, type Decision, type OperationInput } from './decision.ts'
import { ensureInstance, powerOf } from './drafts.ts'
import { present } from '../../kit/operation/decision.ts'
import { hasObservedSpec } from './power/index.ts'

const LOOK_SECONDS = 1

/** Steps in order: routed, announced. */
export function renumberIpv6(input: OperationInput): Decision {
  const {
    server,
    observed: { accountId, claims, storage, instance },
  } = input
  const decision: Decision = { ...unchanged(input), step: 'routed' }
  const ipv6 = claims && currentAddress(claims, 'server_ipv6_prefix')
  if (accountId === undefined || claims === undefined || ipv6 === undefined)
    return { ...decision, outcome: 'failed', error: 'The server has no IPv6 prefix.' }
  if (ipv6.isDraining) {
    const refusal = refusalOf(server, RENUMBERED)
    if (refusal !== undefined) return { ...decision, outcome: 'failed', error: refusal.message }
    return {
      ...decision,
      actions: [
        {
          do: 'effect',
          name: 'renumber',
          input: { accountId, serverId: server.metadata.name, zone: claims.placement.zone },
        },
      ],
      waitFor: 'another prefix',
      waitSeconds: LOOK_SECONDS,
    }
  }
  const announced: Decision = { ...decision, step: 'announced' }
  if (storage === undefined || instance === undefined) return { ...announced, outcome: 'succeeded' }
  if (instance.metadata.deletionTimestamp !== undefined)
    return { ...announced, waitFor: 'the instance before to be gone' }
  const actions = present(ensureInstance(server, input.observed, claims, storage, powerOf(instance)))
  return actions.length === 0 && hasObservedSpec(instance)
    ? { ...announced, outcome: 'succeeded' }
    : { ...announced, actions, waitFor: 'the host to take over the prefix' }
}
