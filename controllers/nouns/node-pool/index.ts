/** The controller of node pools: its watches, what it reads, and its effects. `plan.ts` decides. */
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { isFinal } from '../../../domain/operations.ts'
import { JOIN_SECONDS } from '../../../domain/node-pool/rules.ts'
import { type ClusterClaim, findCluster } from '../../../db/kubernetes-cluster/index.ts'
import { claimNodePool, isNodePoolClaimed, releaseNodePool } from '../../../db/node-pool/index.ts'
import { wasGivenUpSince, wasRemovalOrdered } from '../../../db/removal/index.ts'
import { editorActor, findEditor } from '../../kit/operation/direct-edit.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import type { ControlPlanes } from '../../../integrations/control-planes/control.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { Plan, Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import { NodePool, type NodePoolSpec, type NodePoolStatus } from '../../../resources/node-pool/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import {
  deliverDocument,
  findLostMachines,
  MACHINE_READS,
  MACHINE_WRITES,
  type Machines,
  openMachines,
} from '../managed-machine/index.ts'
import { requireNewest } from '../../kit/newest.ts'
import { wasOperationApplied } from '../../kit/operation/intent.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { mayGrow, requireStandingOfEdit } from '../../kit/standing.ts'
import { newRequests } from '../../kit/synced.ts'
import { nodeDemand, nodeDocument, slotsOf, takenNumbers } from './nodes.ts'
import { CLAIMED, type ClusterObject, type NodePoolEffects, type NodePoolObject, type Observed } from './observed.ts'
import { plan } from './plan.ts'
import { scalingFor, type UnderusedMemory } from './scaling.ts'

const POOLS_OF = 'node pools of a cluster'
/** A cluster may be created together with pools. */
const CREATIONS: readonly string[] = ['node_pool.create', 'kubernetes_cluster.create']
const BEGINNINGS: readonly string[] = ['node_pool.create', 'node_pool.sync', 'node_pool.delete']
const JOIN_SECONDS_MINIMUM = 60

export const nodePoolController = controller<NodePoolEffects>()({
  name: 'node-pool',
  resource: NodePool,
  sharding: 'by-zone',
  finalizer: finalizerOf(NodePool),
  intent: {
    resourceType: 'node_pool',
    wasApplied: wasOperationApplied(NodePool),
    async release(tx, { accountId, resource, audit: { action } }) {
      if (CREATIONS.includes(action)) await releaseNodePool(tx, { accountId, nodePoolId: resource.id })
    },
  },
  plan,
  reads: [KubernetesCluster, Plan, Zone, ...MACHINE_READS],
  // A pool whose operation is its deletion is deleted here.
  writes: [...MACHINE_WRITES, NodePool],
  open(parts: Parts) {
    const machines = openMachines(parts, 'node_pool')
    const memory: UnderusedMemory = new Map()
    const pools = parts.caches.of(NodePool)
    pools.addIndex(POOLS_OF, ({ metadata: { namespace }, spec }) => [`${namespace}/${spec.clusterId}`])
    return {
      watches: [
        watch(KubernetesCluster, ({ metadata: { namespace, name } }) =>
          pools.by(POOLS_OF, `${namespace}/${name}`).map(keyOf),
        ),
        watch(Plan, () => []),
        watch(Zone, () => []),
        ...machines.watches,
      ],
      observe: (pool) => observe(parts, machines, pool, memory),
      effects: effectsOf(parts, machines),
    }
  },
})

async function observe(
  parts: Parts,
  machines: Machines,
  pool: NodePoolObject,
  memory: UnderusedMemory = new Map(),
): Promise<Observed> {
  const { db, caches, store } = parts
  const { namespace = '', name: nodePoolId } = pool.metadata
  const { clusterId, zone } = pool.spec
  const accountId = await findAccountOf(db, namespace)
  const cluster = caches.of(KubernetesCluster).get({ namespace, name: clusterId })
  const clusterClaim =
    accountId === undefined ? undefined : await orUnavailable(findCluster(db, { accountId, clusterId }))
  const requests = await newRequests(db, pool)
  const begun = requests.find(({ action }) => BEGINNINGS.includes(action))
  const region = caches.of(Zone).get({ name: zone })?.spec.region ?? ''
  const api = await apiViewOf(parts, cluster, clusterClaim)
  const own = machines.observe({ namespace, id: nodePoolId })
  return {
    accountId,
    isClaimed: accountId !== undefined && (await orUnavailable(isNodePoolClaimed(db, { accountId, nodePoolId }))),
    mayGrow: accountId !== undefined && (await mayGrow(parts, accountId)),
    cluster,
    clusterClaim,
    region,
    api,
    machines: own,
    lost: await findLostMachines(parts, { type: 'node_pool', namespace, id: nodePoolId, accountId }),
    removed: await removedServers(parts, pool, own),
    scaling: 'obstacle' in api ? undefined : await scalingOf(parts, pool, { clusterClaim, region, memory }),
    numbersInUse: takenNumbers(pool, own, api),
    edits: [],
    editor: begun === undefined ? await findEditor(store, NodePool, pool, '') : editorActor(begun.username),
  }
}

/** Names of servers are used again: an order counts by the uid of the server, or when an operator gave it up after it
 *  was created. */
async function removedServers(
  { db }: Parts,
  { metadata: { namespace = '' }, status }: NodePoolObject,
  machines: Observed['machines'],
): Promise<readonly string[]> {
  const removed: string[] = []
  for (const { serverId: name, serverUid = '', serverCreatedAt } of status?.nodes ?? []) {
    if (serverCreatedAt === undefined || machines.some(({ serverId }) => serverId === name)) continue
    const of = { kind: Server.kind, namespace, name }
    const isOrdered = await orUnavailable(
      (async () =>
        (await wasRemovalOrdered(db, serverUid)) || (await wasGivenUpSince(db, of, new Date(serverCreatedAt))))(),
    )
    if (isOrdered) removed.push(name)
  }
  return removed
}

/** A cluster that does not report its load blocks only its autoscaling. */
async function scalingOf(
  parts: Parts,
  { metadata: { namespace = '' }, spec, status }: NodePoolObject,
  {
    clusterClaim: claim,
    region,
    memory,
  }: Pick<Observed, 'clusterClaim' | 'region'> & { readonly memory: UnderusedMemory },
): Promise<Observed['scaling']> {
  const isIdle = status?.operation !== undefined && isFinal(status.operation.status)
  if (spec.autoscaling === undefined || !isIdle || claim === undefined) return undefined
  const plans = parts.caches.of(Plan)
  try {
    const load = await controlOf(parts, claim).load(claim.controlPlaneId)
    return scalingFor(memory, claim.controlPlaneId, {
      load,
      pools: parts.caches.of(NodePool).by(POOLS_OF, `${namespace}/${spec.clusterId}`),
      region,
      now: parts.clock.now(),
      planOf: (name) => plans.get({ name }),
    })
  } catch (error) {
    if (error instanceof Unavailable) return undefined
    throw error
  }
}

/** Throws Unavailable where nothing hosts it. */
function controlOf({ controlPlanes }: Parts, { region }: ClusterClaim): ControlPlanes {
  const hosted = controlPlanesIn(controlPlanes ?? { obstacle: 'the controllers have none configured' }, region)
  if ('obstacle' in hosted) throw new Unavailable('the host of the control plane')
  return hosted.control
}

async function apiViewOf(
  parts: Parts,
  cluster: ClusterObject | undefined,
  claim: ClusterClaim | undefined,
): Promise<Observed['api']> {
  if (claim === undefined || cluster?.status?.isMade !== true) return { obstacle: 'its cluster to run' }
  const { controlPlaneId: id } = claim
  try {
    const control = controlOf(parts, claim)
    const plane = await control.get(id)
    if (plane?.apiServer !== 'healthy') return { obstacle: 'the API of its cluster to answer' }
    const [{ releases, nodesObstacle }, nodes, requests] = await Promise.all([
      control.offer(),
      control.nodes(id),
      control.servingRequests(id),
    ])
    return nodesObstacle === '' ? { plane, releases, nodes, requests } : { obstacle: nodesObstacle }
  } catch (error) {
    if (error instanceof Unavailable) return { obstacle: 'the API of its cluster to answer' }
    throw error
  }
}

type Effects = EffectsOn<NodePoolEffects, NodePoolSpec, NodePoolStatus>
/** The effects that use the API of the cluster. */
type ClusterEffectName = 'issue' | 'revoke' | 'approve' | 'mark' | 'drain' | 'keep' | 'forget'

/** Throws Unavailable when its claim no longer exists, or its host is not known: the next reconcile decides. */
async function planeOf(
  parts: Parts,
  { metadata: { namespace = '' }, spec: { clusterId } }: NodePoolObject,
): Promise<{ readonly control: ControlPlanes; readonly id: string }> {
  const accountId = await findAccountOf(parts.db, namespace)
  const claim =
    accountId === undefined ? undefined : await orUnavailable(findCluster(parts.db, { accountId, clusterId }))
  if (claim === undefined) throw new Unavailable('the claim of the cluster')
  return { control: controlOf(parts, claim), id: claim.controlPlaneId }
}

const effectsOf = (parts: Parts, machines: Machines): Effects => ({
  ...clusterEffects(parts),
  // A claim for a pool that is deleted meanwhile would never be released.
  claim: withRefusalCondition(CLAIMED, async (demand, pool) => {
    await requireNewest(parts.store, NodePool, pool)
    await requireStandingOfEdit(parts, pool, demand.accountId)
    await orUnavailable(parts.db.transaction().execute((tx) => claimNodePool(tx, demand)))
    return grantedCondition(CLAIMED)
  }),
  async deliver(delivery, pool) {
    const observed = await observe(parts, machines, pool)
    const slot = slotsOf(pool, observed, pool.spec.count).find(({ role }) => role === delivery.role)
    // The configuration has changed meanwhile: the next reconcile delivers the new one.
    if (slot === undefined || nodeDemand(pool, observed, slot).configuration?.fingerprint !== delivery.fingerprint)
      return undefined
    const document = nodeDocument(pool, observed, slot)
    if (document === undefined) throw new Unavailable('the control plane of the node')
    const bootstrapToken = slot.node === undefined ? await tokenOf(parts, pool) : undefined
    await deliverDocument(parts, delivery, {
      ...document,
      kubernetes: { ...document.kubernetes, ...defined({ bootstrapToken }) },
    })
    return undefined
  },
  async release(id) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseNodePool(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})

const clusterEffects = (parts: Parts): Pick<Effects, ClusterEffectName> => ({
  async issue({ tokenId }, pool) {
    const { control, id } = await planeOf(parts, pool)
    await control.joinToken(id, tokenId, pool.metadata.name, JOIN_SECONDS)
    // By this clock, which is also used for the comparison: that of the host may differ.
    const expiresAt = new Date(parts.clock.now().getTime() + JOIN_SECONDS * 1_000).toISOString()
    return { status: { join: { tokenId, expiresAt } } }
  },
  async revoke({ tokenId }, pool) {
    const { control, id } = await planeOf(parts, pool)
    await control.removeJoinToken(id, tokenId, pool.metadata.name)
    return { status: { join: undefined } }
  },
  async approve({ requests }, pool) {
    const { control, id } = await planeOf(parts, pool)
    for (const request of requests) await control.approveServing(id, request)
    return undefined
  },
  async mark({ names, marks }, pool) {
    const { control, id } = await planeOf(parts, pool)
    for (const name of names) await control.markNode(id, name, marks)
    return undefined
  },
  async drain({ names, known }, pool) {
    const { control, id } = await planeOf(parts, pool)
    const drains = new Map(known.map((drain) => [drain.hostname, drain]))
    for (const hostname of names) {
      const since = drains.get(hostname)?.since ?? parts.clock.now().toISOString()
      drains.set(hostname, { hostname, since, isDone: await control.drain(id, hostname) })
    }
    return { isReading: true, status: { drains: [...drains.values()] } }
  },
  async keep({ names, known }, pool) {
    const { control, id } = await planeOf(parts, pool)
    for (const name of names) await control.uncordon(id, name)
    return {
      status: {
        drains: known.map((drain) => (names.includes(drain.hostname) ? { ...drain, isCalledOff: true } : drain)),
      },
    }
  },
  async forget({ names }, pool) {
    const { control, id } = await planeOf(parts, pool)
    for (const name of names) await control.removeNode(id, name)
    return undefined
  },
})

/** The token that was last issued, while it is valid; undefined when there is none. */
async function tokenOf(parts: Parts, pool: NodePoolObject): Promise<string | undefined> {
  const { join } = pool.status ?? {}
  if (join === undefined) return undefined
  const { control, id } = await planeOf(parts, pool)
  const left = Math.floor((Date.parse(join.expiresAt) - parts.clock.now().getTime()) / 1_000)
  const seconds = Math.max(left, JOIN_SECONDS_MINIMUM)
  return (await control.joinToken(id, join.tokenId, pool.metadata.name, seconds)).token
}
