/** The zone's plan: pure, synchronous, total. Every reconcile judges the zone again; the policy of its shared storage
 *  is changed by an operation (`storage-policy.ts`). */
import { SEPARATE_EDGES_NODES_MINIMUM } from '../../../domain/edge/rules.ts'
import { haObstacle } from '../../../domain/zone/high-availability.ts'
import { rankNodes } from '../../../domain/node/placement.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import type { PlanSpec } from '../../../resources/catalog/index.ts'
import { operationActions } from '../../kit/operation/decision.ts'
import { planOperations } from '../../kit/operation/plan.ts'
import { gather } from './gathering.ts'
import type { Decision, Observed, ReconcileInput, ZoneAction, ZoneObject } from './observed.ts'
import { detectEdit, detectRoom, keepPolicy, policyTried, rebalance } from './storage-policy.ts'

/** Room changes in PostgreSQL, where no event wakes the reconciler. */
const LOOK_SECONDS = 5
const REASONS = { available: 'Available', full: 'Full', closed: 'Closed' } as const

export const plan = planOperations<ZoneObject, Observed, ReconcileInput, Decision, ZoneAction>({
  label: 'A zone',
  endedByDeletion: 'all',
  flows: { 'storage.rebalance_policy': rebalance },
  inputOf: (zone, observed, now) => ({ zone, observed, now }),
  unchanged: () => ({}),
  always: gather,
  detectEdit: ({ zone, observed }) =>
    detectEdit(zone)
      ? { kind: 'storage.rebalance_policy', field: 'sharedStorage', actor: observed.editor ?? '' }
      : detectRoom(zone),
  idle: keepPolicy,
  overdue: (input, decision, error) => ({ ...decision, outcome: 'failed', error, status: policyTried(input.zone) }),
  toActions: ({ zone, observed }, decision) => [
    ...(decision.actions ?? []),
    ...operationActions(zone, decision),
    judged(zone, observed, decision.status),
    { do: 'wait', seconds: LOOK_SECONDS, for: decision.waitFor ?? 'room to change' },
  ],
})

function judged(
  zone: ZoneObject,
  {
    nodes,
    plans,
    hosts,
    guests,
    hasPrivateNetworks = zone.status?.hasPrivateNetworks,
    networkObstacle = hasPrivateNetworks === false ? zone.status?.networkObstacle : undefined,
    hasBackups,
    pools,
    publicFamilies,
    backupSources = [],
    builtTemplates,
    objectStorage,
    kubernetes,
  }: Observed,
  more: Decision['status'] = {},
): ZoneAction {
  const name = zone.metadata.name
  const hasRoom = ({ spec: { cores, memoryMebibytes, storageGibibytes, cpuPool } }: KubeObject<PlanSpec>): boolean =>
    rankNodes({ accountId: '', zone: name, cores, memoryMebibytes, storageGibibytes, cpuPool }, nodes).length > 0
  const unavailablePlans = plans
    .filter((offered) => !hasRoom(offered))
    .map(({ metadata }) => metadata.name)
    .sort()
  const state = zone.spec.isClosed ? 'closed' : unavailablePlans.length === plans.length ? 'full' : 'available'
  return {
    do: 'status',
    status: {
      state,
      unavailablePlans,
      hasBackups,
      builtTemplates: [...builtTemplates],
      hasSharedStorage: pools === undefined ? zone.status?.hasSharedStorage : pools.length > 0,
      publicFamilies: publicFamilies && [...publicFamilies],
      hasSeparateEdges: nodes.length >= SEPARATE_EDGES_NODES_MINIMUM,
      hasPrivateNetworks,
      networkObstacle,
      objectStorageBackend: objectStorage?.objectStorageBackend,
      objectStorageObstacle: objectStorage?.objectStorageObstacle,
      kubernetesReleases: kubernetes?.kubernetesReleases,
      kubernetesObstacle: kubernetes?.kubernetesObstacle,
      hasPlaygrounds: kubernetes?.hasPlaygrounds,
      playgroundsObstacle: kubernetes?.playgroundsObstacle,
      backupSources: backupSources.length === 0 ? undefined : [...backupSources],
      haObstacle: haObstacle(name, hosts, nodes, guests),
      ...more,
    },
    conditions: [
      { type: 'Ready', status: state === 'available' ? 'True' : 'False', reason: REASONS[state], message: '' },
    ],
  }
}
