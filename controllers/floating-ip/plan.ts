/** The plan of a floating IP: pure, synchronous, total. What is the same for every noun with operations is in
 *  `controllers/operation/plan.ts`. Where it leads is decided in PostgreSQL; its rows in OVN follow from that. */
import type { Assignment } from '../../db/floating-ip/index.ts'
import { keyOf } from '../../kit/kube/object.ts'
import { FloatingIp, type FloatingIpAction, type FloatingIpStatus } from '../../resources/floating-ip/index.ts'
import { firstDecision } from '../operation/decision.ts'
import { type DirectEdit, SYSTEM_ACTOR } from '../operation/direct-edit.ts'
import { type During, planOperations } from '../operation/plan.ts'
import { activeOperation } from '../operation/stanza.ts'
import { refusalOf } from '../refusal.ts'
import { hasAccount, installed, type SyncInput } from '../synced-plan.ts'
import { actionOf, auditedSync, failed, reconciling, type SyncDecision, syncActions } from '../synced.ts'
import { ASSIGNED, CLAIMED, type FloatingIpEffect, type FloatingIpObject, type Observed } from './observed.ts'

type ReconcileInput = SyncInput<FloatingIpObject, Observed>
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<FloatingIpStatus, FloatingIpEffect>
type Rule<Input = ReconcileInput> = (input: Input) => Decision | undefined

const SERVER_LOOK_SECONDS = 2
/** It is looked at again however little has changed. */
const LOOK_SECONDS = 300

const isReleasing = ({ metadata, spec }: FloatingIpObject): boolean =>
  metadata.deletionTimestamp !== undefined || actionOf(spec.operation) === 'release'

export const plan = planOperations<FloatingIpObject, Observed, ReconcileInput, Decision, FloatingIpEffect>({
  label: 'A floating IP',
  flows: { 'floating_ip.sync': (input) => (isReleasing(input.root) ? remove(input) : synchronize(input)) },
  inputOf: (root, observed) => ({ root, observed }),
  unchanged: () => reconciling('Waiting'),
  guard: ({ root: floatingIp }) =>
    actionOf(floatingIp.spec.operation) === 'release' && floatingIp.metadata.deletionTimestamp === undefined
      ? [{ do: 'remove', type: FloatingIp, key: keyOf(floatingIp) }]
      : undefined,
  detectEdit: ({ root: floatingIp, observed }) => serverGone(floatingIp, observed) ?? edited(floatingIp, observed),
  idle: (input) => (isReleasing(input.root) ? remove(input) : idle(input)),
  // A release goes on behind its operation.
  overdue: ({ root: floatingIp }, decision, error) =>
    isReleasing(floatingIp) ? { ...decision, outcome: 'failed', error } : { ...decision, ...failed('applied', error) },
  auditedAs: auditedSync('floating_ip'),
  toActions: (input, decision) =>
    syncActions(input.root, { ...decision, status: { ...knownOf(input), ...decision.status } }),
})

type Edit = (DirectEdit & { readonly actor: string }) | undefined

/** The server was deleted: it leads nowhere from then on. */
function serverGone({ metadata, spec }: FloatingIpObject, { claim, server }: Observed): Edit {
  if (spec.serverId === undefined || server !== 'gone' || claim === undefined || claim.serverId !== undefined)
    return undefined
  if (metadata.deletionTimestamp !== undefined || actionOf(spec.operation) === 'release') return undefined
  return {
    kind: 'floating_ip.sync',
    field: '',
    arguments: { action: 'unassign' },
    spec: { serverId: null, target: null },
    actor: SYSTEM_ACTOR,
  }
}

const edited = (floatingIp: FloatingIpObject, { editor }: Observed): Edit => {
  const action = detectEdit(floatingIp)
  return action && { kind: 'floating_ip.sync', field: '', arguments: { action }, actor: editor }
}

/** What an edit with kubectl does; undefined when the spec and the operations agree. */
export function detectEdit(floatingIp: FloatingIpObject): FloatingIpAction | undefined {
  const { metadata, spec, status } = floatingIp
  if (actionOf(spec.operation) === 'release') return undefined
  if (metadata.deletionTimestamp !== undefined) return 'release'
  if (activeOperation(floatingIp) !== undefined) return undefined
  if (status?.address === undefined)
    return spec.operation === undefined && spec.address === undefined ? 'allocate' : undefined
  const wanted = assignmentOf(floatingIp)
  const isSame = wanted?.serverId === status.serverId && wanted?.target === status.target
  if (isSame || refusalOf(floatingIp, ASSIGNED) !== undefined) return undefined
  return wanted === undefined ? 'unassign' : 'assign'
}

const assignmentOf = ({ spec: { serverId, target = 'public' } }: FloatingIpObject): Assignment | undefined =>
  serverId === undefined ? undefined : { serverId, target }

const targetOf = ({ serverId, networkId }: NonNullable<Observed['claim']>): string | undefined =>
  serverId === undefined ? undefined : networkId === undefined ? 'public' : `private:${networkId}`

const knownOf = ({ observed: { claim } }: ReconcileInput): NonNullable<Decision['status']> =>
  claim === undefined ? {} : { address: claim.address, serverId: claim.serverId, target: targetOf(claim) }

/** Steps in order: claimed, assigned, applied, installed. */
const synchronize = (input: OperationInput): Decision =>
  firstDecision(input, [hasAccount, serverMade, claimed, assigned, applied, areInstalled, done])

/** `kubectl apply` may make a floating IP before its server. */
const serverMade: Rule = ({ root: { spec }, observed: { server } }) =>
  spec.serverId === undefined || server === 'there'
    ? undefined
    : {
        ...reconciling('Waiting'),
        step: 'claimed',
        waitFor: `the server ${spec.serverId}`,
        waitSeconds: SERVER_LOOK_SECONDS,
      }

const claimed: Rule = ({ root: floatingIp, observed: { accountId = '', claim } }) => {
  if (claim !== undefined) return undefined
  const refusal = refusalOf(floatingIp, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  const { metadata, spec } = floatingIp
  const demand = { accountId, floatingIpId: metadata.name, zone: spec.zone, assignment: assignmentOf(floatingIp) }
  return {
    ...reconciling('Claiming'),
    step: 'claimed',
    actions: [{ do: 'effect', name: 'claim', input: demand }],
    waitFor: 'the database',
    waitSeconds: 0,
  }
}

const assigned: Rule = ({ root: floatingIp, observed: { accountId = '', claim } }) => {
  const assignment = assignmentOf(floatingIp)
  if (claim === undefined || (claim.serverId === assignment?.serverId && targetOf(claim) === assignment?.target))
    return undefined
  const refusal = refusalOf(floatingIp, ASSIGNED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  return {
    ...reconciling('Assigning'),
    step: 'claimed',
    actions: [
      { do: 'effect', name: 'assign', input: { accountId, floatingIpId: floatingIp.metadata.name, assignment } },
    ],
    waitFor: 'the database',
    waitSeconds: 0,
  }
}

const applied: Rule = ({ root: { spec }, observed: { facts, isApplied } }) =>
  isApplied
    ? undefined
    : {
        ...reconciling('Applying'),
        step: 'applied',
        actions: [{ do: 'effect', name: 'apply', input: { zone: spec.zone, facts } }],
        waitFor: 'the network',
        waitSeconds: 0,
      }

const areInstalled = installed('the hosts that lead outside')

const done: Rule<OperationInput> = (input) => ({ ...standing(input), step: 'installed', outcome: 'succeeded' })

function standing({ root: floatingIp, observed: { claim, facts } }: ReconcileInput): Decision {
  const refusal = refusalOf(floatingIp, ASSIGNED)
  if (refusal !== undefined) return { health: 'stalled', reason: refusal.reason, message: refusal.message }
  const rest = { waitFor: 'a change', waitSeconds: LOOK_SECONDS } as const
  return claim?.serverId !== undefined && facts === undefined
    ? { health: 'stalled', reason: 'NoTarget', message: 'What it leads to is not there now.', ...rest }
    : { health: 'ready', reason: claim?.serverId === undefined ? 'Unassigned' : 'Assigned', ...rest }
}

/** Its rows follow what they are made from, whoever changes it. */
function idle(input: ReconcileInput): Decision {
  const { root: floatingIp, observed } = input
  if (observed.claim === undefined)
    return {
      health: 'stalled',
      reason: 'Error',
      message: floatingIp.status?.operation?.error ?? 'It was not allocated.',
    }
  const decision = applied(input)
  return decision === undefined ? standing(input) : { ...decision, health: 'ready', reason: 'Applying' }
}

function remove({ root: floatingIp, observed: { accountId } }: ReconcileInput): Decision {
  const id = accountId === undefined ? undefined : { accountId, floatingIpId: floatingIp.metadata.name }
  return {
    ...reconciling('Deleting'),
    step: 'installed',
    outcome: 'succeeded',
    actions: [{ do: 'effect', name: 'release', input: { zone: floatingIp.spec.zone, id } }],
    isGone: true,
  }
}
