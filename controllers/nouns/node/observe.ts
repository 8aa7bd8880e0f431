/** What the node controller reads before it decides. */
import { findForgottenRoom } from '../../../db/look/index.ts'
import { findCandidate, findDedication, listCandidates, listTenants } from '../../../db/placement/index.ts'
import { listKubernetesRequests } from '../../../db/request/index.ts'
import { listStoragesOn } from '../../../db/storage/index.ts'
import { listGroupsOn } from '../../../db/server-group/index.ts'
import { evacueeKey } from '../../../domain/node/evacuation.ts'
import { isReachableState } from '../../../domain/node/rules.ts'
import type { GuestOnNode } from '../../../domain/node/placement.ts'
import { type KubeObject, Lease, type LeaseSpec, Namespace, Secret } from '../../../kit/kube/object.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { guestsOnNodes } from '../../../resources/instance/guests-on-nodes.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  AGENT_ACCESS_SECRET_NAME,
  HEARTBEAT_LEASE_NAME,
  Instance,
  NODE_REPORT_NAME,
  nodeNamespace,
  NodeReport,
  type NodeReportStatus,
  Observation,
  Volume,
  type VolumeSpec,
} from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { cpuPoolOf } from '../../kit/cpu-pool.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { findEditor, requesterOf } from '../../kit/operation/direct-edit.ts'
import type { Parts } from '../../kit/parts.ts'
import { bootStorageName } from '../server/index.ts'
import { detectEdit } from './direct-edit.ts'
import {
  type Heartbeat,
  type HeldReport,
  needsServers,
  type NodeObject,
  type Observed,
  type TenantServer,
  type TenantStorage,
} from './observed.ts'
import { OBSERVERS_MAXIMUM } from './unreachable.ts'

export type Listen = (node: string, lease: KubeObject<LeaseSpec> | undefined) => Heartbeat | undefined

/** Detects renewals by their change: clocks of nodes are never compared with ours, and a controller that has just
 *  started gives every node the full time. */
export function heartbeats(clock: Clock): Listen {
  const heard = new Map<string, { readonly version: string; readonly at: number }>()
  return (node, lease) => {
    if (lease === undefined) return void heard.delete(node)
    const version = lease.metadata.resourceVersion ?? ''
    const now = clock.monotonicMilliseconds()
    if (heard.get(node)?.version !== version) heard.set(node, { version, at: now })
    return { renewedAt: lease.spec.renewTime, ageSeconds: (now - (heard.get(node)?.at ?? now)) / 1_000 }
  }
}

export type ListenHeld = (node: string, status: NodeReportStatus | undefined) => HeldReport | undefined

/** The same for reports of held objects. A report that existed when this process started may have any age: its age
 *  counts from the next report on. */
export function heldReports(clock: Clock): ListenHeld {
  const heard = new Map<string, { readonly version: string; readonly at: number }>()
  return (node, { held, heldAt: version = '' } = {}) => {
    if (held === undefined) return void heard.delete(node)
    const now = clock.monotonicMilliseconds()
    const before = heard.get(node)
    if (before?.version !== version)
      heard.set(node, { version, at: before === undefined ? Number.NEGATIVE_INFINITY : now })
    return { counts: held, ageSeconds: (now - (heard.get(node)?.at ?? now)) / 1_000 }
  }
}

export interface Listening {
  readonly heartbeat: Listen
  readonly held: ListenHeld
}

export async function observe(parts: Parts, listen: Listening, node: NodeObject): Promise<Observed> {
  const { caches, store, db } = parts
  const { name } = node.metadata
  const namespace = nodeNamespace(name)
  const hasNamespace = caches.of(Namespace).get({ name: namespace }) !== undefined
  const isBusy = needsServers(node)
  const report = caches.of(NodeReport).get({ namespace, name: NODE_REPORT_NAME })
  return {
    hasNamespace,
    hasAccess: hasNamespace && (await store.get(Secret, { namespace, name: AGENT_ACCESS_SECRET_NAME })) !== undefined,
    report: report?.spec,
    held: listen.held(name, report?.status),
    heartbeat: listen.heartbeat(name, caches.of(Lease).get({ namespace, name: HEARTBEAT_LEASE_NAME })),
    mirror: await orUnavailable(findCandidate(db, name)),
    forgotten: await orUnavailable(findForgottenRoom(db, name, guestsOn(caches, name))),
    dedication: await orUnavailable(findDedication(db, name)),
    blockedDeletions:
      node.status?.fence === undefined
        ? []
        : blockedDeletionsOn(parts, namespace, {
            areGuestsGone: node.status.fence.method !== 'storage_block',
            isNodeLeaving: node.metadata.deletionTimestamp !== undefined,
          }),
    observers: isStateUnreachable(node) ? observersOf(parts, node) : [],
    observations: caches
      .of(Observation)
      .list()
      .filter((observation) => observation.metadata.name === name),
    editor: await editorOf(parts, node),
    guests: isBusy ? await readGuests(parts, name) : [],
    storages: isBusy ? await readStorages(parts, name) : [],
    volumeCount: caches.of(Volume).inNamespace(namespace).length,
    instanceCount: caches.of(Instance).inNamespace(namespace).length,
    zoneNodes: isBusy ? await orUnavailable(listCandidates(db, node.spec.zone)) : [],
  }
}

/** The guests of the node, from the caches. */
export function guestsOn(caches: Parts['caches'], node: string): readonly GuestOnNode[] {
  const namespace = nodeNamespace(node)
  return guestsOnNodes({
    instances: caches.of(Instance).inNamespace(namespace),
    reports: caches.of(NodeReport).inNamespace(namespace),
    sizeOf: (key) => caches.of(Volume).get(key)?.spec.sizeGibibytes,
  })
}

const isStateUnreachable = ({ status }: NodeObject): boolean => status?.state === 'unreachable'

/** Reachable nodes of the same zone; the same ones as long as they are reachable. */
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

/** A deleted disk on the host itself is left to its agent, which removes it when it returns. Nothing waits for that
 *  (`controllers/nouns/storage/`), except when the node itself is being removed. Data on shared storage is removed with
 *  the Volume that is not retained: that Volume waits for an agent that can remove the data, or for the Volume of
 *  another node that removes it instead. Guests that only lost their shared storage stay deleted too: the agent ends
 *  them when it returns, and their servers continue elsewhere. */
const blockedDeletionsOn = (
  { caches }: Parts,
  namespace: string,
  { areGuestsGone, isNodeLeaving }: { readonly areGuestsGone: boolean; readonly isNodeLeaving: boolean },
): Observed['blockedDeletions'] => [
  ...caches
    .of(Instance)
    .inNamespace(namespace)
    .filter((instance) => areGuestsGone && isLeaving(instance))
    .map(({ metadata: { name } }) => ({ kind: 'Instance', name }) as const),
  ...caches
    .of(Volume)
    .inNamespace(namespace)
    .filter(
      (volume) =>
        isLeaving(volume) &&
        (volume.spec.pool === undefined
          ? isNodeLeaving && areGuestsGone
          : volume.spec.isRetained === true || hasSuccessor(caches, volume)),
    )
    .map(({ metadata: { name } }) => ({ kind: 'Volume', name }) as const),
]

const hasSuccessor = (
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

/** The editor that admission recorded; without that record, the one from the object itself. */
async function editorOf({ store, db }: Parts, node: NodeObject): Promise<string> {
  const edit = detectEdit(node)
  if (edit === undefined) return ''
  const { uid = '', generation = 0 } = node.metadata
  const requests = await orUnavailable(
    listKubernetesRequests(db, uid, { after: node.status?.observedGeneration ?? 0, upTo: generation }),
  )
  return requesterOf(requests, edit.kind) ?? findEditor(store, Node, node, edit.field)
}

/** Servers with room on the node, or moving there. */
export async function readGuests({ caches, db }: Parts, node: string): Promise<readonly TenantServer[]> {
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

/** Storages without a server whose data is on the node, or moving there. */
export async function readStorages({ caches, db }: Parts, node: string): Promise<readonly TenantStorage[]> {
  return (await orUnavailable(listStoragesOn(db, node))).map(({ accountId, ...claim }) => {
    const namespace = accountNamespace(accountId)
    return { namespace, ...claim, storage: caches.of(Storage).get({ namespace, name: claim.storageId }) }
  })
}

/** A disk that was never finished has no data to continue with elsewhere. */
const isOnPool = (storage: KubeObject<StorageSpec, StorageStatus> | undefined): boolean =>
  storage?.status?.pool !== undefined && storage.status.state === 'online'
