/** A move that was left in the middle, by an operation that ended at its deadline: what both nodes say decides. The
 *  guest runs on the target: the server lives there. Only on its source: it stays. On neither: it is started again
 *  where its disks are. On both cannot be; were it so, the source's would be ended, because the server lives on the
 *  target then. A silent node proves nothing. */
import { removeInstances } from '../drafts.ts'
import { unchanged, type Decision, type OperationInput } from '../decision.ts'
import { transferStopped, reasonAgainst } from './cold.ts'
import {
  inState,
  isGuestLost,
  isRunningOnTarget,
  type MigrationInput,
  sourceState,
  targetState,
  recordedMigration,
} from './input.ts'
import { awaitArrival } from './handover.ts'
import { waitForStorage, migrationInput } from './reservation.ts'
import { cleanUpSource, cutOver } from './cutover.ts'
import { outcomeOf, undo } from './undo.ts'

/** The flow of server.settle_migration. */
export function resolveMigration(input: OperationInput): Decision {
  const { server, observed } = input
  const { claims, storage } = observed
  if (claims?.target !== undefined) return resolve(input)
  if (claims === undefined || storage === undefined) return { ...unchanged(input), step: 'done', outcome: 'succeeded' }
  const recorded = server.status?.migration
  if (
    recorded !== undefined &&
    recorded.targetNode === claims.placement.node &&
    recordedMigration(server, recorded.operationId) !== undefined
  )
    return asRequested(input, cleanUpSource(input, recorded))
  return { ...unchanged(input), step: 'done', actions: removeInstances(observed.strayInstances), outcome: 'succeeded' }
}

const asRequested = (input: OperationInput, decision: Decision): Decision =>
  decision.outcome === undefined ? decision : { ...decision, ...outcomeOf('target', input) }

/** Brings the move for which room is still held to its end. An operator may name the winner; the nodes' words go before
 *  it. Where they leave it open, because the server stands still, the source has it unless the target was named. */
export function resolve(input: OperationInput): Decision {
  const { claims: { target } = {}, storage } = input.observed
  if (target === undefined) return unchanged(input)
  if (storage === undefined) return waitForStorage(input)
  const migration = migrationInput(input, target)
  if (targetState(migration) === 'arrived' || isRunningOnTarget(migration)) return cutOver(migration)
  if (sourceState(migration) === 'handed_over' && !isGuestLost(migration)) return awaitArrival(migration)
  if (shouldResumeOnTarget(migration))
    return migration.recorded.state === 'detached'
      ? transferStopped(migration)
      : inState(migration, 'detached', { waitSeconds: 0, waitFor: 'the next look' })
  return undo(migration, 'The move was left in the middle.')
}

/** An operator wants the server there, and it runs nowhere: either end may have it. */
const shouldResumeOnTarget = (input: MigrationInput): boolean =>
  input.operation.arguments?.['winner'] === 'target' &&
  ['ended', 'gone'].includes(sourceState(input)) &&
  reasonAgainst(input) === undefined
