/** The node controller: what wakes it, how it hears heartbeats, and its effects. What it decides is `plan.ts`. */
import { listKubernetesRequests } from '../../db/request/index.ts'
import { findCandidate, forgetNode, listCandidates, listTenants, mirrorNode } from '../../db/placement/index.ts'
import { listGroupsOn } from '../../db/server-group/index.ts'
import { evacueeKey } from '../../domain/evacuation.ts'
import { isReachableState } from '../../domain/node-rules.ts'
import type { Candidate } from '../../domain/placement.ts'
import { type KubeObject, Lease, type LeaseSpec, Namespace, Secret } from '../../kit/kube/object.ts'
import { isAlreadyExists } from '../../kit/kube/store.ts'
import { type Effect, type Reconciler, watch } from '../../kit/reconcile/reconciler.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newBase62 } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import {
  AGENT_ACCESS_SECRET_NAME,
  HEARTBEAT_LEASE_NAME,
  Instance,
  type InstanceSpec,
  NODE_REPORT_NAME,
  nodeNamespace,
  nodeOf,
  nodeOfNamespace,
  NodeReport,
  Observation,
  Volume,
  type VolumeSpec,
} from '../../resources/instance/index.ts'
import { NODE_FINALIZER } from '../../resources/labels.ts'
import { Node, type NodeSpec, type NodeStatus } from '../../resources/node/index.ts'
import { Plan } from '../../resources/catalog/index.ts'
import { Server } from '../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../resources/storage/index.ts'
import { staffAuditEffect } from '../audit.ts'
import { cpuPoolOf } from '../catalog/cpu-pool.ts'
import { orUnavailable } from '../database.ts'
import {
  type OpenPowerControl,
  type OpenStorageAccess,
  powerControlWith,
  powerEffect,
  storageAccessWith,
  storageEffect,
} from '../fencing/index.ts'
import { removeAgentFinalizer } from '../fencing/agent-finalizer.ts'
import { requireNewest } from '../newest.ts'
import type { Parts } from '../parts.ts'
import { editorOf, requesterOf } from '../server/direct-edit.ts'
import { bootStorageName } from '../server/drafts.ts'
import { isDeleting } from '../server/observed.ts'
import { detectEdit } from './direct-edit.ts'
import { serverOperationEffect } from './server-operation.ts'
import { plan } from './plan.ts'
import { type Heartbeat, needsServers, type NodeObject, type Observed, type TenantServer } from './observed.ts'
import { OBSERVERS_MAXIMUM } from './unreachable.ts'

const TOKEN_LENGTH = 43

/** How the management controllers of hosts and their shared storage are reached; as their Secrets let in when absent.
 */
export interface FencingAccess {
  readonly openPower?: OpenPowerControl | undefined
  readonly openStorage?: OpenStorageAccess | undefined
}

export function nodeReconciler(
  parts: Parts,
  { openPower = powerControlWith(parts), openStorage = storageAccessWith(parts) }: FencingAccess = {},
): Reconciler<NodeSpec, NodeStatus, Observed> {
  const listen = heartbeats(parts.clock)
  const nodes = parts.caches.of(Node)
  const nodesOf = (namespace = '') =>
    [nodeOfNamespace(namespace)].flatMap((name) => (name === undefined ? [] : [{ name }]))
  const whenServersMatter = (name: string | undefined) => {
    const node = name === undefined ? undefined : nodes.get({ name })
    return node !== undefined && needsServers(node) ? [{ name: node.metadata.name }] : []
  }
  return {
    name: 'node',
    type: Node,
    finalizer: NODE_FINALIZER,
    watches: [
      watch(NodeReport, ({ metadata }) => nodesOf(metadata.namespace)),
      watch(Lease, ({ metadata }) => nodesOf(metadata.namespace)),
      watch(Namespace, ({ metadata }) => nodesOf(metadata.name)),
      watch(Server, ({ status }) => [
        ...whenServersMatter(status?.nodeName),
        ...whenServersMatter(status?.migration?.sourceNode),
      ]),
      watch(Instance, (instance) => whenServersMatter(nodeOf(instance))),
      watch(Volume, (volume) => whenServersMatter(nodeOf(volume))),
      watch(Observation, ({ metadata }) => [{ name: metadata.name }]),
      ...[watch(Plan, () => []), watch(Storage, () => [])],
    ],
    observe: (node) => observe(parts, listen, node),
    plan,
    effects: {
      mirror: mirrorEffect(parts),
      forget: forgetEffect(parts),
      grant: grantEffect(parts),
      audit: staffAuditEffect(parts, 'node'),
      order: serverOperationEffect(parts),
      power: powerEffect(openPower, parts.clock) as Effect,
      storage: storageEffect(openStorage, parts) as Effect, // on nodes only
      vacate: vacateEffect(parts),
    },
  }
}

/** Hears renewals by seeing them change: clocks of nodes are never compared with ours, and a controller that has just
 *  started
 *  gives every node its whole time. */
function heartbeats(clock: Clock): (node: string, lease: KubeObject<LeaseSpec> | undefined) => Heartbeat | undefined {
  const heard = new Map<string, { readonly version: string; readonly at: number }>()
  return (node, lease) => {
    if (lease === undefined) return void heard.delete(node)
    const version = lease.metadata.resourceVersion ?? ''
    const now = clock.monotonicMilliseconds()
    if (heard.get(node)?.version !== version) heard.set(node, { version, at: now })
    return { renewedAt: lease.spec.renewTime, ageSeconds: (now - (heard.get(node)?.at ?? now)) / 1_000 }
  }
}

async function observe(parts: Parts, listen: ReturnType<typeof heartbeats>, node: NodeObject): Promise<Observed> {
  const { caches, store, db } = parts
  const { name } = node.metadata
  const namespace = nodeNamespace(name)
  const hasNamespace = caches.of(Namespace).get({ name: namespace }) !== undefined
  const isBusy = needsServers(node)
  return {
    hasNamespace,
    hasAccess: hasNamespace && (await store.get(Secret, { namespace, name: AGENT_ACCESS_SECRET_NAME })) !== undefined,
    report: caches.of(NodeReport).get({ namespace, name: NODE_REPORT_NAME })?.spec,
    heartbeat: listen(name, caches.of(Lease).get({ namespace, name: HEARTBEAT_LEASE_NAME })),
    mirror: await orUnavailable(findCandidate(db, name)),
    blockedDeletions:
      node.status?.fence === undefined
        ? []
        : blockedDeletionsOn(parts, namespace, node.status.fence.method !== 'storage_block'),
    observers: isStateUnreachable(node) ? observersOf(parts, node) : [],
    observations: caches
      .of(Observation)
      .list()
      .filter((observation) => observation.metadata.name === name),
    editor: await findEditor(parts, node),
    guests: isBusy ? await readGuests(parts, name) : [],
    instanceCount: caches.of(Instance).inNamespace(namespace).length,
    zoneNodes: isBusy ? await orUnavailable(listCandidates(db, node.spec.zone)) : [],
  }
}

const isStateUnreachable = ({ status }: NodeObject): boolean => status?.state === 'unreachable'

/** Nodes of the same zone that are heard, always the same ones while they are. */
const observersOf = ({ caches }: Parts, { metadata, spec }: NodeObject): readonly string[] =>
  caches
    .of(Node)
    .list()
    .filter(
      (other) =>
        other.spec.zone === spec.zone && other.metadata.name !== metadata.name && isReachableState(other.status?.state),
    )
    .map((other) => other.metadata.name)
    .sort()
    .slice(0, OBSERVERS_MAXIMUM)

/** Data on shared storage goes with a Volume that is not retained: that one waits for an agent which can remove it, or
 *  for the Volume of a node that does so instead.
 *  Guests that only lost their shared storage may go on elsewhere; but they may answer at their addresses and write to
 *  disks of the host, which nobody else is given. */
const blockedDeletionsOn = (
  { caches }: Parts,
  namespace: string,
  areGuestsGone: boolean,
): Observed['blockedDeletions'] => [
  ...caches
    .of(Instance)
    .inNamespace(namespace)
    .filter((instance) => isLeaving(instance) && (areGuestsGone || isServerKept(caches, instance)))
    .map(({ metadata: { name } }) => ({ kind: 'Instance', name }) as const),
  ...caches
    .of(Volume)
    .inNamespace(namespace)
    .filter(
      (volume) =>
        isLeaving(volume) &&
        (volume.spec.pool === undefined ? areGuestsGone : volume.spec.isRetained === true || hasHeir(caches, volume)),
    )
    .map(({ metadata: { name } }) => ({ kind: 'Volume', name }) as const),
]
/** Its server stays, and has its addresses. */
const isServerKept = (
  caches: Parts['caches'],
  {
    spec: {
      server: { namespace, name },
    },
  }: KubeObject<InstanceSpec>,
): boolean => {
  const server = caches.of(Server).get({ namespace, name })
  return server !== undefined && !isLeaving(server) && !isDeleting(server)
}
const hasHeir = (
  caches: Parts['caches'],
  { metadata: { name, namespace }, spec: { pool } }: KubeObject<VolumeSpec>,
): boolean =>
  caches
    .of(Volume)
    .list()
    .some(
      (other) =>
        other.metadata.name === name &&
        other.metadata.namespace !== namespace &&
        other.spec.pool === pool &&
        other.status !== undefined &&
        !isLeaving(other),
    )
const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined

/** As admission saw it; without it, what the object itself says. Cached objects have no managedFields. */
async function findEditor({ store, db }: Parts, node: NodeObject): Promise<string> {
  const edit = detectEdit(node)
  if (edit === undefined) return ''
  const { uid = '', generation = 0 } = node.metadata
  const requests = await orUnavailable(
    listKubernetesRequests(db, uid, { after: node.status?.observedGeneration ?? 0, upTo: generation }),
  )
  return (
    requesterOf(requests, edit.kind) ??
    editorOf((await store.get(Node, { name: node.metadata.name }))?.metadata ?? node.metadata, edit.field)
  )
}

async function readGuests({ caches, db }: Parts, node: string): Promise<readonly TenantServer[]> {
  const [tenants, groups] = await orUnavailable(Promise.all([listTenants(db, node), listGroupsOn(db, node)]))
  return tenants.map(({ accountId, serverId, isArriving, ...room }) => {
    const namespace = accountNamespace(accountId)
    const server = caches.of(Server).get({ namespace, name: serverId })
    return {
      accountId,
      namespace,
      serverId,
      room,
      isArriving,
      server,
      group: groups.get(evacueeKey(accountId, serverId)),
      cpuPool: cpuPoolOf(caches, server),
      isOnPool: isOnPool(
        server === undefined ? undefined : caches.of(Storage).get({ namespace, name: bootStorageName(server) }),
      ),
    }
  })
}

/** A disk that was never finished has nothing to go on with elsewhere. */
const isOnPool = (storage: KubeObject<StorageSpec, StorageStatus> | undefined): boolean =>
  storage?.status?.pool !== undefined && storage.status.state === 'online'

/** Room on a node that has gone meanwhile would be given to servers. */
const mirrorEffect =
  ({ store, db }: Parts): Effect =>
  async (input, node) => {
    await requireNewest(store, Node, node)
    await orUnavailable(mirrorNode(db, input as unknown as Omit<Candidate, 'used'>)) // the plan of this folder writes it
    return undefined
  }

const forgetEffect =
  ({ db }: Parts): Effect =>
  async (input) => {
    await orUnavailable(forgetNode(db, String(input['node'])))
    return undefined
  }

/** What the API server says to the agent to be let in. Made once; never in status or spec. */
const grantEffect =
  ({ store, random }: Parts): Effect =>
  async (input) => {
    const metadata = { namespace: String(input['namespace']), name: AGENT_ACCESS_SECRET_NAME }
    const data = { token: Buffer.from(newBase62(random, TOKEN_LENGTH)).toString('base64') }
    try {
      await store.create(Secret, { metadata, spec: undefined, data })
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
    return undefined
  }

/** The deletion was written before the report is read here, and an agent that comes back writes its report before it
 *  reads what it shall run:
 *  so either the report shows its boot, and it is asked as any other, or it will see the deletion. */
const vacateEffect =
  ({ store }: Parts): Effect =>
  async (input) => {
    const { namespace, bootId, blockedDeletions } = input as unknown as {
      readonly namespace: string
      readonly bootId: string
      readonly blockedDeletions: Observed['blockedDeletions']
    } // the plan of this folder writes it
    const report = await store.get(NodeReport, { namespace, name: NODE_REPORT_NAME })
    if ((report?.spec.bootId ?? '') !== bootId) return undefined
    for (const { kind, name } of blockedDeletions) await removeAgentFinalizer(store, kind, { namespace, name })
    return undefined
  }
