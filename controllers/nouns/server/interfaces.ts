/** The flow of server.attach_network and server.detach_network. What the spec says is claimed in PostgreSQL first; what
 *  the guest gives up is released last. */
import { present } from '../../kit/operation/decision.ts'
import { refusalOf } from '../../kit/refusal.ts'
import { JOINED } from './conditions.ts'
import { type Decision, type OperationInput, unchanged } from './decision.ts'
import { ensureInstance, powerOf } from './drafts.ts'
import { networksToChange, stayingInterfaces } from './networks.ts'
import { hasObservedSpec } from './power/index.ts'
import { program } from './network-ports.ts'

const LOOK_SECONDS = 1

/** Steps in order: claimed, written for the host, attached or detached by the guest, programmed in the network. */
export function changeInterfaces(input: OperationInput): Decision {
  const isAttaching = input.operation.kind === 'server.attach_network'
  const {
    server,
    observed: { accountId, claims, storage, instance },
  } = input
  const decision: Decision = { ...unchanged(input), step: 'claimed' }
  if (accountId === undefined || claims === undefined || storage === undefined)
    return { ...decision, outcome: 'failed', error: 'The server has no room on any host.' }
  const { joining, leaving } = networksToChange(server, claims)
  if (joining.length > 0 || leaving.length > 0) {
    const refusal = refusalOf(server, JOINED)
    if (refusal !== undefined) return { ...decision, outcome: 'failed', error: refusal.message }
    return {
      ...decision,
      actions: [{ do: 'effect', name: 'join', input: { accountId, serverId: server.metadata.name, joining, leaving } }],
      waitFor: 'addresses in the network',
      waitSeconds: LOOK_SECONDS,
    }
  }
  const changed: Decision = { ...decision, step: isAttaching ? 'attached' : 'detached' }
  if (instance?.metadata.deletionTimestamp !== undefined)
    return { ...changed, waitFor: 'the instance before to be gone' }
  const actions =
    instance === undefined ? [] : present(ensureInstance(server, input.observed, claims, storage, powerOf(instance)))
  if (actions.length > 0 || (instance !== undefined && !hasObservedSpec(instance)))
    return { ...changed, actions, waitFor: 'the host to take over the interfaces' }
  const held = instance?.status?.interfaces
  if (held !== undefined && !stayingInterfaces(server, claims).every(({ id }) => held.includes(id)))
    return { ...changed, waitFor: 'the guest to take the interface', waitSeconds: LOOK_SECONDS }
  if (claims.interfaces?.some(({ isLeaving }) => isLeaving) === true)
    return { ...changed, waitFor: 'the guest to release the interface', waitSeconds: LOOK_SECONDS }
  return program(input).isInstalled
    ? { ...changed, step: 'applied', outcome: 'succeeded' }
    : { ...changed, step: 'applied', waitFor: 'the host to follow the network', waitSeconds: LOOK_SECONDS }
}
