/** The load balancer's plan: pure, synchronous, total. Its name and addresses are claimed in PostgreSQL; its machines
 *  follow from its spec, whoever changes it; a configuration never begins an operation. */
import { type Health, healthConditions } from '../health.ts'
import { keyOf } from '../../kit/kube/object.ts'
import { LoadBalancer, type LoadBalancerStatus } from '../../resources/load-balancer/index.ts'
import {
  firstDecision,
  operationActions,
  type OperationDecision,
  truncated,
  waitActions,
} from '../operation/decision.ts'
import { auditRequests } from '../operation/direct-edit.ts'
import { type During, planOperations } from '../operation/plan.ts'
import { planMachines, type MachinesPlan } from '../managed-machine/index.ts'
import { refusalOf } from '../refusal.ts'
import { appliedOf, demandsOf, isOwnerless, ownerOf, reportedOf } from './machines.ts'
import { CLAIMED, type LoadBalancerEffect, type LoadBalancerObject, type Observed } from './observed.ts'

interface ReconcileInput {
  readonly balancer: LoadBalancerObject
  readonly observed: Observed
  readonly now: Date
}
type OperationInput = During<ReconcileInput>

interface Decision extends OperationDecision<LoadBalancerEffect> {
  readonly health: Health
  readonly reason: string
  readonly message?: string
  readonly status?: { readonly [Field in keyof LoadBalancerStatus]?: LoadBalancerStatus[Field] | undefined }
  /** Nothing of it is left anywhere. */
  readonly isGone?: boolean
}
type Rule = (input: OperationInput) => Decision | undefined

const NETWORK_LOOK_SECONDS = 5
/** Reports wake it; this is for what nobody reports. */
const LOOK_SECONDS = 60

export const plan = planOperations<LoadBalancerObject, Observed, ReconcileInput, Decision, LoadBalancerEffect>({
  label: 'A load balancer',
  flows: {
    'load_balancer.create': (input) => firstDecision(input, [hasAccount, hasNetwork, claimed, machinesRun, done]),
    'load_balancer.delete': remove,
  },
  inputOf: (balancer, observed, now) => ({ balancer, observed, now }),
  unchanged: () => ({ health: 'reconciling', reason: 'Waiting' }),
  always: ({ balancer, observed }) => auditRequests(balancer, observed.edits),
  // One that is deleted through the API is deleted in Kubernetes first.
  guard: ({ balancer }) =>
    isLeaving(balancer) && balancer.metadata.deletionTimestamp === undefined
      ? [{ do: 'remove', type: LoadBalancer, key: keyOf(balancer) }]
      : undefined,
  detectEdit({ balancer, observed }) {
    const kind = detectEdit(balancer)
    return kind && { kind, field: '', actor: observed.editor }
  },
  idle: (input) => (isLeaving(input.balancer) ? remove(input) : idle(input)),
  // A deletion goes on behind its operation.
  overdue: ({ balancer }, decision, error) =>
    isLeaving(balancer) ? { ...decision, outcome: 'failed', error } : failed('machines', error),
  toActions: ({ balancer }, decision) => [
    ...(decision.actions ?? []),
    ...operationActions(balancer, decision),
    {
      do: 'status',
      status: { ...decision.status },
      conditions: healthConditions(decision.health, decision.reason, truncated(decision.message ?? '')),
    },
    ...(decision.isGone === true ? [{ do: 'finalized' } as const] : []),
    ...waitActions(decision),
  ],
})

const failed = (step: string, error: string): Decision => ({
  health: 'stalled',
  reason: 'Error',
  message: error,
  step,
  outcome: 'failed',
  error,
})

/** The operation that an edit amounts to. */
export function detectEdit({
  metadata,
  spec: { operation },
  status,
}: LoadBalancerObject): 'load_balancer.create' | 'load_balancer.delete' | undefined {
  if (metadata.deletionTimestamp !== undefined)
    return operation?.kind === 'load_balancer.delete' ? undefined : 'load_balancer.delete'
  return operation === undefined && status?.operation === undefined ? 'load_balancer.create' : undefined
}

/** It is deleted, or shall be. */
const isLeaving = ({ metadata, spec }: LoadBalancerObject): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === 'load_balancer.delete'

const hasAccount: Rule = ({ observed }) =>
  observed.accountId === undefined ? failed('claimed', 'The namespace belongs to no account.') : undefined

/** That of the same manifest may come later. */
const hasNetwork: Rule = ({ balancer, observed: { claim, hasNetwork: isThere } }) =>
  claim !== undefined || isThere
    ? undefined
    : {
        health: 'reconciling',
        reason: 'Waiting',
        step: 'claimed',
        waitFor: `network ${balancer.spec.networkId} to be there`,
        waitSeconds: NETWORK_LOOK_SECONDS,
      }

const claimed: Rule = ({ balancer, observed: { accountId = '', claim } }) => {
  if (claim !== undefined) return undefined
  const refusal = refusalOf(balancer, CLAIMED)
  if (refusal !== undefined) return failed('claimed', refusal.message)
  const { zone, name, networkId, publicIpv4 } = balancer.spec
  const input = { accountId, loadBalancerId: balancer.metadata.name, zone, name, networkId, publicIpv4 }
  return {
    health: 'reconciling',
    reason: 'Claiming',
    step: 'claimed',
    actions: [{ do: 'effect', name: 'claim', input }],
    waitFor: 'the database',
    waitSeconds: 0,
  }
}

const machinesRun: Rule = (input) => {
  const { plan: machines, status } = maintained(input)
  if (machines.isSettled) return undefined
  const isThere = input.observed.machines.length > 0 && input.observed.machines.every(({ delivered }) => delivered)
  return {
    health: 'reconciling',
    reason: 'Making',
    step: isThere ? 'applied' : 'machines',
    actions: machines.actions,
    status,
    waitFor: machines.waitFor,
    waitSeconds: LOOK_SECONDS,
  }
}

const done: Rule = (input) => {
  const { status } = maintained(input)
  return {
    health: 'ready',
    reason: 'Running',
    step: 'applied',
    outcome: 'succeeded',
    status: { ...status, isMade: true },
  }
}

/** What its machines shall be, and what they say. */
function maintained({ balancer, observed, now }: ReconcileInput): {
  readonly plan: MachinesPlan
  readonly status: NonNullable<Decision['status']>
} {
  const { accountId, claim, machines } = observed
  if (accountId === undefined || claim === undefined)
    return { plan: { actions: [], isSettled: false, waitFor: 'the database', replacing: undefined }, status: {} }
  const demands = demandsOf(balancer, accountId, claim, machines)
  const planned = planMachines({ owner: ownerOf(balancer, accountId), demands, machines, now })
  return {
    plan: planned,
    status: {
      isHealthy: planned.isSettled && !isOwnerless(machines),
      healthDetail: truncated(
        planned.isSettled
          ? isOwnerless(machines)
            ? 'No machine has its addresses'
            : ''
          : `Waiting for ${planned.waitFor}`,
      ),
      publicIpv4: claim.publicIpv4?.address,
      privateIpv4: claim.shared.ipv4Address,
      privateIpv6: claim.shared.ipv6Address,
      applied: appliedOf(balancer, demands, machines),
      ...reportedOf(balancer, machines),
    },
  }
}

/** Its machines follow its spec. One whose creation failed is left as it is. */
function idle(input: ReconcileInput): Decision {
  const { balancer, observed } = input
  const { spec, status, metadata } = balancer
  if (status?.isMade !== true || observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: status?.operation?.error ?? 'It was not made.' }
  const { plan: machines, status: reported } = maintained(input)
  const id = { accountId: observed.accountId ?? '', loadBalancerId: metadata.name }
  const isRenamed = observed.claim.name !== spec.name && refusalOf(balancer, CLAIMED) === undefined
  return {
    health: 'ready',
    reason: machines.isSettled ? 'Running' : 'Maintaining',
    message: machines.waitFor,
    actions: [
      ...(isRenamed ? [{ do: 'effect', name: 'rename', input: { ...id, name: spec.name } } as const] : []),
      ...(observed.unusedCertificates.length === 0
        ? []
        : [{ do: 'effect', name: 'drop', input: { ...id, certificateIds: observed.unusedCertificates } } as const]),
      ...machines.actions,
    ],
    status: reported,
    waitFor: 'a change',
    waitSeconds: LOOK_SECONDS,
  }
}

/** Its machines go first, then what it has claimed. */
function remove({ balancer, observed, now }: ReconcileInput): Decision {
  const { accountId, machines } = observed
  if (accountId !== undefined && machines.length > 0) {
    const planned = planMachines({ owner: ownerOf(balancer, accountId), demands: [], machines, now })
    return {
      health: 'reconciling',
      reason: 'Deleting',
      step: 'machines',
      actions: planned.actions,
      waitFor: planned.waitFor,
      waitSeconds: LOOK_SECONDS,
    }
  }
  const id = { accountId: accountId ?? '', loadBalancerId: balancer.metadata.name }
  return {
    health: 'reconciling',
    reason: 'Deleting',
    step: 'released',
    outcome: 'succeeded',
    actions: accountId === undefined ? [] : [{ do: 'effect', name: 'release', input: id }],
    isGone: true,
  }
}
