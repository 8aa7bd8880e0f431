/** A decision about a server: its state, what to do, and what people see. `toActions` is the only place where a
 *  decision becomes status, conditions and operation progress. */
import type { KindOf } from '../../../domain/operations.ts'
import { defined } from '../../../domain/defined.ts'
import { networkVerdict } from '../../../domain/network/guest-network.ts'
import type { ConditionDraft } from '../../../kit/reconcile/action.ts'
import {
  HOST_CONDITION,
  NETWORK_CONDITION,
  type ServerState,
  type ServerStatus,
} from '../../../resources/server/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { During } from '../../kit/operation/plan.ts'
import {
  operationActions,
  type OperationDecision,
  type Rule as OperationRule,
  truncated,
  waitActions,
} from '../../kit/operation/decision.ts'
import { healthConditions, toReason } from '../../kit/health.ts'
import { addressStatus } from './addresses.ts'
import { bootStorageName } from './drafts.ts'
import type { ServerAction } from './actions.ts'
import { claimedConditions } from './claimed.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import { isDeleting, type Observed, type ServerObject } from './observed.ts'
import { interfacesStatus, releasedInterfaces } from './networks.ts'
import { isProgrammed, program, untilInstalled } from './network-ports.ts'

const SSH_PORT = 22

/** The input of every rule. */
export interface ReconcileInput {
  readonly server: ServerObject
  readonly observed: Observed
  readonly now: Date
}

/** The input while an operation is under way. */
export type OperationInput = During<ReconcileInput>

export interface Decision extends OperationDecision<ServerAction, KindOf<'server'>> {
  readonly state: ServerState
  /** For people: the reason of the state; absent when the state says it all. */
  readonly detail?: string
  readonly status?: Partial<ServerStatus>
  /** Nothing of the server is left anywhere. */
  readonly isGone?: boolean
  /** The status is not written now: the next reconciliation decides again. */
  readonly isStatusDeferred?: boolean
}

/** Keeps the state: nothing is known that would change it. */
export const unchanged = ({ server }: ReconcileInput): Decision => {
  const { state = 'creating', stateDetail } = server.status ?? {}
  return { state, ...defined({ detail: stateDetail }) }
}

/** A rule of a flow. */
export type Rule<Input extends OperationInput = OperationInput> = OperationRule<Input, Decision>

/** In the order of execution: the work, the operation, the status, and how long to wait. */
export const toActions = (input: ReconcileInput, decision: Decision): readonly ServerAction[] => {
  const work = [
    ...(decision.actions ?? []),
    ...program(input).actions,
    ...releasedInterfaces(input.observed, isProgrammed(input)),
  ]
  // What effects report is written to the status, which is written completely or not at all.
  const isDeferred =
    decision.isStatusDeferred === true &&
    decision.outcome === undefined &&
    work.every((action) => action.do !== 'effect')
  return [...work, ...(isDeferred ? [] : statusActions(input, decision)), ...endActions(input, decision)]
}

const endActions = (input: ReconcileInput, decision: Decision): readonly ServerAction[] => [
  ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
  ...waitActions(decision.isGone === true ? decision : untilInstalled(input, decision)),
]

const statusActions = (input: ReconcileInput, decision: Decision): readonly ServerAction[] => [
  ...operationActions(input.server, decision),
  {
    do: 'status',
    status: statusOf(input, decision),
    conditions: conditionsOf(input, decision, activeOperation(input.server)),
  },
]

/** The plan that the server has: the plan of the spec, once the operation that changes it has succeeded. */
function planOf(
  { spec, status }: ServerObject,
  active: OperationStanza | undefined,
  outcome: Decision['outcome'],
): string {
  const isChanging = active?.kind === 'server.change_plan' && outcome !== 'succeeded'
  if (status?.plan === undefined) return (isChanging ? active.arguments?.['previous_plan'] : undefined) ?? spec.plan
  return active?.kind === 'server.change_plan' && !isChanging ? spec.plan : status.plan
}

function statusOf(
  input: ReconcileInput,
  { state, detail, status, outcome }: Decision,
): Partial<Record<keyof ServerStatus, unknown>> {
  const { server, observed } = input
  const { claims, instance, targetInstance, zone, sshUser } = observed
  const incarnations = [instance, targetInstance].flatMap((one) => (one === undefined ? [] : [one.spec.incarnation]))
  return {
    state,
    stateDetail: detail === undefined ? undefined : truncated(detail),
    ...defined({ region: zone?.region }),
    ...(claims === undefined
      ? {}
      : {
          plan: planOf(server, activeOperation(server), outcome),
          cores: claims.placement.cores,
          memoryMebibytes: claims.placement.memoryMebibytes,
          storageGibibytes: claims.placement.storageGibibytes,
          nodeName: claims.placement.node,
          macAddress: claims.macAddress,
          bootStorageId: bootStorageName(server),
          storageIds: claims.disks.map(({ storageId }) => storageId),
          ...addressStatus(claims),
          ...interfacesStatus(server, claims),
        }),
    ...defined({ sshUser: sshUser?.name }),
    ...sshStatus(server, instance),
    ...(incarnations.length === 0 ? {} : { incarnation: Math.max(...incarnations, server.status?.incarnation ?? 0) }),
    ...(state === 'stopped' ? { startedAt: undefined } : {}),
    ...program(input).status,
    ...status,
  }
}

/** Where the SSH port of the guest is forwarded from, and its host keys. The last reported keys stay while the guest is
 *  off or moving: they belong to the disk. A rebuilt server has other keys. */
function sshStatus(
  server: ServerObject,
  instance: Observed['instance'],
): Partial<Record<'sshForward' | 'sshHostKeys', unknown>> {
  const { forwards = [], sshHostKeys } = instance?.status ?? {}
  const forward = forwards.find(({ guestPort }) => guestPort === SSH_PORT)
  const operation = activeOperation(server)
  const isRebuilt = operation?.kind === 'server.rebuild' && bootStorageName(server) === operation.id
  return {
    sshForward: forward && { host: forward.host, port: forward.hostPort },
    ...(isRebuilt || sshHostKeys !== undefined ? { sshHostKeys } : {}),
  }
}

function conditionsOf(
  { server, observed }: ReconcileInput,
  decision: Decision,
  operation: OperationStanza | undefined,
): ConditionDraft[] {
  const { state, detail = '' } = decision
  const isAtWork = operation !== undefined && decision.outcome === undefined
  const isReady = !isAtWork && state === (server.spec.desiredPower === 'running' ? 'started' : 'stopped')
  const isStalled = !isAtWork && state === 'error'
  const blocked = isDeletionBlocked(server)
  return [
    ...(blocked && !isAtWork
      ? healthConditions('stalled', PROTECTED.reason, PROTECTED.message)
      : healthConditions(
          isReady ? 'ready' : isStalled ? 'stalled' : 'reconciling',
          toReason(state),
          truncated(detail),
        )),
    isAtWork
      ? {
          type: 'Progressing',
          status: 'True',
          reason: toReason(operation.kind),
          message: decision.waitFor === undefined ? '' : `Waiting for ${decision.waitFor}.`,
        }
      : { type: 'Progressing', status: 'False', reason: 'Idle', message: '' },
    {
      type: 'Degraded',
      status: isStalled ? 'True' : 'False',
      reason: toReason(state),
      message: isStalled ? truncated(detail) : '',
    },
    ...claimedConditions({ server, observed }),
    ...(observed.claims === undefined ? [] : [hostCondition(observed.isHostReachable)]),
    ...(observed.hostFeatures === undefined
      ? []
      : [networkCondition(observed.hostFeatures, observed.zone?.publicNetwork !== undefined)]),
    ...(blocked || findCondition(server, 'DeletionBlocked') !== undefined ? [blockedCondition(blocked)] : []),
  ]
}

const hostCondition = (isReachable: boolean): ConditionDraft =>
  isReachable
    ? { type: HOST_CONDITION, status: 'True', reason: 'Heard', message: '' }
    : { type: HOST_CONDITION, status: 'False', reason: 'Silent', message: 'The host of the server does not answer.' }

function networkCondition(features: readonly string[], hasWayOutside: boolean): ConditionDraft {
  const { isWhole, reason, message } = networkVerdict(features, hasWayOutside)
  return { type: NETWORK_CONDITION, status: isWhole ? 'True' : 'False', reason, message }
}

/** It was deleted with kubectl while it is protected: the deletion continues as soon as the protection is removed. */
const isDeletionBlocked = (server: ServerObject): boolean =>
  server.metadata.deletionTimestamp !== undefined && server.spec.isProtected && !isDeleting(server)

const PROTECTED = {
  reason: 'Protected',
  message: 'The server is protected. It is deleted as soon as spec.isProtected is false.',
} as const

const blockedCondition = (isBlocked: boolean): ConditionDraft =>
  isBlocked
    ? {
        type: 'DeletionBlocked',
        status: 'True',
        ...PROTECTED,
        isRefusal: true,
      }
    : { type: 'DeletionBlocked', status: 'False', reason: 'NotProtected', message: '' }

/** Undefined before it was first set. */
export const findCondition = (server: ServerObject, type: string) =>
  server.status?.conditions?.find((condition) => condition.type === type)
