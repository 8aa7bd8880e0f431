/** A server without an operation under way: its children follow its spec, and what its guest did by itself becomes its
 *  state. */
import type { ServerAction } from './actions.ts'
import type { OperationKind } from '../../../domain/operations.ts'
import type { ServerClaims } from '../../../db/server/index.ts'
import { secondsToRetry, startFor, SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { currentAddress } from './addresses.ts'
import { unchanged, type Decision, type ReconcileInput } from './decision.ts'
import { ensureInstance, type Power, powerOf, uidOf, removeInstances } from './drafts.ts'
import { FORGOTTEN_DETAIL, isForgotten } from './claimed.ts'
import { forgotten } from './forgotten.ts'
import { canResolve, isFenced } from './migration/input.ts'
import { present } from '../../kit/operation/decision.ts'
import { hasObservedSpec, userData } from './power/index.ts'
import { lostHostDetail } from './recovery/index.ts'
import { interruptedCleanUp } from './migration/cutover.ts'
import type { InstanceObject, StorageObject } from './observed.ts'

const CRASH_WINDOW_MILLISECONDS = 10 * 60_000
const CRASH_RESTARTS_MAXIMUM = 3
const CRASHES_KEPT_MAXIMUM = 10

/** What a server has once its creation succeeded. */
interface ProvisionedInput extends ReconcileInput {
  readonly claims: ServerClaims
  readonly storage: StorageObject
  readonly instance: InstanceObject
}

/** Guards in order: claims lost, interrupted move, never completed, instance leaving or lost, spec ahead of the
 *  instance, host unreachable, guest. */
export function idle(input: ReconcileInput): Decision {
  const { claims, storage, instance } = input.observed
  if (isForgotten(input)) return forgotten(input)
  if (claims?.target !== undefined) return unresolvedMigration(input)
  if (claims === undefined || storage === undefined) return unchanged(input)
  if (instance === undefined)
    return input.server.status?.state === 'error' ? unchanged(input) : instanceRemoved(input, claims, storage)
  if (instance.metadata.deletionTimestamp !== undefined)
    return { ...unchanged(input), waitFor: 'the instance before to be gone' }
  const follow = [
    ...removeInstances(input.observed.strayInstances),
    ...userData(input.server, input.observed),
    ...present(
      ensureInstance(input.server, input.observed, claims, storage, {
        ...powerOf(instance),
        receive: undefined,
        send: undefined,
      }),
    ),
  ]
  if (follow.length > 0) return { ...unchanged(input), actions: follow }
  const before = withoutForgetting(input, instance)
  if (!input.observed.isHostReachable) return hostUnreachable(before)
  const renumberSeconds = secondsToRenumbering(input, claims)
  if (renumberSeconds === 0) return { ...unchanged(input), actions: [startBySystem(input, 'server.renumber_ipv6')] }
  const decision = guestState({ ...before, claims, storage, instance })
  return {
    ...decision,
    actions: [...interruptedCleanUp(input), ...(decision.actions ?? [])],
    ...(renumberSeconds === undefined ? {} : { waitFor: 'another prefix', waitSeconds: renumberSeconds }),
  }
}

/** The error of lost claims ends when they are back. It replaced the state before, which is what was ordered of the
 *  instance. */
function withoutForgetting(input: ReconcileInput, { spec }: InstanceObject): ReconcileInput {
  const { server } = input
  if (server.status?.state !== 'error' || server.status.stateDetail !== FORGOTTEN_DETAIL) return input
  const { stateDetail: _ended, ...status } = server.status
  const state = spec.power === 'running' ? 'started' : 'stopped'
  return { ...input, server: { ...server, status: { ...status, state } } }
}

/** Seconds until the platform requests another prefix for a machine that it runs itself, which nobody else can do;
 *  undefined while the prefix stays. */
function secondsToRenumbering({ server, now }: ReconcileInput, claims: ServerClaims): number | undefined {
  const isLeaving = currentAddress(claims, 'server_ipv6_prefix')?.isDraining === true
  if (server.spec.managedBy === undefined || !isLeaving) return undefined
  return server.status?.operation?.kind === 'server.renumber_ipv6' ? secondsToRetry(server, now) : 0
}

/** An operation ended before it was known where the guest is. The move is resolved as soon as both nodes report. */
function unresolvedMigration(input: ReconcileInput): Decision {
  if (canResolve(input)) return { ...unchanged(input), actions: [startBySystem(input, 'server.settle_migration')] }
  const { target, placement } = input.observed.claims ?? {}
  return {
    state: 'error',
    detail:
      `The server was being moved from node ${placement?.node} to node ${target?.node}. It goes on when both ` +
      'answer.',
  }
}

/** The instance was removed by hand, and its guest with it: it is created again, and started when the server should
 *  run. */
function instanceRemoved(input: ReconcileInput, claims: ServerClaims, storage: StorageObject): Decision {
  const { server, observed } = input
  if (server.spec.desiredPower === 'running')
    return { ...unchanged(input), state: 'starting', actions: [startBySystem(input, 'server.start')] }
  const power: Power = {
    power: 'stopped',
    incarnation: server.status?.incarnation ?? 0,
    operationId: server.spec.operation?.id ?? '',
  }
  return { ...unchanged(input), actions: present(ensureInstance(server, observed, claims, storage, power)) }
}

const startBySystem = ({ server, now }: ReconcileInput, kind: OperationKind): ServerAction =>
  startFor(server, { kind }, { actor: SYSTEM_ACTOR, now })

function hostUnreachable(input: ReconcileInput): Decision {
  const { server, observed } = input
  const isOff = server.status?.state === 'stopped'
  if (!isOff && observed.claims !== undefined && isFenced(observed, observed.claims.placement.node))
    return { state: 'error', detail: lostHostDetail(input) }
  return server.status?.state === 'started'
    ? {
        state: 'error',
        detail: 'The host of the server does not answer. The server shows its state again when the host is back.',
      }
    : unchanged(input)
}

const DISK_FULL_DETAIL =
  'The storage of the host is full. The guest is paused, and goes on where it was as soon as there is room.'

function guestState(whole: ProvisionedInput): Decision {
  const { status, spec } = whole.instance
  if (status === undefined || !hasObservedSpec(whole.instance) || status.incarnation < spec.incarnation)
    return unchanged(whole)
  if (spec.power === 'stopped')
    return status.state === 'stopped' && whole.server.status?.state !== 'error'
      ? { ...unchanged(whole), state: 'stopped' }
      : unchanged(whole)
  if (status.state === 'running' && status.isDiskFull === true) return { state: 'error', detail: DISK_FULL_DETAIL }
  if (status.state === 'running') return { state: 'started', ...startOf(whole, status.startedAt) }
  if (status.state === 'error') return { state: 'error', detail: status.detail ?? 'The host cannot run the guest.' }
  if (status.state !== 'stopped') return unchanged(whole)
  return status.endReason === 'guest_shutdown' ? shutDown(whole) : crashed(whole, status.endedAt ?? '')
}

/** When the guest was started; a guest that has migrated keeps the time from its first node. */
const startOf = ({ server, instance }: ProvisionedInput, startedAt: string | undefined): Pick<Decision, 'status'> =>
  startedAt === undefined ||
  (server.status?.startedAt !== undefined && server.status.incarnation === instance.spec.incarnation)
    ? {}
    : { status: { startedAt } }

/** The owner ended the guest from inside: it stays off, and the audit log records it. */
function shutDown(whole: ProvisionedInput): Decision {
  const requestId = `${uidOf(whole.server)}/${whole.instance.spec.incarnation}`
  const audit: ServerAction = {
    do: 'effect',
    name: 'audit',
    input: { action: 'server.guest_shutdown', actor: 'system:node', requestId },
  }
  return { state: 'stopped', detail: 'The guest shut itself down.', actions: [audit, ...keepStopped(whole)] }
}

const keepStopped = ({ server, observed, claims, storage, instance }: ProvisionedInput): readonly ServerAction[] => [
  { do: 'change', patch: { spec: { desiredPower: 'stopped' } } },
  ...present(ensureInstance(server, observed, claims, storage, { ...powerOf(instance), power: 'stopped' })),
]

/** A crash is recorded first, by the time at which the guest ended; the restart follows in the next reconcile, so that
 *  no crash is counted twice or lost. */
function crashed(whole: ProvisionedInput, endedAt: string): Decision {
  const { server, now } = whole
  if (server.spec.haPolicy === 'none')
    return { state: 'stopped', detail: 'The guest crashed.', actions: keepStopped(whole) }
  const known = server.status?.crashedAt ?? []
  if (known.includes(endedAt))
    return server.status?.state === 'error'
      ? unchanged(whole)
      : { ...unchanged(whole), state: 'starting', actions: [startBySystem(whole, 'server.start')] }
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
