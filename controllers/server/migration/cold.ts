/** The flow of server.move, and of server.migrate once its guest may be stopped for it: disks first, then the instance.
 *  The server is never
 *  made on the other node before it is gone from its own; what fails before it runs there goes back. */
import { Instance } from '../../../resources/instance/index.ts'
import type { Decision, Work } from '../decision.ts'
import { ensureInstance, instanceKey, powerOf } from '../drafts.ts'
import { shareKeys } from './effects.ts'
import { hasDiskThere, inState, isMadeAnew, isSilent, type Moving, reasonToEnd, shallRun } from './input.ts'
import { first, hasEnded, hasSeenSpec, nextIncarnation, present, type Rule, stopOf } from '../power/index.ts'
import { reserved } from './reservation.ts'
import { switched } from './cutover.ts'
import { removeTarget, undo } from './undo.ts'

/** `server.move`: the first rule that applies decides. */
export const move = (work: Work): Decision => reserved(work, moveStopped)

/** The move of a server that stands still, for which room is held. */
export const moveStopped = (moving: Moving): Decision => first(moving, RULES)

const arrived: Rule<Moving> = (moving) => (isMadeAnew(moving) ? switched(moving) : undefined)

const hopeless: Rule<Moving> = (moving) => {
  if (moving.written.state === 'aborting') return undo(moving, moving.written.detail)
  const reason = reasonAgainst(moving)
  return reason === undefined ? undefined : undo(moving, reason)
}

/** Why a server that stands still cannot go there. */
export function reasonAgainst(moving: Moving): string | undefined {
  const {
    source,
    target,
    seen: { targetVolume },
    seen,
    targetNode,
  } = moving
  const broken =
    target?.status?.state === 'error' && hasSeenSpec(target)
      ? (target.status.detail ?? 'The guest could not be started.')
      : undefined
  return (
    reasonToEnd(moving) ??
    broken ??
    (targetVolume?.status?.state === 'error'
      ? (targetVolume.status.detail ?? 'The disk could not be copied.')
      : undefined) ??
    (source !== undefined && isSilent(seen, targetNode) ? `Node ${targetNode} does not answer.` : undefined)
  )
}

const halted: Rule<Moving> = (moving) => {
  const { server, seen, claims, storage, source, operation, sourceNode, moveId } = moving
  if (source === undefined || (source.spec.power === 'stopped' && hasEnded(source))) return undefined
  if (operation.kind === 'server.move' && server.spec.desiredPower === 'running')
    return undo(moving, 'The server runs.')
  const power =
    source.spec.power === 'stopped'
      ? powerOf(source)
      : ({ ...powerOf(source), power: 'stopped', stop: { ...stopOf(operation), id: moveId }, send: undefined } as const)
  return inState(moving, 'detached', {
    ...stateOff(moving, 'stopping'),
    actions: present(ensureInstance(server, seen, claims, storage, power)),
    waitFor: isSilent(seen, sourceNode) ? `node ${sourceNode}` : 'the guest to end',
  })
}

/** A server that is moved stopped is never shown otherwise. */
const stateOff = (moving: Moving, state: 'stopping' | 'stopped' | 'starting'): Pick<Decision, 'state'> => ({
  state: shallRun(moving) ? state : 'stopped',
})

/** The disk is where the other node reaches it. The storage controller sees to that, as soon as the move is detached.
 */
const diskThere: Rule<Moving> = (moving) => {
  const {
    seen: { targetVolume },
    written: { state },
    source,
    targetNode,
  } = moving
  if (state === 'detached' && hasDiskThere(moving, 'copy') && targetVolume?.status?.state === 'ready') return undefined
  return inState(moving, 'detached', {
    ...stateOff(moving, 'stopped'),
    actions: source === undefined ? [] : [shareKeys(moving)],
    waitFor: `the disk to be on node ${targetNode}`,
  })
}

const gone: Rule<Moving> = (moving) => {
  const { server, source, target, sourceNode, targetNode } = moving
  if (target !== undefined && (target.metadata.deletionTimestamp !== undefined || target.spec.receive !== undefined)) {
    return inState(moving, 'detached', {
      ...stateOff(moving, 'stopped'),
      actions: removeTarget(moving),
      waitFor: `the instance before to be gone from node ${targetNode}`,
    })
  }
  if (source === undefined) return undefined
  const actions =
    source.metadata.deletionTimestamp === undefined
      ? [{ do: 'remove', type: Instance, key: instanceKey(server, sourceNode) } as const]
      : []
  return inState(moving, 'detached', {
    ...stateOff(moving, 'stopped'),
    actions,
    waitFor: `node ${sourceNode} to let go of the server`,
  })
}

const madeThere: Rule<Moving> = (moving) => {
  const { server, seen, claims, storage, target, targetNode, operation } = moving
  const isRunning = shallRun(moving)
  const power =
    target === undefined
      ? ({
          power: isRunning ? 'running' : 'stopped',
          incarnation: isRunning ? nextIncarnation(moving) : (server.status?.incarnation ?? 0),
          operationId: operation.id,
        } as const)
      : powerOf(target)
  return inState(moving, 'detached', {
    ...stateOff(moving, 'starting'),
    step: 'moved',
    actions: present(ensureInstance(server, seen, claims, storage, power, { node: targetNode, instance: target })),
    waitFor: isRunning ? 'the guest to start' : `node ${targetNode} to take the server over`,
  })
}

const RULES: readonly Rule<Moving>[] = [arrived, hopeless, halted, diskThere, gone, madeThere]
