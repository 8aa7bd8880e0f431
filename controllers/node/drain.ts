/** Emptying a node, for node.drain and node.maintenance: cordoned, announced to those whose servers are on it, then one
 *  move per server
 *  and only so many at a time. Whether everybody finds room elsewhere is asked before the first of them leaves. A node
 *  whose draining
 *  failed stays cordoned, with those on it who could not leave. */
import { isCancelled } from '../../domain/operations.ts'
import { findHomeless } from '../../domain/evacuation.ts'
import { activeStanza } from '../operation/stanza.ts'
import { isClosed } from './cordon.ts'
import type { Decision } from './decision.ts'
import { order } from './server-operation.ts'
import { type Guest, hasBegun, type Work } from './observed.ts'

const DRAIN_MODES = ['live_only', 'live_then_cold'] as const
export type DrainMode = (typeof DRAIN_MODES)[number]
const PARALLEL_MOVES_DEFAULT = 2
const PARALLEL_MOVES_MAXIMUM = 32
/** How often a server is asked to leave for one draining. */
export const MOVES_PER_SERVER_MAXIMUM = 3
const ACTOR = 'system:nodes'
const LOOK_SECONDS = 5
const NAMED_MAXIMUM = 10
const HOUR_MILLISECONDS = 3_600_000

interface Wish {
  readonly mode: DrainMode
  readonly parallelMaximum: number
  readonly plannedAt: Date
  readonly reason: string
}

function wishOf({ operation: { arguments: said = {}, requestedAt } }: Work): Wish {
  const parallel = Number.parseInt(said['max_parallel'] ?? '', 10)
  const notifyHours = Number(said['notify_hours'] ?? 0)
  return {
    mode: DRAIN_MODES.find((mode) => mode === said['mode']) ?? 'live_only',
    parallelMaximum: Number.isNaN(parallel)
      ? PARALLEL_MOVES_DEFAULT
      : Math.min(Math.max(parallel, 1), PARALLEL_MOVES_MAXIMUM),
    plannedAt: new Date(Date.parse(requestedAt) + (notifyHours > 0 ? notifyHours * HOUR_MILLISECONDS : 0)),
    reason: said['reason'] ?? '',
  }
}

/** What is not done at its deadline has failed; moves that are under way come to their own ends. */
export function drain(work: Work): Decision {
  const decision = decide(work)
  if (decision.outcome !== undefined || work.now.getTime() < Date.parse(work.operation.deadlineAt)) return decision
  return ended(work, {
    step: decision.step ?? 'emptied',
    outcome: 'failed',
    error: `It was not done in time: still waiting for ${decision.waitFor ?? 'the platform'}.`,
  })
}

/** Guards in order: taken back, not cordoned yet, announced hour not come, no room for all, empty. */
function decide(work: Work): Decision {
  const { node, seen, now, operation } = work
  const wish = wishOf(work)
  if (isCancelled(operation) || !node.spec.isCordoned || node.spec.isInMaintenance !== true)
    return ended(work, { step: 'emptied', outcome: 'cancelled' })
  if (!isClosed(seen)) return { step: 'cordoned', waitFor: 'placement to leave the node out' }
  const status = {
    plannedWork: {
      operationId: operation.id,
      plannedAt: wish.plannedAt.toISOString(),
      reason: wish.reason,
      action: wish.mode === 'live_only' ? 'live' : 'cold',
    },
  }
  if (now < wish.plannedAt)
    return {
      step: 'announced',
      status,
      waitFor: 'the announced hour',
      waitSeconds: Math.ceil((wish.plannedAt.getTime() - now.getTime()) / 1_000),
    }
  const leaving = seen.guests.filter(({ isArriving }) => !isArriving)
  const homeless = hasBegunToEmpty(work)
    ? []
    : findHomeless({ node: node.metadata.name, zone: node.spec.zone }, leaving, seen.zoneNodes)
  if (homeless.length > 0)
    return ended(work, { step: 'emptied', outcome: 'failed', error: `The zone has no room for ${listed(homeless)}.` })
  if (seen.guests.length === 0 && seen.instanceCount === 0)
    return ended(work, { step: 'emptied', outcome: 'succeeded' }, true)
  return { status, ...emptying(work, wish, leaving) }
}

/** Servers may have left: then it is too late to refuse for want of room. */
const hasBegunToEmpty = ({ node, operation }: Work): boolean =>
  hasBegun(node, operation) && node.status?.operation?.step === 'emptied'

function emptying(work: Work, { mode, parallelMaximum }: Wish, leaving: readonly Guest[]): Decision {
  const { node, operation } = work
  const moving = leaving.filter((guest) => isMoving(guest)).length
  const ready = leaving.filter((guest) => canBeAsked(guest, operation.id))
  const stuck = leaving.filter((guest) => isIdle(guest) && !canBeAsked(guest, operation.id))
  if (moving === 0 && ready.length === 0 && stuck.length > 0 && stuck.length === leaving.length) {
    return ended(work, {
      step: 'emptied',
      outcome: 'failed',
      error:
        'These servers could not leave: ' +
        `${listed(stuck.map(({ serverId, server }) => `${serverId} (${server?.status?.operation?.error || 'its state does not allow it'})`))}.`,
    })
  }
  const asked = ready.slice(0, Math.max(0, parallelMaximum - moving))
  const orders = asked.map((guest) =>
    order({
      namespace: guest.namespace,
      serverId: guest.serverId,
      kind: isRunning(guest) ? 'server.migrate' : 'server.move',
      actor: ACTOR,
      arguments: {
        ...(isRunning(guest) ? { mode: mode === 'live_only' ? 'live' : mode } : {}),
        node_operation_id: operation.id,
        node_operation_turn: String((moveOf(guest, operation.id)?.turn ?? 0) + 1),
      },
    }),
  )
  return {
    step: 'emptied',
    actions: orders,
    waitFor: `${leaving.length} ${leaving.length === 1 ? 'server' : 'servers'} to leave ${node.metadata.name}`,
    waitSeconds: LOOK_SECONDS,
    events: asked.map(({ serverId }) => ({
      kind: 'server_asked',
      message: `Server ${serverId} is asked to leave.`,
      data: { server_id: serverId },
    })),
  }
}

const isRunning = ({ server }: Guest): boolean => server?.status?.state === 'started'
const isIdle = ({ server }: Guest): boolean =>
  server !== undefined && server.metadata.deletionTimestamp === undefined && activeStanza(server) === undefined
const isMoving = ({ server }: Guest): boolean => {
  const kind = server === undefined ? undefined : activeStanza(server)?.kind
  return kind === 'server.migrate' || kind === 'server.move'
}

/** The newest move that this draining asked the server for; undefined when another operation came after it. */
function moveOf({ server }: Guest, operationId: string): { readonly turn: number } | undefined {
  const said = server?.spec.operation?.arguments
  return said?.['node_operation_id'] === operationId ? { turn: Number(said['node_operation_turn'] ?? 1) } : undefined
}

const canBeAsked = (guest: Guest, operationId: string): boolean =>
  isIdle(guest) &&
  (guest.server?.status?.state === 'started' || guest.server?.status?.state === 'stopped') &&
  (moveOf(guest, operationId)?.turn ?? 0) < MOVES_PER_SERVER_MAXIMUM

/** Held empty when it succeeded, as any cordoned node otherwise. */
const ended = ({ node, seen }: Work, decision: Decision, isEmpty = false): Decision => ({
  ...decision,
  actions: [{ do: 'change', patch: { spec: { isInMaintenance: isEmpty } } }],
  status: {
    isInMaintenance: isEmpty,
    plannedWork: undefined,
    ...(node.spec.isCordoned && isClosed(seen) ? { isCordoned: true } : {}),
  },
})

const listed = (names: readonly string[]): string =>
  names.length <= NAMED_MAXIMUM
    ? names.join(', ')
    : `${names.slice(0, NAMED_MAXIMUM).join(', ')} and ${names.length - NAMED_MAXIMUM} more`
