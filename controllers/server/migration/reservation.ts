/** How every move begins and ends: room is held on another node and written down before anything is done with it, and
 *  what ended is never begun anew. */
import { RESERVED } from '../conditions.ts'
import { UNMADE } from '../../../domain/server-rules.ts'
import type { ServerAction } from '../actions.ts'
import { refusalOf } from '../../refusal.ts'
import { unchanged, type Decision, type OperationInput } from '../decision.ts'
import { serverIdOf } from '../observed.ts'
import { inState, type MigrationInput, reasonToAbort, recordedMigration } from './input.ts'
import { cleanUpSource } from './cutover.ts'
import { finishUndone } from './undo.ts'

/** Goes on with the flow once room is held for the operation's move. Guards in order: disk unknown, not whole, over,
 *  moved, refused, not held, not written. */
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
  if (recorded?.state === 'aborting') return finishUndone(input, recorded.detail)
  const reason = reasonToAbort(input) ?? refusal(input)
  return reason === undefined
    ? {
        ...unchanged(input),
        step: 'reserved',
        actions: [reserve(input)],
        waitFor: 'room on another node',
        waitSeconds: 1,
      }
    : finishUndone(input, reason)
}

/** What moves has a disk: who looks after its zone since a moment ago may know the server before it knows the disk. */
export const waitForStorage = (input: OperationInput): Decision => ({
  ...unchanged(input),
  step: input.server.status?.operation?.step ?? 'reserved',
  waitFor: 'the disk of the server to be known',
  waitSeconds: 1,
})

/** The input of the flow of a migration. The server must be whole. */
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

/** Asked once for each generation: a zone without room now is asked again by whoever wants the move. */
const refusal = ({ server }: OperationInput): string | undefined => refusalOf(server, RESERVED)?.message

function reserve({ server, observed, operation }: OperationInput): ServerAction {
  const { plan, storage } = observed
  const { target_node_id: node, target_zone: zone } = operation.arguments ?? {}
  const input = {
    ...serverIdOf(server, observed),
    operationId: operation.id,
    ...(plan?.cpuPool === undefined ? {} : { cpuPool: plan.cpuPool }),
    ...(node === undefined ? {} : { node }),
    // In another zone the disk is copied, wherever it lies.
    ...(zone !== undefined ? { zone } : storage?.status?.pool === undefined ? {} : { pool: storage.status.pool }),
  }
  return { do: 'effect', name: 'reserve', input }
}
