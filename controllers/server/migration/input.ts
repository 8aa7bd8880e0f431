/** What every flow that takes a server to another node looks at: the two ends of the move, and what each of them says
 *  of the guest. Only what an agent has said counts, never the absence of a word; pure. */
import {
  gibibytesOf,
  MIGRATION_MODES,
  MIGRATION_POLICIES,
  type MigrationMode,
  type MigrationPolicy,
} from '../../../domain/migration-policies.ts'
import { isCancelled } from '../../../domain/operations.ts'
import type { ServerClaims } from '../../../db/server/index.ts'
import type { InstanceStatus } from '../../../resources/instance/index.ts'
import type { MigrationProgress } from '../../../resources/server/index.ts'
import type { MigrationState } from '../../../resources/operation/index.ts'
import { type Decision, type OperationInput, type ReconcileInput, unchanged } from '../decision.ts'
import { madeFor, uidOf } from '../drafts.ts'
import { hasEnded, hasObservedSpec, hasStarted } from '../power/index.ts'
import type { InstanceObject, Observed, ServerObject, StorageObject } from '../observed.ts'

/** The input of a server for which room is held on another node, by the move of this id. */
export interface MigrationInput extends OperationInput {
  readonly claims: ServerClaims
  readonly storage: StorageObject
  /** Of the operation that began the move: not the one under way when an earlier move is settled. */
  readonly migrationId: string
  readonly sourceNode: string
  readonly targetNode: string
  readonly source: InstanceObject | undefined
  readonly target: InstanceObject | undefined
  /** What was written down of this move before. */
  readonly recorded: MigrationProgress
}

/** The move as it is written in the server's status; undefined before it is. */
export function recordedMigration({ status }: ServerObject, migrationId: string): MigrationProgress | undefined {
  return status?.migration?.operationId === migrationId ? status.migration : undefined
}

export type SourceState =
  /** The guest is there and goes on, whatever becomes of the move. */
  | 'stays'
  /** It is being sent, or may be any moment. */
  | 'sending'
  /** It does not go on: it was sent whole, or it ended while it was sent. */
  | 'handed_over'
  /** It ended by itself, or its host was proven dead. */
  | 'ended'
  /** There is no instance. */
  | 'gone'

/** What the node that the server leaves has said last. A fenced node can say nothing any more: its guest has ended. */
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
  /** The guest is here, or was here and ended since. */
  | 'arrived'
  | 'preparing'
  /** It waits for the guest, and says where. */
  | 'listening'
  | 'failed'
  /** What is there is of another move, or on its way out. */
  | 'in_the_way'
  | 'gone'

/** What the node that the server goes to has said last, of the attempt that it was last told to make. */
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
  if (metadata.deletionTimestamp !== undefined || receive?.id !== migrationId) return 'in_the_way'
  if (transfer === undefined || transfer.attempt !== receive.attempt) return 'preparing'
  return transfer.phase === 'failed'
    ? 'failed'
    : transfer.phase === 'transferring' && transfer.port !== undefined
      ? 'listening'
      : 'preparing'
}

/** Of a guest that its sender has let go: whether its receiver has said that it never came. One that was told to wait
 *  for the next attempt and does so has not got this one. */
export function isGuestLost(
  input: Pick<MigrationInput, 'source' | 'target' | 'targetNode' | 'migrationId' | 'observed'>,
): boolean {
  const receiverState = targetState(input)
  if (receiverState !== 'preparing' && receiverState !== 'listening') return receiverState !== 'arrived'
  const transfer = transferOf(input.target?.status, 'receive', input.migrationId)
  return transfer !== undefined && transfer.attempt > sentAttempt(input)
}

/** The newest attempt that the sender was told of; 0 before the first. */
export const sentAttempt = ({ source, migrationId }: Pick<MigrationInput, 'source' | 'migrationId'>): number =>
  source?.spec.send?.id === migrationId ? source.spec.send.attempt : 0

/** A server that was moved while it stood still is where it shall be: it runs there, or its node has taken it over as
 *  it is. */
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

/** Nothing is known of what the node does now. */
export const isUnreachable = (observed: Observed, node: string): boolean =>
  observed.unreachableNodes?.includes(node) ?? false
/** It was proven that nothing runs on the node. */
export const isFenced = (observed: Observed, node: string): boolean => observed.fencedNodes?.includes(node) ?? false

/** Whether both nodes can be asked, so that a move that was left can be settled by the platform itself. */
export function canResolve({ observed }: ReconcileInput): boolean {
  const { claims } = observed
  if (claims?.target === undefined) return false
  return [claims.placement.node, claims.target.node].every(
    (node) => isFenced(observed, node) || !isUnreachable(observed, node),
  )
}

/** What the server's owner allows a move to cost. */
export const policyOf = ({ spec }: ServerObject): MigrationPolicy => MIGRATION_POLICIES[spec.migrationPolicy]

/** Whether the guest runs once the move is over. A server whose plan is changed stands still until it has the new
 *  one. */
export const shouldRun = ({ server, operation }: OperationInput): boolean =>
  server.spec.desiredPower === 'running' && operation.kind !== 'server.change_plan'

/** How the operation was asked to move the server; what it does not say, the server's policy does. */
export function modeOf({ server, operation }: Pick<OperationInput, 'server' | 'operation'>): MigrationMode {
  const mode = MIGRATION_MODES.find((known) => known === operation.arguments?.['mode'])
  return mode ?? (policyOf(server).isColdAllowed ? 'live_then_cold' : 'live')
}

/** The disk on the target is the one that this move is given there. What an earlier move left there, or is on its way
 *  out, would go with the guest on it. */
export function hasTargetDisk(
  { observed: { targetVolume }, storage, migrationId }: MigrationInput,
  kind: 'mirror' | 'copy',
): boolean {
  if (targetVolume === undefined || targetVolume.metadata.deletionTimestamp !== undefined) return false
  const { pool, source, arrivingFor } = targetVolume.spec
  const isShared = pool !== undefined && pool === storage.status?.pool && source === undefined
  return (isShared && arrivingFor === migrationId) || (source?.kind === kind && source.name === migrationId)
}

/** Disks that go with the guest, because the target does not reach them where they are. */
export const mirroredVolumes = (storage: StorageObject): string[] =>
  storage.status?.pool === undefined ? [uidOf(storage)] : []

/** So much earlier than its deadline a move is given up, so that everything is undone in time. */
const UNDO_SECONDS = 120

/** Why a move is over for a reason that lies outside of it. */
export function reasonToAbort({ operation, now }: OperationInput): string | undefined {
  if (isCancelled(operation)) return 'It was cancelled.'
  return now.getTime() >= Date.parse(operation.deadlineAt) - UNDO_SECONDS * 1_000
    ? 'It was not done in time.'
    : undefined
}

/** Until then; nothing once it has come. */
const secondsToEnd = ({ operation, now }: OperationInput): number | undefined => {
  const seconds = (Date.parse(operation.deadlineAt) - now.getTime()) / 1_000 - UNDO_SECONDS
  return seconds > 0 ? seconds : undefined
}

/** What has to be sent, in GiB. */
export const gibibytesToSend = ({
  claims: {
    placement: { memoryMebibytes, storageGibibytes },
  },
  storage,
}: MigrationInput): number =>
  gibibytesOf({ memoryMebibytes, ...(mirroredVolumes(storage).length > 0 ? { storageGibibytes } : {}) })

/** Between two writes of mere figures. */
const REPORT_MILLISECONDS = 1_000

/** What is written down of the move in this state; the nodes' figures no more than once a second. */
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
    ...(claims.target === undefined ? {} : { targetZone: claims.target.zone }),
    attempt,
    phase:
      received?.phase === 'completed' ? 'completed' : (reported?.phase ?? (state === 'reserved' ? '' : 'preparing')),
    iteration: reported?.iteration ?? 0,
    transferredBytes: reported?.transferredBytes ?? 0,
    totalBytes: reported?.totalBytes ?? 0,
    dirtyBytesPerSecond: reported?.dirtyBytesPerSecond ?? 0,
    downtimeMilliseconds: Math.max(sent?.downtimeMilliseconds ?? 0, received?.downtimeMilliseconds ?? 0),
    detail: detail === '' ? (reported?.detail ?? '') : detail,
    ...(reported === undefined ? {} : { reportedAt: reported.reportedAt }),
  }
  const isNews =
    recorded.state !== next.state ||
    recorded.phase !== next.phase ||
    recorded.attempt !== next.attempt ||
    recorded.detail !== next.detail
  const isFresh = Date.parse(next.reportedAt ?? '') - Date.parse(recorded.reportedAt ?? '') < REPORT_MILLISECONDS
  return !isNews && isFresh ? recorded : next
}

const STEPS = {
  reserved: 'reserved',
  preparing: 'prepared',
  detached: 'prepared',
  sending: 'moved',
  switched: 'cleaned',
  aborting: 'reserved',
} as const satisfies Record<MigrationState, string>

/** The move is in this state, and the server as it was unless something else is said. */
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
    ...(waitSeconds === undefined ? {} : { waitSeconds }),
    ...decision,
  }
}
