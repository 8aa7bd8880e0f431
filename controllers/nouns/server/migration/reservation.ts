/** How every move starts and ends: capacity on another node is reserved and recorded before it is used, and a move that
 *  has ended never starts again. */
import { defined } from '../../../../domain/defined.ts'
import { RESERVED } from '../conditions.ts'
import { UNMADE } from '../../../../domain/server/rules.ts'
import type { ServerAction } from '../actions.ts'
import { present } from '../../../kit/operation/decision.ts'
import { refusalOf } from '../../../kit/refusal.ts'
import { isToSharedStorage } from '../../../kit/shared-pools.ts'
import { unchanged, type Decision, type OperationInput } from '../decision.ts'
import { serverIdOf } from '../observed.ts'
import { inState, type MigrationInput, reasonToAbort, recordedMigration } from './input.ts'
import { cleanUpSource } from './cutover.ts'
import { finishRollback } from './rollback.ts'

/** Runs the flow once capacity is reserved for the operation's move. Guards in order: disk not in the cache yet, server
 *  not provisioned, reservation not recorded, moved already, rolled back already, refused, not reserved. */
export function withReservation(input: OperationInput, flow: (input: MigrationInput) => Decision): Decision {
  const {
    server,
    observed: { claims, storage },
    operation,
  } = input
  const recorded = recordedMigration(server, operation.id)
  if (recorded !== undefined && storage === undefined) return waitForStorage(input)
  if (claims === undefined || storage === undefined)
    return { ...unchanged(input), step: 'reserved', outcome: 'failed', error: UNMADE }
  if (claims.target?.operationId === operation.id) {
    const migration = migrationInput(input, claims.target)
    return migration.recorded.state === 'reserved' && recorded?.targetNode !== migration.targetNode
      ? recordMigration(migration)
      : flow(migration)
  }
  if (recorded?.targetNode === claims.placement.node) return cleanUpSource(input, recorded)
  if (recorded?.state === 'aborting') return finishRollback(input, recorded.detail)
  const reason = reasonToAbort(input) ?? refusal(input)
  return reason === undefined
    ? {
        ...unchanged(input),
        step: 'reserved',
        actions: [reserve(input)],
        waitFor: 'room on another node',
        waitSeconds: 1,
      }
    : finishRollback(input, reason)
}

/** A server that moves has a disk; a process that has just taken over its zone may not have it in its cache yet. */
export const waitForStorage = (input: OperationInput): Decision => ({
  ...unchanged(input),
  waitFor: 'the disk of the server to be known',
  waitSeconds: 1,
})

/** The input of a migration's flow. Throws unless the server has placement and disk. */
export function migrationInput(
  input: OperationInput,
  target: NonNullable<MigrationInput['claims']['target']>,
): MigrationInput {
  const {
    server,
    observed: { claims, storage, instance: source, targetInstance },
  } = input
  if (claims === undefined || storage === undefined) throw new Error('a server that is not whole cannot move')
  const { operationId: migrationId, node: targetNode } = target
  const sourceNode = claims.placement.node
  const recorded = recordedMigration(server, migrationId)
  const fresh: MigrationInput['recorded'] = {
    operationId: migrationId,
    state: 'reserved',
    sourceNode,
    targetNode,
    phase: '',
    attempt: 1,
    iteration: 0,
    transferredBytes: 0,
    totalBytes: 0,
    dirtyBytesPerSecond: 0,
    downtimeMilliseconds: 0,
    detail: '',
  }
  return {
    ...input,
    claims,
    storage,
    migrationId,
    sourceNode,
    targetNode,
    source,
    target: targetInstance,
    recorded: recorded?.targetNode === targetNode ? recorded : fresh,
  }
}

const recordMigration = (input: MigrationInput): Decision =>
  inState(input, 'reserved', {
    events: [
      {
        kind: 'target_chosen',
        message: `The server goes to node ${input.targetNode}.`,
        data: { node_id: input.targetNode },
      },
    ],
    waitSeconds: 0,
    waitFor: 'the next look',
  })

/** A refusal holds for the generation: when the zone is full, the move has to be requested again later. */
const refusal = ({ server }: OperationInput): string | undefined => refusalOf(server, RESERVED)?.message

function reserve({ server, observed, operation }: OperationInput): ServerAction {
  const { plan, storage, dataDisks = [] } = observed
  const { target_node_id: node, target_zone: zone } = operation.arguments ?? {}
  const pools = [storage?.status?.pool, ...dataDisks.map(({ own }) => own?.spec.pool)].flatMap(present)
  const input = {
    ...serverIdOf(server, observed),
    operationId: operation.id,
    ...defined({ cpuPool: plan?.cpuPool, node }),
    // In another zone the disk is copied, whatever storage it is on.
    ...(zone !== undefined ? { zone } : { pools: [...new Set(pools)], isToShare: isToSharedStorage(operation) }),
  }
  return { do: 'effect', name: 'reserve', input }
}
