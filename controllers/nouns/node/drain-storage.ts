/** Emptying the disks of a node, for storage.drain_host. The node is cordoned, so that nothing new arrives. Its servers
 *  leave with their storages as in a drain; each storage without a server is moved by its own operation, a limited
 *  number at a time. A node whose drain failed stays cordoned and keeps what could not leave. */
import { isCancelled } from '../../../domain/operations.ts'
import { activeOperation, isPastDeadline } from '../../kit/operation/stanza.ts'
import { isClosed } from './cordon.ts'
import type { Decision } from './decision.ts'
import { joinNames, MOVES_PER_SERVER_MAXIMUM, moveServers } from './drain.ts'
import type { OperationInput, TenantStorage } from './observed.ts'

const PARALLEL_MOVES = 2
const MOVES_PER_STORAGE_MAXIMUM = MOVES_PER_SERVER_MAXIMUM
const ACTOR = 'system:nodes'
const RECHECK_SECONDS = 5

/** A drain that is not done at its deadline fails; moves under way continue. */
export function drainStorage(input: OperationInput): Decision {
  const decision = decide(input)
  const { operation, now, node } = input
  const isOver = decision.outcome === undefined && isPastDeadline(operation, now)
  const ended: Decision = isOver
    ? {
        step: decision.step ?? 'emptied',
        outcome: 'failed',
        error: `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`,
      }
    : decision
  return ended.outcome === undefined || !node.spec.isCordoned || !isClosed(input.observed)
    ? ended
    : { ...ended, status: { ...ended.status, isCordoned: true } }
}

/** Guards in order: cancelled, not cordoned yet, empty, nothing more that could leave. */
function decide(input: OperationInput): Decision {
  const { node, observed, operation } = input
  if (isCancelled(operation) || !node.spec.isCordoned) return { step: 'emptied', outcome: 'cancelled' }
  if (!isClosed(observed)) return { step: 'cordoned', waitFor: 'placement to leave the node out' }
  const { guests, storages, volumeCount } = observed
  if (guests.length === 0 && storages.length === 0)
    return volumeCount === 0
      ? { step: 'emptied', outcome: 'succeeded' }
      : { step: 'emptied', waitFor: 'the host to remove what has left', waitSeconds: RECHECK_SECONDS }
  const leaving = guests.filter(({ isArriving }) => !isArriving)
  const moves = [
    ...(leaving.length === 0
      ? []
      : [moveServers(input, { mode: 'live_only', parallelMaximum: PARALLEL_MOVES }, leaving)]),
    ...(storages.length === 0 ? [] : [moveStorages(input)]),
  ]
  const errors = moves.flatMap(({ error = [] }) => error)
  if (errors.length > 0 && errors.length === moves.length)
    return { step: 'emptied', outcome: 'failed', error: errors.join(' ') }
  return {
    step: 'emptied',
    actions: moves.flatMap(({ actions = [] }) => actions),
    events: moves.flatMap(({ events = [] }) => events),
    waitFor:
      `${counted(guests.length, 'server')} and ${counted(storages.length, 'storage')} to leave ` + node.metadata.name,
    waitSeconds: RECHECK_SECONDS,
  }
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Starts the moves of storages that can leave; fails when none can and none is moving. */
function moveStorages({ node, observed, operation }: OperationInput): Decision {
  const leaving = observed.storages.filter(({ isArriving }) => !isArriving)
  const moving = leaving.filter(({ storage }) => storage !== undefined && activeOperation(storage) !== undefined)
  const idle = leaving.filter(({ storage }) => storage !== undefined && activeOperation(storage) === undefined)
  const ready = idle.filter((one) => canStartMove(one, operation.id))
  const stuck = idle.filter((one) => !canStartMove(one, operation.id))
  if (moving.length === 0 && ready.length === 0 && stuck.length > 0)
    return {
      step: 'emptied',
      outcome: 'failed',
      error: `These storages could not leave: ${joinNames(stuck.map(withReason))}.`,
    }
  const starting = ready.slice(0, Math.max(0, PARALLEL_MOVES - moving.length))
  return {
    actions: starting.map((one) => ({
      do: 'effect',
      name: 'orderStorage',
      input: {
        namespace: one.namespace,
        id: one.storageId,
        kind: 'storage.move',
        actor: ACTOR,
        arguments: {
          source_node_id: node.metadata.name,
          node_operation_id: operation.id,
          node_operation_turn: String(startedMoves(one, operation.id) + 1),
        },
      },
    })),
    events: starting.map(({ storageId }) => ({
      kind: 'storage_asked',
      message: `Storage ${storageId} is to leave; ${counted(leaving.length, 'storage')} left.`,
      data: { storage_id: storageId, storages_left: leaving.length },
    })),
  }
}

/** How often this drain has started to move it; 0 when another operation followed. */
function startedMoves({ storage }: TenantStorage, operationId: string): number {
  const parameters = storage?.spec.operation?.arguments
  return parameters?.['node_operation_id'] === operationId ? Number(parameters['node_operation_turn'] ?? 1) : 0
}

const canStartMove = (one: TenantStorage, operationId: string): boolean =>
  one.storage?.metadata.deletionTimestamp === undefined &&
  one.storage?.status?.state === 'online' &&
  startedMoves(one, operationId) < MOVES_PER_STORAGE_MAXIMUM

const withReason = ({ storageId, storage }: TenantStorage): string =>
  `${storageId} (${storage?.status?.operation?.error || 'its state does not allow it'})`
