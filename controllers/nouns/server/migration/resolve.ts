/** Resolves a move whose operation ended before the move did. Both nodes' reports decide: if the guest runs on the
 *  target, the server belongs there; if only on the source, it stays; if on neither, it is started again on the source,
 *  where its disks are. It cannot run on both; if it did, the source's guest would be ended. An unreachable node proves
 *  nothing. */
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
import { outcomeOf, rollBack } from './rollback.ts'

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

/** Ends the move that still has a reservation. An operator may name the winner, but the nodes' reports take precedence.
 *  When they are inconclusive, because the server runs nowhere, the source wins unless the target was named. */
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
  return rollBack(migration, 'The move was left in the middle.')
}

/** An operator named the target, and the server runs nowhere, so either node may have it. */
const shouldResumeOnTarget = (input: MigrationInput): boolean =>
  input.operation.arguments?.['winner'] === 'target' &&
  ['ended', 'gone'].includes(sourceState(input)) &&
  reasonAgainst(input) === undefined
