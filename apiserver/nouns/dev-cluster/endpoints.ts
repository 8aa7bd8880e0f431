/** Creating, reading and deleting dev clusters, and access to them. */
import { devClusterChanges, offeredDevVersions } from '../../../changes/dev-cluster.ts'
import { DEV_MEMORY_MEBIBYTES, plainVersion, requireRunningDevCluster } from '../../../domain/dev-cluster/rules.ts'
import { endOfLife, newestRelease } from '../../../domain/kubernetes-cluster/rules.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { DEV_CLUSTER_RELEASES } from '../../../domain/kubernetes-cluster/versions.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { capabilitiesOf, Zone } from '../../../resources/catalog/index.ts'
import {
  createDevCluster,
  devClusterFactsOf,
  type DevClusterVersionView,
  getDevCluster,
  getDevClusterKubeconfig,
  getDevClusterToken,
  listDevClusters,
  listDevClusterVersions,
} from '../../../resources/dev-cluster/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { makerOf } from '../../kit/create.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { type AccessParts, requireIssuer, tokenFor } from '../kubernetes-cluster/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { getObject, listObjects } from '../../kit/plain/objects.ts'
import { chooseKeys } from '../server/index.ts'
import { devKubeconfigOf, ownAdmin } from './access.ts'
import type { DevClusterObject, DevClusters } from './objects.ts'

export type DevClusterParts = AccessParts & { readonly devClusters: DevClusters }

export const devClusterEndpoints = (parts: DevClusterParts): readonly Endpoint[] => [
  listObjects(parts, parts.devClusters, listDevClusters, () => ({})),
  customerEndpoint(listDevClusterVersions, async ({ now }) => ({ status: 200, body: versionsOf(parts, now) })),
  getObject(parts.devClusters, getDevCluster),
  customerEndpoint(createDevCluster, (call) => create(parts, call)),
  ...changeEndpoints(parts, devClusterChanges, {
    ...parts.devClusters,
    factsOf: (cluster) => devClusterFactsOf(storedOf(cluster)),
  }),
  customerEndpoint(getDevClusterKubeconfig, async (call) => {
    const cluster = await running(parts, call)
    const issuer = await requireIssuer(parts)
    const admin = await ownAdmin(parts, call, cluster)
    const body = devKubeconfigOf(cluster, { issuer, now: call.now, random: parts.random, admin })
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

/** Throws 409 for a cluster that does not run, and 503 for one that cannot be accessed. */
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

const DEV_CLUSTER = { title: 'a dev cluster', hint: 'add one to the account, or give ssh_keys' }

async function create(parts: DevClusterParts, call: Call<typeof createDevCluster, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    body: { zone, name, plan, public_ipv4: publicIpv4, network_id: networkId, labels, ...body },
  } = call
  const sshKeys = [...(await chooseKeys(parts, accountId, body, DEV_CLUSTER))]
  await requireIssuer(parts)
  const version = body.version ?? offeredDevVersions()[0] ?? ''
  const network = networkId === undefined ? {} : { networkId }
  const spec = { zone, plan, publicIpv4, ...network, name, version, sshKeys, labels }
  return makerOf(parts, devClusterChanges, parts.devClusters)(call, spec)
}

function versionsOf({ caches }: DevClusterParts, now: Date) {
  const items = offeredDevVersions().map((version, index): DevClusterVersionView => {
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
