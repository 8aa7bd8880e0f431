/** The load balancer's plan: pure, synchronous, total. Its name and addresses are claimed in PostgreSQL; its machines
 *  follow its spec, whoever changes it; a configuration never starts an operation. */
import type { KindOf } from '../../../domain/operations.ts'
import { loadBalancerChanges } from '../../../changes/load-balancer.ts'
import { LoadBalancer, type LoadBalancerSpec, type LoadBalancerStatus } from '../../../resources/load-balancer/index.ts'
import { type MadeInput, networkAwaited, planMade } from '../../kit/made-plan.ts'
import { firstDecision, truncated } from '../../kit/operation/decision.ts'
import type { During } from '../../kit/operation/plan.ts'
import { claimed } from '../../kit/changes.ts'
import { planMachines, type MachinesPlan } from '../managed-machine/index.ts'
import { appliedConfiguration, loadBalancerDemands, isOwnerless, balancerOwner, reportedOf } from './machines.ts'
import type { LoadBalancerEffect, LoadBalancerObject, Observed } from './observed.ts'
import { factsDigest, reconciling, type SyncDecision } from '../../kit/synced.ts'
import { hasAccount, type SyncInput } from '../../kit/synced-plan.ts'

type ReconcileInput = MadeInput<LoadBalancerObject, Observed>
type OperationInput = During<ReconcileInput>
type Decision = SyncDecision<LoadBalancerStatus, LoadBalancerEffect, KindOf<'load_balancer'>>
type ClaimInput = SyncInput<LoadBalancerObject, Observed>
type Rule<Input = OperationInput> = (input: Input) => Decision | undefined

/** Reports wake it; this interval is for what nobody reports. */
const LOOK_SECONDS = 60

/** The operations that create and delete it. */
export const LIFE = { creates: 'load_balancer.create', deletes: 'load_balancer.delete' } as const

export const plan = planMade<LoadBalancerObject, LoadBalancerSpec, LoadBalancerStatus, Observed, LoadBalancerEffect>({
  label: 'A load balancer',
  type: LoadBalancer,
  ...LIFE,
  flows: {
    'load_balancer.create': (input) =>
      firstDecision(input, [hasAccount, hasNetwork, isClaimed, routed, machinesRun, done]),
  },
  idle,
  remove,
})

const hasNetwork: Rule = ({ root, observed: { claim, hasNetwork: isThere } }) =>
  claim !== undefined || isThere ? undefined : networkAwaited(root.spec.networkId)

const isClaimed: Rule<ReconcileInput> = claimed(
  loadBalancerChanges,
  ({ root: { spec }, observed: { claim } }: ClaimInput) =>
    claim === undefined ? undefined : { ...spec, name: claim.name },
)

const routed: Rule = ({ observed }) => {
  const actions = routing(observed)
  return actions.length === 0
    ? undefined
    : { ...reconciling('Routing'), step: 'machines', actions, waitFor: 'the network', waitSeconds: 0 }
}

const routing = ({ claim, routeDigest }: Observed): readonly LoadBalancerEffect[] => {
  const { address } = claim?.publicIpv6 ?? {}
  return address === undefined || routeDigest === factsDigest(address)
    ? []
    : [{ do: 'effect', name: 'route', input: { address } }]
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

/** The desired machines, and the status that they report. */
function maintained({ root: balancer, observed, now }: ReconcileInput): {
  readonly plan: MachinesPlan
  readonly status: NonNullable<Decision['status']>
} {
  const { accountId, claim, machines, lost } = observed
  if (accountId === undefined || claim === undefined)
    return { plan: { actions: [], isSettled: false, waitFor: 'the database', replacing: undefined }, status: {} }
  const demands = loadBalancerDemands(balancer, accountId, claim, machines)
  const planned = planMachines({ owner: balancerOwner(balancer, accountId), demands, machines, lost, now })
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
      publicIpv6: claim.publicIpv6?.address,
      privateIpv4: claim.shared.ipv4Address,
      privateIpv6: claim.shared.ipv6Address,
      applied: appliedConfiguration(balancer, demands, machines),
      ...reportedOf(balancer, machines),
    },
  }
}

/** Its machines follow its spec. A load balancer whose creation failed is left as it is. */
function idle(input: ReconcileInput): Decision {
  const { root: balancer, observed } = input
  const { status, metadata } = balancer
  if (status?.isMade !== true || observed.claim === undefined)
    return { health: 'stalled', reason: 'Error', message: status?.operation?.error ?? 'It was not made.' }
  const { plan: machines, status: reported } = maintained(input)
  const id = { accountId: observed.accountId ?? '', loadBalancerId: metadata.name }
  return {
    health: 'ready',
    reason: machines.isSettled ? 'Running' : 'Maintaining',
    message: machines.waitFor,
    actions: [
      ...(isClaimed(input)?.actions ?? []),
      ...(observed.unusedCertificates.length === 0
        ? []
        : [{ do: 'effect', name: 'drop', input: { ...id, certificateIds: observed.unusedCertificates } } as const]),
      ...machines.actions,
      ...routing(observed),
    ],
    status: reported,
    waitFor: 'a change',
    waitSeconds: LOOK_SECONDS,
  }
}

/** Its machines are deleted first; then its claims are released. */
function remove({ root: balancer, observed, now }: ReconcileInput): Decision {
  const { accountId, machines } = observed
  if (accountId !== undefined && machines.length > 0) {
    const planned = planMachines({ owner: balancerOwner(balancer, accountId), demands: [], machines, lost: [], now })
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
