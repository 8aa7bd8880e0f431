/** A server that no operation works on: its children follow its spec, and what its guest did by itself becomes its
 *  state. */
import type { Action } from '../../kit/reconcile/action.ts'
import type { ServerClaims } from '../../db/server/claims.ts'
import { adopt, SYSTEM_ACTOR } from './direct-edit.ts'
import { asBefore, type Decision, type Turn } from './decision.ts'
import { ensureInstance, type Power, powerOf, uidOf } from './drafts.ts'
import { canSettle, isFenced } from './migration/input.ts'
import { hasSeenSpec, present, userData } from './power/index.ts'
import { detailOfLost } from './recovery/index.ts'
import { removeInstances } from './removal.ts'
import { leftOfMove } from './migration/cutover.ts'
import type { InstanceObject, StorageObject } from './observed.ts'

const CRASH_WINDOW_MILLISECONDS = 10 * 60_000
const CRASH_RESTARTS_MAXIMUM = 3
const CRASHES_KEPT_MAXIMUM = 10

/** What a server that was made whole always has. */
interface Whole extends Turn {
  readonly claims: ServerClaims
  readonly storage: StorageObject
  readonly instance: InstanceObject
}

/** Guards in order: left in the middle of a move, never made whole, instance leaving or lost, spec ahead of the
 *  instance, host silent, guest. */
export function settled(turn: Turn): Decision {
  const { claims, storage, instance } = turn.seen
  if (claims?.target !== undefined) return leftMoving(turn)
  if (claims === undefined || storage === undefined) return asBefore(turn)
  if (instance === undefined)
    return turn.server.status?.state === 'error' ? asBefore(turn) : lost(turn, claims, storage)
  if (instance.metadata.deletionTimestamp !== undefined)
    return { ...asBefore(turn), waitFor: 'the instance before to be gone' }
  const follow = [
    ...removeInstances(turn.seen.strayInstances),
    ...userData(turn.server, turn.seen),
    ...present(
      ensureInstance(turn.server, turn.seen, claims, storage, {
        ...powerOf(instance),
        receive: undefined,
        send: undefined,
      }),
    ),
  ]
  if (follow.length > 0) return { ...asBefore(turn), actions: follow }
  if (!turn.seen.isHostReachable) return hostSilent(turn)
  const decision = guest({ ...turn, claims, storage, instance })
  return { ...decision, actions: [...leftOfMove(turn), ...(decision.actions ?? [])] }
}

/** An operation ended before it was known where the guest is. It is settled as soon as both nodes can be asked. */
function leftMoving(turn: Turn): Decision {
  if (canSettle(turn)) return { ...asBefore(turn), actions: [adopt(turn, 'server.settle_migration', SYSTEM_ACTOR)] }
  const { target, placement } = turn.seen.claims ?? {}
  return {
    state: 'error',
    detail:
      `The server was being moved from node ${placement?.node} to node ${target?.node}. It goes on when both ` +
      'answer.',
  }
}

/** Somebody removed the instance, and its guest with it: it is made again, and started when the server shall run. */
function lost(turn: Turn, claims: ServerClaims, storage: StorageObject): Decision {
  const { server, seen } = turn
  if (server.spec.desiredPower === 'running')
    return { ...asBefore(turn), state: 'starting', actions: [adopt(turn, 'server.start', SYSTEM_ACTOR)] }
  const power: Power = {
    power: 'stopped',
    incarnation: server.status?.incarnation ?? 0,
    operationId: server.spec.operation?.id ?? '',
  }
  return { ...asBefore(turn), actions: present(ensureInstance(server, seen, claims, storage, power)) }
}

function hostSilent(turn: Turn): Decision {
  const { server, seen } = turn
  const isOff = server.status?.state === 'stopped'
  if (!isOff && seen.claims !== undefined && isFenced(seen, seen.claims.placement.node))
    return { state: 'error', detail: detailOfLost(turn) }
  return server.status?.state === 'started'
    ? {
        state: 'error',
        detail: 'The host of the server does not answer. The server shows its state again when the host is back.',
      }
    : asBefore(turn)
}

function guest(whole: Whole): Decision {
  const { status, spec } = whole.instance
  if (status === undefined || !hasSeenSpec(whole.instance) || status.incarnation < spec.incarnation)
    return asBefore(whole)
  if (spec.power === 'stopped')
    return status.state === 'stopped' && whole.server.status?.state !== 'error'
      ? { ...asBefore(whole), state: 'stopped' }
      : asBefore(whole)
  if (status.state === 'running') return { state: 'started', ...startOf(whole, status.startedAt) }
  if (status.state === 'error') return { state: 'error', detail: status.detail ?? 'The host cannot run the guest.' }
  if (status.state !== 'stopped') return asBefore(whole)
  return status.endReason === 'guest_shutdown' ? shutDown(whole) : crashed(whole, status.endedAt ?? '')
}

/** When the guest was started; one that has come from another node was started there. */
const startOf = ({ server, instance }: Whole, startedAt: string | undefined): Pick<Decision, 'status'> =>
  startedAt === undefined ||
  (server.status?.startedAt !== undefined && server.status.incarnation === instance.spec.incarnation)
    ? {}
    : { status: { startedAt } }

/** The owner ended the guest from inside: it stays off, and the audit log says so. */
function shutDown(whole: Whole): Decision {
  const requestId = `${uidOf(whole.server)}/${whole.instance.spec.incarnation}`
  const audit: Action = {
    do: 'effect',
    name: 'audit',
    input: { action: 'server.guest_shutdown', actor: 'system:node', requestId },
  }
  return { state: 'stopped', detail: 'The guest shut itself down.', actions: [audit, ...staysOff(whole)] }
}

const staysOff = ({ server, seen, claims, storage, instance }: Whole): readonly Action[] => [
  { do: 'change', patch: { spec: { desiredPower: 'stopped' } } },
  ...present(ensureInstance(server, seen, claims, storage, { ...powerOf(instance), power: 'stopped' })),
]

/** A crash is written down first, by the instant at which the guest ended; the restart follows in the next turn, so
 *  that no crash is
 *  counted twice or forgotten. */
function crashed(whole: Whole, endedAt: string): Decision {
  const { server, now } = whole
  if (server.spec.haPolicy === 'none')
    return { state: 'stopped', detail: 'The guest crashed.', actions: staysOff(whole) }
  const known = server.status?.crashedAt ?? []
  if (known.includes(endedAt))
    return server.status?.state === 'error'
      ? asBefore(whole)
      : { ...asBefore(whole), state: 'starting', actions: [adopt(whole, 'server.start', SYSTEM_ACTOR)] }
  const crashedAt = [
    ...known.filter((at) => now.getTime() - Date.parse(at) < CRASH_WINDOW_MILLISECONDS),
    endedAt,
  ].slice(-CRASHES_KEPT_MAXIMUM)
  return crashedAt.length <= CRASH_RESTARTS_MAXIMUM
    ? { state: 'starting', detail: 'The guest crashed.', status: { crashedAt } }
    : {
        state: 'error',
        detail: `The guest crashed ${crashedAt.length} times in ten minutes. Start it when its trouble is over.`,
        status: { crashedAt },
      }
}
