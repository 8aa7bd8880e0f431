/** Making, reading and deleting dev clusters, and how people get into them. */
import {
  DEV_MEMORY_MEBIBYTES,
  plainVersion,
  requireDeletableDevCluster,
  requireRunningDevCluster,
} from '../../domain/dev-cluster.ts'
import { endOfLife, newestRelease } from '../../domain/kubernetes-cluster.ts'
import { appendAudit } from '../../db/audit/index.ts'
import { claimDevCluster, releaseDevCluster } from '../../db/dev-cluster/index.ts'
import { DEV_CLUSTER_RELEASES } from '../../kit/control-planes/versions.ts'
import type { Answer, Call, Customer } from '../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import type { Route } from '../../kit/http/route.ts'
import { newOrderedUuid, newUuid } from '../../kit/sys/random.ts'
import { capabilitiesOf, Zone } from '../../resources/catalog/index.ts'
import { finalizerOf } from '../../resources/define.ts'
import {
  createDevCluster,
  deleteDevCluster,
  DevCluster,
  devClusterFactsOf,
  type DevClusterSpec,
  type DevClusterVersionView,
  getDevCluster,
  getDevClusterKubeconfig,
  getDevClusterToken,
  listDevClusters,
  listDevClusterVersions,
} from '../../resources/dev-cluster/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { ACCOUNT_LABEL, LAST_CHANGE_ANNOTATION } from '../../resources/labels.ts'
import { accept, commitEarlier } from '../change/accept.ts'
import { auditEntryOf } from '../change/audit.ts'
import { ensureNamespace } from '../change/namespaces.ts'
import { type AccessParts, requireIssuer, tokenFor } from '../kubernetes-cluster/index.ts'
import { storedOf } from '../list/stored.ts'
import { getObject, listObjects } from '../plain/objects.ts'
import { chooseKeys } from '../server/index.ts'
import { devKubeconfigOf } from './access.ts'
import type { DevClusterObject, DevClusters } from './clusters.ts'
import {
  offeredVersions,
  rehearseDevCluster,
  requireDevClusters,
  requireDevPlan,
  requireNetwork,
  requireVersion,
} from './rules.ts'

export type DevClusterParts = AccessParts & { readonly devClusters: DevClusters }

export const devClusterEndpoints = (parts: DevClusterParts): readonly Endpoint[] => [
  listObjects(parts, parts.devClusters, listDevClusters, () => ({})),
  customerEndpoint(listDevClusterVersions, async ({ now }) => ({ status: 200, body: versionsOf(parts, now) })),
  getObject(parts.devClusters, getDevCluster),
  customerEndpoint(createDevCluster, (call) => create(parts, call)),
  customerEndpoint(deleteDevCluster, (call) => remove(parts, call)),
  customerEndpoint(getDevClusterKubeconfig, async (call) => {
    const cluster = await running(parts, call)
    const issuer = await requireIssuer(parts)
    const body = devKubeconfigOf(cluster, { issuer, now: call.now, random: parts.random })
    await noteRead(parts, call, cluster)
    return { status: 200, body }
  }),
  customerEndpoint(getDevClusterToken, async (call) => {
    const cluster = await running(parts, call)
    const { caller, now } = call
    const body = tokenFor(await requireIssuer(parts), { caller, now, audience: cluster.metadata.uid ?? '' })
    await noteRead(parts, call, cluster)
    return { status: 200, body }
  }),
]

/** Throws 409 for one that does not run, and 503 for one that nobody gets into. */
async function running(
  { devClusters }: DevClusterParts,
  { caller, params }: { readonly caller: Customer; readonly params: { readonly id: string } },
): Promise<DevClusterObject> {
  const cluster = await devClusters.read(caller.accountId, params.id)
  requireRunningDevCluster(devClusterFactsOf(storedOf(cluster)))
  return cluster
}

const noteRead = <R extends Route>(
  parts: DevClusterParts,
  call: Call<R, Customer>,
  { metadata: { name: resourceId } }: DevClusterObject,
): Promise<void> => parts.db.transaction().execute((tx) => appendAudit(tx, auditEntryOf(call, { resourceId }), parts))

async function create(parts: DevClusterParts, call: Call<typeof createDevCluster, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body: { zone, name, plan, public_ipv4: publicIpv4, network_id: networkId, labels, ...body },
    now,
  } = call
  requireDevClusters(parts, zone)
  const version = requireVersion(body.version)
  requireDevPlan(parts, plan)
  const wanted = { zone, plan, publicIpv4, ...(networkId === undefined ? {} : { networkId }) }
  requireNetwork(parts, accountId, wanted)
  const sshKeys = [...(await chooseKeys(parts, accountId, body))]
  await requireIssuer(parts)
  await rehearseDevCluster(parts, accountId, wanted)
  // Lists are newest first by second of creation, then by id: the id keeps the order within the second.
  const id = newOrderedUuid(parts.random, now)
  const spec: DevClusterSpec = { ...wanted, name, version, sshKeys, labels }
  const [changeId, namespace] = [newUuid(parts.random), accountNamespace(accountId)]
  const written = await accept(parts, {
    id: changeId,
    accountId,
    resource: { type: 'dev_cluster', id },
    audit: auditEntryOf(call, { resourceId: id, detail: { zone, name, plan, version } }),
    claim: (tx) => claimDevCluster(tx, { accountId, devClusterId: id, name }),
    release: (tx) => releaseDevCluster(tx, { accountId, devClusterId: id }),
    write: async () => {
      await ensureNamespace(parts, accountId)
      const metadata = {
        name: id,
        namespace,
        labels: { [ACCOUNT_LABEL]: accountId },
        annotations: { [LAST_CHANGE_ANNOTATION]: changeId },
        finalizers: [finalizerOf(DevCluster)],
      }
      return parts.store.create(DevCluster, { metadata, spec })
    },
    read: () => parts.store.get(DevCluster, { namespace, name: id }),
    wasApplied: () => true, // nobody else has the id
  })
  parts.devClusters.cache.apply(written)
  return { status: 201, body: { dev_cluster: parts.devClusters.viewOf(written) } }
}

/** Its server, and what it has claimed, its controller takes away. */
async function remove(parts: DevClusterParts, call: Call<typeof deleteDevCluster, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id },
  } = call
  const { devClusters } = parts
  const key = { namespace: accountNamespace(accountId), name: id }
  const before = await devClusters.read(accountId, id)
  requireDeletableDevCluster(devClusterFactsOf(storedOf(before)))
  const written = await accept(parts, {
    id: newUuid(parts.random),
    accountId,
    resource: { type: 'dev_cluster', id },
    audit: auditEntryOf(call, { resourceId: id, detail: { name: before.spec.name } }),
    write: async () => {
      const object = await devClusters.read(accountId, id)
      requireDeletableDevCluster(devClusterFactsOf(storedOf(object)))
      const { uid, annotations } = object.metadata
      const earlier = annotations?.[LAST_CHANGE_ANNOTATION]
      if (earlier !== undefined) await commitEarlier(parts, earlier)
      await parts.store.delete(DevCluster, key, uid === undefined ? {} : { uid })
      const deletionTimestamp = object.metadata.deletionTimestamp ?? call.now.toISOString()
      return (
        (await parts.store.get(DevCluster, key)) ?? { ...object, metadata: { ...object.metadata, deletionTimestamp } }
      )
    },
    read: () => parts.store.get(DevCluster, key),
    wasApplied: ({ metadata }) => metadata.deletionTimestamp !== undefined,
  })
  return { status: 200, body: { dev_cluster: devClusters.viewOf(written) } }
}

function versionsOf({ caches }: DevClusterParts, now: Date) {
  const items = offeredVersions().map((version, index): DevClusterVersionView => {
    const end = endOfLife(version)
    return {
      version,
      k3s_version: plainVersion(newestRelease(version, DEV_CLUSTER_RELEASES) ?? ''),
      is_default: index === 0,
      status: end !== undefined && end <= now ? 'expired' : 'supported',
    }
  })
  const zones = caches
    .of(Zone)
    .list()
    .filter((zone) => capabilitiesOf(zone).includes('dev_clusters'))
    .map(({ metadata: { name } }) => name)
    .toSorted()
  return { items, next_cursor: null, minimum_memory_mebibytes: DEV_MEMORY_MEBIBYTES, zones }
}
