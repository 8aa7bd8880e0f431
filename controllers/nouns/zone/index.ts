/** The zone controller: whether a zone accepts new servers, which plans it has no room for, whether it could bear the
 *  loss of a node, and the policy of its shared storage. */
import { evacueeKey } from '../../../domain/node/evacuation.ts'
import { fullestOf } from '../../../domain/zone/high-availability.ts'
import { NETWORK_FEATURES, networkVerdict } from '../../../domain/network/guest-network.ts'
import { isReachableState } from '../../../domain/node/rules.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { listTenants, listCandidates } from '../../../db/placement/index.ts'
import { listGroupsOn } from '../../../db/server-group/index.ts'
import { controlPlanesIn, type ControlPlanesOffer } from '../../../integrations/control-planes/configuration.ts'
import { type ObjectStorageOffer, offerIn } from '../../../integrations/object-storage/configuration.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { NODE_REPORT_NAME, nodeNamespace, NodeReport, type NodeReportSpec } from '../../../resources/instance/index.ts'
import { Plan, Zone } from '../../../resources/catalog/index.ts'
import { isFenceCapable, Node } from '../../../resources/node/index.ts'
import { PublicPool } from '../../../resources/public-pool/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { staffAuditEffect } from '../../kit/audit.ts'
import { backupHosts, copySourcesOf } from '../../kit/backup-hosts.ts'
import { cpuPoolOf } from '../../kit/cpu-pool.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { hasObjectStorage } from '../../kit/internal-tenant.ts'
import { isCompute, type NodeObject } from '../node/index.ts'
import { present } from '../../kit/operation/decision.ts'
import { findEditor } from '../../kit/operation/direct-edit.ts'
import type { Parts } from '../../kit/parts.ts'
import { storageOperationEffect } from '../../kit/platform-operation.ts'
import { poolsOf } from '../../kit/shared-pools.ts'
import { indexMisplaced, readMisplaced } from './misplaced.ts'
import type { Observed, ZoneEffects, ZoneObject } from './observed.ts'
import { plan } from './plan.ts'
import { sharedStorageEffects } from './shared-storage.ts'
import { detectEdit } from './storage-policy.ts'

async function observe(parts: Parts & { readonly sealing?: Sealing }, root: ZoneObject): Promise<Observed> {
  const { caches, db, ovn, store, objectStorage, controlPlanes } = parts
  const zone = root.metadata.name
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
        pools: reportOf(caches, name)?.pools ?? [],
      })),
    ...privateNetworksOf(
      caches
        .of(Node)
        .list()
        .filter((node) => node.spec.zone === zone && isHost(node) && isReachableState(node.status?.state))
        .flatMap(({ metadata: { name: node } }) =>
          present(reportOf(caches, node)).map((report) => ({ node, ...report })),
        ),
      ovn !== undefined,
    ),
    publicFamilies: publicFamiliesOf(caches, zone),
    ...backupsOf(parts, root),
    ...(objectStorage === undefined ? {} : { objectStorage: objectStorageOf(objectStorage, zone) }),
    ...(controlPlanes === undefined ? {} : { kubernetes: await kubernetesOf(controlPlanes, root) }),
    builtTemplates: builtOnAll(
      caches
        .of(Node)
        .list()
        .filter((node) => node.spec.zone === zone && isHost(node) && isReachableState(node.status?.state))
        .map(({ metadata: { name } }) => reportOf(caches, name)?.templates ?? []),
    ),
    pools: poolsOfZone(caches, zone),
    ...(await readMisplaced(parts, zone)),
    ...(detectEdit(root) ? { editor: await findEditor(store, Zone, root, 'sharedStorage') } : {}),
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

const reportOf = (caches: Parts['caches'], node: string): NodeReportSpec | undefined =>
  caches.of(NodeReport).get({ namespace: nodeNamespace(node), name: NODE_REPORT_NAME })?.spec

/** Shared storage that nodes of the zone reach. */
const poolsOfZone = (caches: Parts['caches'], zone: string): readonly string[] =>
  [
    ...new Set(
      caches
        .of(Node)
        .list()
        .filter(({ spec }) => spec.zone === zone)
        .flatMap(({ metadata }) => poolsOf(caches, metadata.name)),
    ),
  ].sort()

const FAMILY_USES = { ipv4: 'server_ipv4', ipv6: 'server_ipv6_prefix' } as const

/** The families for which a pool of the zone assigns public addresses to servers. */
function publicFamiliesOf(caches: Parts['caches'], zone: string): readonly ('ipv4' | 'ipv6')[] {
  const giving = caches
    .of(PublicPool)
    .list()
    .filter(({ spec, status }) => spec.zone === zone && status?.state === 'active')
  return (['ipv4', 'ipv6'] as const).filter((family) => giving.some(({ spec }) => spec.use === FAMILY_USES[family]))
}

function backupsOf(
  parts: Parts & { readonly sealing?: Sealing },
  { metadata: { name: zone }, spec: { region } }: ZoneObject,
): Pick<Observed, 'hasBackups' | 'backupSources'> {
  const { caches } = parts
  return {
    hasBackups: backupHosts(caches, zone).length > 0,
    backupSources: copySourcesOf(caches, { zone, region, hasObjectStorage: (each) => hasObjectStorage(parts, each) }),
  }
}

function objectStorageOf(configured: ObjectStorageOffer, zone: string): NonNullable<Observed['objectStorage']> {
  const offer = offerIn(configured, zone)
  return 'obstacle' in offer ? { objectStorageObstacle: offer.obstacle } : { objectStorageBackend: offer.backend }
}

/** While the host of control planes does not answer, its last answer stays. */
async function kubernetesOf(
  configured: ControlPlanesOffer,
  { spec: { region }, status }: ZoneObject,
): Promise<NonNullable<Observed['kubernetes']>> {
  const offer = controlPlanesIn(configured, region)
  if ('obstacle' in offer) return { kubernetesObstacle: offer.obstacle, playgroundsObstacle: offer.obstacle }
  try {
    const { releases, guests } = await offer.control.offer()
    return {
      kubernetesReleases: [...releases],
      ...(guests.obstacle === '' ? { hasPlaygrounds: true } : { playgroundsObstacle: guests.obstacle }),
    }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    const { kubernetesReleases, hasPlaygrounds, playgroundsObstacle } = status ?? {}
    const silent = 'its host does not answer'
    return kubernetesReleases === undefined
      ? { kubernetesObstacle: silent, playgroundsObstacle: silent }
      : { kubernetesReleases, hasPlaygrounds, playgroundsObstacle }
  }
}

export interface NetworkedHost extends Pick<NodeReportSpec, 'features' | 'networkObstacle'> {
  readonly node: string
}

const NO_OVN = 'Open Virtual Network is not configured for the controllers (SVCCLOUD_OVN_NORTHBOUND)'

/** From the reports of the hosts. Simulated hosts need no OVN; undefined while there are no hosts. */
export function privateNetworksOf(
  hosts: readonly NetworkedHost[],
  hasOvn: boolean,
): Pick<Observed, 'hasPrivateNetworks' | 'networkObstacle'> {
  if (hosts.length === 0) return {}
  const without = hosts
    .filter(({ features }) => networkVerdict(features, false).reason !== 'Simulated')
    .find(({ features }) => !hasOvn || !features.includes(NETWORK_FEATURES.public))
  if (without === undefined) return { hasPrivateNetworks: true }
  const { node, features, networkObstacle = 'its agent does not say why' } = without
  const isHostReady = features.includes(NETWORK_FEATURES.public)
  return {
    hasPrivateNetworks: false,
    networkObstacle: isHostReady ? NO_OVN : `host ${node} has user-mode networking: ${networkObstacle}`,
  }
}

/** What all of the lists contain; nothing where there are no lists. */
export const builtOnAll = ([first = [], ...others]: readonly (readonly string[])[]): readonly string[] =>
  first.filter((name) => others.every((names) => names.includes(name))).sort()

/** Servers run on it, or could. */
export const isHost = (node: NodeObject): boolean =>
  isCompute(node) && node.status?.state !== undefined && node.status.state !== 'provisioning'

export const zoneController = controller<ZoneEffects>()({
  name: 'zone',
  resource: Zone,
  sharding: 'zones',
  plan,
  reads: [Node, Plan, NodeReport, PublicPool, Server],
  writes: [],
  // Storages that must be on shared storage are moved there.
  patches: [Storage],
  open(parts: Parts) {
    const { caches } = parts
    indexMisplaced(caches.of(Storage))
    return {
      watches: [
        watch(Node, ({ spec }) => [{ name: spec.zone }]),
        watch(PublicPool, ({ spec }) => [{ name: spec.zone }]),
        watch(Plan, () =>
          caches
            .of(Zone)
            .list()
            .map(({ metadata }) => ({ name: metadata.name })),
        ),
        watch(NodeReport, () => []),
        watch(Server, () => []),
        watch(Storage, () => []),
      ],
      observe: (zone) => observe(parts, zone),
      effects: {
        audit: staffAuditEffect(parts, 'zone'),
        orderStorage: storageOperationEffect(parts),
        ...sharedStorageEffects(parts),
      },
    }
  },
})
