/** The zone controller: whether a zone takes new servers, which plans it has no room for, and whether it could bear the
 *  loss of a node. */
import { type Evacuee, evacueeKey } from '../../domain/evacuation.ts'
import { fullestOf, haObstacle, type Host } from '../../domain/high-availability.ts'
import { isReachableState } from '../../domain/node-rules.ts'
import { type Candidate, rankNodes } from '../../domain/placement.ts'
import { listTenants, listCandidates } from '../../db/placement/index.ts'
import { listGroupsOn } from '../../db/server-group/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { watch } from '../../kit/reconcile/reconciler.ts'
import { accountNamespace } from '../../resources/index.ts'
import { NODE_REPORT_NAME, nodeNamespace, NodeReport } from '../../resources/instance/index.ts'
import { Plan, type PlanSpec, Zone, type ZoneSpec, type ZoneStatus } from '../../resources/catalog/index.ts'
import { isFenceCapable, Node } from '../../resources/node/index.ts'
import { Server } from '../../resources/server/index.ts'
import { cpuPoolOf } from '../cpu-pool.ts'
import { controller } from '../controller.ts'
import { orUnavailable } from '../database.ts'
import type { NoEffects, PlainAction } from '../effects.ts'
import { isCompute, type NodeObject } from '../node/index.ts'
import type { Parts } from '../parts.ts'

export interface Observed {
  readonly nodes: readonly Candidate[]
  readonly plans: readonly KubeObject<PlanSpec>[]
  readonly hosts: readonly Host[]
  /** Of the fullest node. */
  readonly guests: readonly Evacuee[]
}

/** Room changes in PostgreSQL, where nothing wakes anybody. */
const LOOK_SECONDS = 5

async function observe({ caches, db }: Parts, zone: string): Promise<Observed> {
  const nodes = await orUnavailable(listCandidates(db, zone))
  const fullest = fullestOf(nodes)
  const [tenants, groups] =
    fullest === undefined
      ? [[], undefined]
      : await orUnavailable(Promise.all([listTenants(db, fullest), listGroupsOn(db, fullest)]))
  const serverOf = (accountId: string, serverId: string) =>
    caches.of(Server).get({ namespace: accountNamespace(accountId), name: serverId })
  return {
    nodes,
    plans: caches.of(Plan).list(),
    hosts: caches
      .of(Node)
      .list()
      .filter((node) => node.spec.zone === zone && isHost(node))
      .map(({ metadata: { name }, spec, status }) => ({
        node: name,
        isReachable: isReachableState(status?.state),
        isFenceCapable: isFenceCapable(spec),
        pools: caches.of(NodeReport).get({ namespace: nodeNamespace(name), name: NODE_REPORT_NAME })?.spec.pools ?? [],
      })),
    guests: tenants
      .filter(({ isArriving }) => !isArriving)
      .map(({ accountId, serverId, isArriving: _isArriving, ...room }) => ({
        accountId,
        serverId,
        room,
        cpuPool: cpuPoolOf(caches, serverOf(accountId, serverId)),
        group: groups?.get(evacueeKey(accountId, serverId)),
      })),
  }
}

/** Servers run on it, or could. */
export const isHost = (node: NodeObject): boolean =>
  isCompute(node) && node.status?.state !== undefined && node.status.state !== 'provisioning'

export function plan(
  zone: KubeObject<ZoneSpec, ZoneStatus>,
  { nodes, plans, hosts, guests }: Observed,
): readonly PlainAction[] {
  const name = zone.metadata.name
  const hasRoom = ({ spec: { cores, memoryMebibytes, storageGibibytes, cpuPool } }: KubeObject<PlanSpec>): boolean =>
    rankNodes({ accountId: '', zone: name, cores, memoryMebibytes, storageGibibytes, cpuPool }, nodes).length > 0
  const unavailablePlans = plans
    .filter((offered) => !hasRoom(offered))
    .map(({ metadata }) => metadata.name)
    .sort()
  const state = zone.spec.isClosed ? 'closed' : unavailablePlans.length === plans.length ? 'full' : 'available'
  return [
    {
      do: 'status',
      status: { state, unavailablePlans, haObstacle: haObstacle(name, hosts, nodes, guests) },
      conditions: [
        { type: 'Ready', status: state === 'available' ? 'True' : 'False', reason: REASONS[state], message: '' },
      ],
    },
    { do: 'wait', seconds: LOOK_SECONDS, for: 'room to change' },
  ]
}

const REASONS = { available: 'Available', full: 'Full', closed: 'Closed' } as const

export const zoneController = controller<NoEffects>()({
  name: 'zone',
  resource: Zone,
  sharding: 'zones',
  plan,
  open(parts: Parts) {
    const { caches } = parts
    return {
      watches: [
        watch(Node, ({ spec }) => [{ name: spec.zone }]),
        watch(Plan, () =>
          caches
            .of(Zone)
            .list()
            .map(({ metadata }) => ({ name: metadata.name })),
        ),
        ...[watch(NodeReport, () => []), watch(Server, () => [])],
      ],
      observe: ({ metadata }) => observe(parts, metadata.name),
      effects: {},
    }
  },
})
