/** A move that was left in the middle, by an operation that ended at its deadline: what both nodes say decides. The
 *  guest runs on the
 *  target: the server lives there. Only on its source: it stays. On neither: it is started again where its disks are.
 *  On both cannot
 *  be; were it so, the source's would be ended, because the server lives on the target then. A silent node proves
 *  nothing. */
import { asBefore, type Decision, type Work } from '../decision.ts'
import { moveStopped, reasonAgainst } from './cold.ts'
import { inState, isLost, isMadeAnew, type Moving, sourceWord, targetWord, writtenMove } from './input.ts'
import { awaitArrival } from './handover.ts'
import { removeInstances } from '../removal.ts'
import { diskUnknown, movingTo } from './reservation.ts'
import { cleaned, switched } from './cutover.ts'
import { settledAs, undo } from './undo.ts'

/** The flow of server.settle_migration. */
export function settleMigration(work: Work): Decision {
  const { server, seen } = work
  const { claims, storage } = seen
  if (claims?.target !== undefined) return settle(work)
  if (claims === undefined || storage === undefined) return { ...asBefore(work), step: 'done', outcome: 'succeeded' }
  const written = server.status?.migration
  if (
    written !== undefined &&
    written.targetNode === claims.placement.node &&
    writtenMove(server, written.operationId) !== undefined
  )
    return asWanted(work, cleaned(work, written))
  return { ...asBefore(work), step: 'done', actions: removeInstances(seen.strayInstances), outcome: 'succeeded' }
}

const asWanted = (work: Work, decision: Decision): Decision =>
  decision.outcome === undefined ? decision : { ...decision, ...settledAs('target', work) }

/** Brings the move for which room is still held to its end. An operator may name the winner; the nodes' words go before
 *  it. Where they leave it
 *  open, because the server stands still, the source has it unless the target was named. */
export function settle(work: Work): Decision {
  const { claims: { target } = {}, storage } = work.seen
  if (target === undefined) return asBefore(work)
  if (storage === undefined) return diskUnknown(work)
  const moving = movingTo(work, target)
  if (targetWord(moving) === 'arrived' || isMadeAnew(moving)) return switched(moving)
  if (sourceWord(moving) === 'handed_over' && !isLost(moving)) return awaitArrival(moving)
  if (shallArrive(moving))
    return moving.written.state === 'detached'
      ? moveStopped(moving)
      : inState(moving, 'detached', { waitSeconds: 0, waitFor: 'the next look' })
  return undo(moving, 'The move was left in the middle.')
}

/** An operator wants the server there, and it runs nowhere: either end may have it. */
const shallArrive = (moving: Moving): boolean =>
  moving.operation.arguments?.['winner'] === 'target' &&
  ['ended', 'gone'].includes(sourceWord(moving)) &&
  reasonAgainst(moving) === undefined
