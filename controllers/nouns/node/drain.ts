/** Emptying a node, for node.drain and node.maintenance: the node is cordoned, the owners of its servers are notified,
 *  then each server is moved, a limited number at a time. Before the first move the drain checks that the zone has room
 *  for all. A node whose drain failed stays cordoned and keeps the servers that could not leave. */
import { isCancelled } from '../../../domain/operations.ts'
import { findUnplaceable } from '../../../domain/node/evacuation.ts'
import { activeOperation, hasBegun, isPastDeadline } from '../../kit/operation/stanza.ts'
import { isClosed } from './cordon.ts'
import type { Decision } from './decision.ts'
import { startServerOperation } from '../../kit/platform-operation.ts'
import type { TenantServer, OperationInput } from './observed.ts'

const DRAIN_MODES = ['live_only', 'live_then_cold'] as const
export type DrainMode = (typeof DRAIN_MODES)[number]
const PARALLEL_MOVES_DEFAULT = 2
const PARALLEL_MOVES_MAXIMUM = 32
/** Moves started per server and drain. */
export const MOVES_PER_SERVER_MAXIMUM = 3
const ACTOR = 'system:nodes'
const RECHECK_SECONDS = 5
const NAMED_MAXIMUM = 10
const HOUR_MILLISECONDS = 3_600_000

interface DrainRequest {
  readonly mode: DrainMode
  readonly parallelMaximum: number
  readonly plannedAt: Date
  readonly reason: string
}

function drainRequestOf({ operation: { arguments: args = {}, requestedAt } }: OperationInput): DrainRequest {
  const parallel = Number.parseInt(args['max_parallel'] ?? '', 10)
  const notifyHours = Number(args['notify_hours'] ?? 0)
  return {
    mode: DRAIN_MODES.find((mode) => mode === args['mode']) ?? 'live_only',
    parallelMaximum: Number.isNaN(parallel)
      ? PARALLEL_MOVES_DEFAULT
      : Math.min(Math.max(parallel, 1), PARALLEL_MOVES_MAXIMUM),
    plannedAt: new Date(Date.parse(requestedAt) + (notifyHours > 0 ? notifyHours * HOUR_MILLISECONDS : 0)),
    reason: args['reason'] ?? '',
  }
}

/** A drain that is not done at its deadline fails; moves under way continue. */
export function drain(input: OperationInput): Decision {
  const decision = decide(input)
  if (decision.outcome !== undefined || !isPastDeadline(input.operation, input.now)) return decision
  return finish(input, {
    step: decision.step ?? 'emptied',
    outcome: 'failed',
    error: `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`,
  })
}

/** Guards in order: cancelled, not cordoned yet, before the announced time, no room for all, empty. */
function decide(input: OperationInput): Decision {
  const { node, observed, now, operation } = input
  const request = drainRequestOf(input)
  if (isCancelled(operation) || !node.spec.isCordoned || node.spec.isInMaintenance !== true)
    return finish(input, { step: 'emptied', outcome: 'cancelled' })
  if (!isClosed(observed)) return { step: 'cordoned', waitFor: 'placement to leave the node out' }
  const status = {
    plannedWork: {
      operationId: operation.id,
      plannedAt: request.plannedAt.toISOString(),
      reason: request.reason,
      action: request.mode === 'live_only' ? 'live' : 'cold',
    },
  }
  if (now < request.plannedAt)
    return {
      step: 'announced',
      status,
      waitFor: 'the announced hour',
      waitSeconds: Math.ceil((request.plannedAt.getTime() - now.getTime()) / 1_000),
    }
  const leaving = observed.guests.filter(({ isArriving }) => !isArriving)
  const unplaceable = hasStartedMoves(input)
    ? []
    : findUnplaceable({ node: node.metadata.name, zone: node.spec.zone }, leaving, observed.zoneNodes)
  if (unplaceable.length > 0)
    return finish(input, {
      step: 'emptied',
      outcome: 'failed',
      error: `The zone has no room for ${joinNames(unplaceable)}.`,
    })
  if (observed.guests.length === 0 && observed.instanceCount === 0)
    return finish(input, { step: 'emptied', outcome: 'succeeded' }, true)
  const moving = moveServers(input, request, leaving)
  return moving.outcome === undefined ? { status, ...moving } : finish(input, moving)
}

/** Servers may have left already, so the drain is no longer refused for lack of room. */
const hasStartedMoves = ({ node, operation }: OperationInput): boolean =>
  hasBegun(node, operation) && node.status?.operation?.step === 'emptied'

/** Starts the moves of servers that can leave; fails when none can and none is moving. */
export function moveServers(
  input: OperationInput,
  { mode, parallelMaximum }: Pick<DrainRequest, 'mode' | 'parallelMaximum'>,
  leaving: readonly TenantServer[],
): Decision {
  const { node, operation } = input
  const migrating = leaving.filter((guest) => isMigrating(guest)).length
  const ready = leaving.filter((guest) => canStartMove(guest, operation.id))
  const stuck = leaving.filter((guest) => isIdle(guest) && !canStartMove(guest, operation.id))
  if (migrating === 0 && ready.length === 0 && stuck.length > 0 && stuck.length === leaving.length) {
    return {
      step: 'emptied',
      outcome: 'failed',
      error: `These servers could not leave: ${joinNames(stuck.map(withReason))}.`,
    }
  }
  const starting = ready.slice(0, Math.max(0, parallelMaximum - migrating))
  const starts = starting.map((guest) =>
    startServerOperation({
      namespace: guest.namespace,
      id: guest.serverId,
      kind: isRunning(guest) ? 'server.migrate' : 'server.move',
      actor: ACTOR,
      arguments: {
        ...(isRunning(guest) ? { mode: mode === 'live_only' ? 'live' : mode } : {}),
        node_operation_id: operation.id,
        node_operation_turn: String((startedMove(guest, operation.id)?.attempt ?? 0) + 1),
      },
    }),
  )
  return {
    step: 'emptied',
    actions: starts,
    waitFor: `${leaving.length} ${leaving.length === 1 ? 'server' : 'servers'} to leave ${node.metadata.name}`,
    waitSeconds: RECHECK_SECONDS,
    events: starting.map(({ serverId }) => ({
      kind: 'server_move_requested',
      message: `Server ${serverId} is to leave.`,
      data: { server_id: serverId },
    })),
  }
}

const withReason = ({ serverId, server }: TenantServer): string =>
  `${serverId} (${server?.status?.operation?.error || 'its state does not allow it'})`

const isRunning = ({ server }: TenantServer): boolean => server?.status?.state === 'started'
const isIdle = ({ server }: TenantServer): boolean =>
  server !== undefined && server.metadata.deletionTimestamp === undefined && activeOperation(server) === undefined
const isMigrating = ({ server }: TenantServer): boolean => {
  const kind = server === undefined ? undefined : activeOperation(server)?.kind
  return kind === 'server.migrate' || kind === 'server.move'
}

/** The newest move that this drain started; undefined when another operation came after it. */
function startedMove({ server }: TenantServer, operationId: string): { readonly attempt: number } | undefined {
  const args = server?.spec.operation?.arguments
  return args?.['node_operation_id'] === operationId ? { attempt: Number(args['node_operation_turn'] ?? 1) } : undefined
}

const canStartMove = (guest: TenantServer, operationId: string): boolean =>
  isIdle(guest) &&
  (guest.server?.status?.state === 'started' || guest.server?.status?.state === 'stopped') &&
  (startedMove(guest, operationId)?.attempt ?? 0) < MOVES_PER_SERVER_MAXIMUM

/** A node that was emptied stays in maintenance; any other is only cordoned. */
const finish = ({ node, observed }: OperationInput, decision: Decision, isEmpty = false): Decision => ({
  ...decision,
  actions: [{ do: 'change', patch: { spec: { isInMaintenance: isEmpty } } }],
  status: {
    isInMaintenance: isEmpty,
    plannedWork: undefined,
    ...(node.spec.isCordoned && isClosed(observed) ? { isCordoned: true } : {}),
  },
})

export const joinNames = (names: readonly string[]): string =>
  names.length <= NAMED_MAXIMUM
    ? names.join(', ')
    : `${names.slice(0, NAMED_MAXIMUM).join(', ')} and ${names.length - NAMED_MAXIMUM} more`
