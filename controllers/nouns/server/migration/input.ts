/** What every flow that moves a server to another node reads: source and target of the move, and what each reports
 *  about the guest. Only an agent's report counts as evidence, never its absence. Pure. */
import { defined } from '../../../../domain/defined.ts'
import {
  gibibytesOf,
  MIGRATION_MODES,
  MIGRATION_POLICIES,
  type MigrationMode,
  type MigrationPolicy,
} from '../../../../domain/server/migration-policies.ts'
import { isCancelled } from '../../../../domain/operations.ts'
import type { ServerClaims } from '../../../../db/server/index.ts'
import type { InstanceStatus } from '../../../../resources/instance/index.ts'
import type { MigrationProgress } from '../../../../resources/server/index.ts'
import type { MigrationState } from '../../../../resources/operation/index.ts'
import { type Decision, type OperationInput, type ReconcileInput, unchanged } from '../decision.ts'
import { madeFor, uidOf } from '../drafts.ts'
import { hasEnded, hasObservedSpec, hasStarted } from '../power/index.ts'
import type { InstanceObject, Observed, ServerObject, StorageObject, VolumeObject } from '../observed.ts'

/** The input of a server for which the move `migrationId` has reserved capacity on another node. */
export interface MigrationInput extends OperationInput {
  readonly claims: ServerClaims
  readonly storage: StorageObject
  /** The operation that started the move; differs from the current one when that resolves an earlier move. */
  readonly migrationId: string
  readonly sourceNode: string
  readonly targetNode: string
  readonly source: InstanceObject | undefined
  readonly target: InstanceObject | undefined
  /** The move as the server's status recorded it before. */
  readonly recorded: MigrationProgress
}

/** The move as recorded in the server's status; undefined before it is. */
export function recordedMigration({ status }: ServerObject, migrationId: string): MigrationProgress | undefined {
  return status?.migration?.operationId === migrationId ? status.migration : undefined
}

export type SourceState =
  /** The guest continues here, whatever becomes of the move. */
  | 'stays'
  /** It is being sent, or may be at any moment. */
  | 'sending'
  /** It no longer runs: it was sent completely, or ended while it was sent. */
  | 'handed_over'
  /** It ended by itself, or its node was fenced. */
  | 'ended'
  /** There is no instance. */
  | 'gone'

/** The last report of the source node. The guest of a fenced node counts as ended. */
export function sourceState({
  source,
  sourceNode,
  migrationId,
  observed,
}: Pick<MigrationInput, 'source' | 'sourceNode' | 'migrationId' | 'observed'>): SourceState {
  if (source === undefined) return 'gone'
  const { status, spec } = source
  const send = spec.send?.id === migrationId ? spec.send : undefined
  const transfer = transferOf(status, 'send', migrationId)
  if (status?.state === 'handed_over' || transfer?.phase === 'completed') return 'handed_over'
  if (isFenced(observed, sourceNode) || hasEnded(source)) return 'ended'
  return send === undefined || (transfer?.phase === 'failed' && transfer.attempt === send.attempt) ? 'stays' : 'sending'
}

export type TargetState =
  /** The guest is here, or was here and has ended since. */
  | 'arrived'
  | 'preparing'
  /** It waits for the guest, and has reported its address. */
  | 'listening'
  | 'failed'
  /** The instance belongs to another move, or is being deleted. */
  | 'stale'
  | 'gone'

/** The last report of the target node on the attempt that it was last ordered to make. */
export function targetState({
  target,
  targetNode,
  migrationId,
  observed,
}: Pick<MigrationInput, 'target' | 'targetNode' | 'migrationId' | 'observed'>): TargetState {
  if (target === undefined || isFenced(observed, targetNode)) return 'gone'
  const {
    metadata,
    spec: { receive, incarnation },
    status,
  } = target
  const transfer = transferOf(status, 'receive', migrationId)
  if (
    receive?.id === migrationId &&
    (transfer?.phase === 'completed' || (status?.state === 'running' && status.incarnation >= incarnation))
  )
    return 'arrived'
  if (metadata.deletionTimestamp !== undefined || receive?.id !== migrationId) return 'stale'
  if (transfer === undefined || transfer.attempt !== receive.attempt) return 'preparing'
  return transfer.phase === 'failed'
    ? 'failed'
    : transfer.phase === 'transferring' && transfer.port !== undefined
      ? 'listening'
      : 'preparing'
}

/** For a guest that was handed over: whether its receiver has reported that it never arrived. A receiver that waits for
 *  a later attempt has discarded this one. */
export function isGuestLost(
  input: Pick<MigrationInput, 'source' | 'target' | 'targetNode' | 'migrationId' | 'observed'>,
): boolean {
  const receiverState = targetState(input)
  if (receiverState !== 'preparing' && receiverState !== 'listening') return receiverState !== 'arrived'
  const transfer = transferOf(input.target?.status, 'receive', input.migrationId)
  return transfer !== undefined && transfer.attempt > sentAttempt(input)
}

/** The newest attempt that the sender was ordered to make; 0 before the first. */
export const sentAttempt = ({ source, migrationId }: Pick<MigrationInput, 'source' | 'migrationId'>): number =>
  source?.spec.send?.id === migrationId ? source.spec.send.attempt : 0

/** A stopped server's move is complete: it runs on the target, or the target has taken it over stopped. */
export function isRunningOnTarget({ target, source, migrationId, operation }: MigrationInput): boolean {
  if (
    source !== undefined ||
    target === undefined ||
    ![migrationId, operation.id].includes(madeFor(target)) ||
    target.spec.receive !== undefined
  )
    return false
  return target.spec.power === 'running'
    ? hasStarted(target)
    : hasObservedSpec(target) && target.status?.state === 'stopped'
}

const transferOf = (status: InstanceStatus | undefined, role: 'send' | 'receive', id: string) =>
  status?.transfer?.role === role && status.transfer.id === id ? status.transfer : undefined

/** Whether the state of the node is unknown. */
export const isUnreachable = (observed: Observed, node: string): boolean =>
  observed.unreachableNodes?.includes(node) ?? false
/** It was proven that no guest runs on the node. */
export const isFenced = (observed: Observed, node: string): boolean => observed.fencedNodes?.includes(node) ?? false

/** Whether both nodes are fenced or reachable, so that the platform can resolve an interrupted move by itself. */
export function canResolve({ observed }: ReconcileInput): boolean {
  const { claims } = observed
  if (claims?.target === undefined) return false
  return [claims.placement.node, claims.target.node].every(
    (node) => isFenced(observed, node) || !isUnreachable(observed, node),
  )
}

/** What the server's owner accepts as the cost of a move. */
export const policyOf = ({ spec }: ServerObject): MigrationPolicy => MIGRATION_POLICIES[spec.migrationPolicy]

/** Whether the guest runs after the move. During a change of plan the server stays stopped until it has the new one. */
export const shouldRun = ({ server, operation }: OperationInput): boolean =>
  server.spec.desiredPower === 'running' && operation.kind !== 'server.change_plan'

/** The requested mode of the move; by default that of the server's policy. */
export function modeOf({ server, operation }: Pick<OperationInput, 'server' | 'operation'>): MigrationMode {
  const mode = MIGRATION_MODES.find((known) => known === operation.arguments?.['mode'])
  return mode ?? (policyOf(server).isColdAllowed ? 'live_then_cold' : 'live')
}

/** Its disks, the boot disk first: the shared storage of each, and its volume on the target. */
const disksOf = ({ storage, observed }: Pick<MigrationInput, 'storage' | 'observed'>) => [
  { volume: uidOf(storage), pool: storage.status?.pool, target: observed.targetVolume },
  ...(observed.dataDisks ?? []).map(({ volume, own, target }) => ({ volume, pool: own?.spec.pool, target })),
]

/** The volumes that exist on the target. */
export const targetVolumesOf = (input: Pick<MigrationInput, 'storage' | 'observed'>): readonly VolumeObject[] =>
  disksOf(input).flatMap(({ target }) => target ?? [])

/** Whether the target's disks were created for this move. What an earlier move left there, or what is being deleted,
 *  would be removed while the guest uses it. */
export const hasTargetDisks = (input: MigrationInput, kind: 'mirror' | 'copy'): boolean =>
  disksOf(input).every((disk) => {
    if (disk.target === undefined || disk.target.metadata.deletionTimestamp !== undefined) return false
    const { pool, source, arrivingFor } = disk.target.spec
    const isShared = pool !== undefined && pool === disk.pool && source === undefined
    return (
      (isShared && arrivingFor === input.migrationId) || (source?.kind === kind && source.name === input.migrationId)
    )
  })

/** Disks that are mirrored to the target, because it cannot access them on the source, or because they must move to
 *  other storage. */
export const mirroredVolumes = (input: Pick<MigrationInput, 'storage' | 'observed'>): string[] =>
  disksOf(input)
    .filter(({ pool, target }) => pool === undefined || target?.spec.source?.kind === 'mirror')
    .map(({ volume }) => volume)

/** A move is aborted this long before its deadline, so that the rollback is done in time. */
const ROLLBACK_SECONDS = 120

/** A reason to abort that does not depend on the nodes: cancellation or the deadline. */
export function reasonToAbort({ operation, now }: OperationInput): string | undefined {
  if (isCancelled(operation)) return 'It was cancelled.'
  return now.getTime() >= Date.parse(operation.deadlineAt) - ROLLBACK_SECONDS * 1_000
    ? 'It was not done in time.'
    : undefined
}

/** Seconds until the move is aborted; undefined after that. */
const secondsToEnd = ({ operation, now }: OperationInput): number | undefined => {
  const seconds = (Date.parse(operation.deadlineAt) - now.getTime()) / 1_000 - ROLLBACK_SECONDS
  return seconds > 0 ? seconds : undefined
}

/** Memory and mirrored disks, in GiB. */
export const gibibytesToSend = (input: MigrationInput): number => {
  const { memoryMebibytes, storageGibibytes } = input.claims.placement
  const data = (input.observed.dataDisks ?? []).reduce(
    (sum, { own }) => sum + (own?.spec.pool === undefined ? (own?.spec.sizeGibibytes ?? 0) : 0),
    input.storage.status?.pool === undefined ? storageGibibytes : 0,
  )
  return gibibytesOf({ memoryMebibytes, ...(data > 0 ? { storageGibibytes: data } : {}) })
}

/** Minimum interval between two writes that change only figures. */
const REPORT_MILLISECONDS = 1_000

/** What the server's status records of the move; figures alone change it at most once a second. */
export function progressOf(input: MigrationInput, state: MigrationState, detail = ''): MigrationProgress {
  const { source, target, migrationId, sourceNode, targetNode, claims, recorded } = input
  const [sent, received] = [
    transferOf(source?.status, 'send', migrationId),
    transferOf(target?.status, 'receive', migrationId),
  ]
  const reported = sent !== undefined && sent.attempt >= (received?.attempt ?? 0) ? sent : received
  const attempt = Math.max(
    recorded.attempt,
    source?.spec.send?.id === migrationId ? source.spec.send.attempt : 1,
    target?.spec.receive?.id === migrationId ? target.spec.receive.attempt : 1,
  )
  const next: MigrationProgress = {
    operationId: migrationId,
    state,
    sourceNode,
    targetNode,
    ...defined({ targetZone: claims.target?.zone }),
    attempt,
    phase:
      received?.phase === 'completed' ? 'completed' : (reported?.phase ?? (state === 'reserved' ? '' : 'preparing')),
    iteration: reported?.iteration ?? 0,
    transferredBytes: reported?.transferredBytes ?? 0,
    totalBytes: reported?.totalBytes ?? 0,
    dirtyBytesPerSecond: reported?.dirtyBytesPerSecond ?? 0,
    downtimeMilliseconds: Math.max(sent?.downtimeMilliseconds ?? 0, received?.downtimeMilliseconds ?? 0),
    detail: detail === '' ? (reported?.detail ?? '') : detail,
    ...defined({ reportedAt: reported?.reportedAt }),
  }
  const hasChanged =
    recorded.state !== next.state ||
    recorded.phase !== next.phase ||
    recorded.attempt !== next.attempt ||
    recorded.detail !== next.detail
  const isFresh = Date.parse(next.reportedAt ?? '') - Date.parse(recorded.reportedAt ?? '') < REPORT_MILLISECONDS
  return !hasChanged && isFresh ? recorded : next
}

const STEPS = {
  reserved: 'reserved',
  preparing: 'prepared',
  detached: 'prepared',
  sending: 'moved',
  switched: 'cleaned',
  aborting: 'reserved',
} as const satisfies Record<MigrationState, string>

/** Records the move in this state; the server stays as it was, except for `rest`. */
export const inState = (
  input: MigrationInput,
  state: MigrationState,
  rest: Partial<Decision> & { readonly reason?: string } = {},
): Decision => {
  const { reason, ...decision } = rest
  const waitSeconds = secondsToEnd(input)
  return {
    ...unchanged(input),
    step: STEPS[state],
    status: { migration: progressOf(input, state, reason) },
    ...defined({ waitSeconds }),
    ...decision,
  }
}
