/** The controller of Kubernetes clusters: its watches, what it reads, and its effects. `plan.ts` decides. */
import { kubernetesClusterChanges } from '../../../changes/kubernetes-cluster.ts'
import { Unavailable, unavailable } from '../../../domain/problem.ts'
import { newestRelease, TOKEN_ISSUER_URL } from '../../../domain/kubernetes-cluster/rules.ts'
import { findOrganisationOf } from '../../../db/account/index.ts'
import {
  claimCluster,
  type ClusterClaim,
  type ClusterId,
  ensureIssuer,
  findCluster,
  forgetClusterSnapshot,
  listClusterSnapshots,
  listClusterTokens,
  recordClusterSnapshot,
  releaseCluster,
  setClusterRelease,
} from '../../../db/kubernetes-cluster/index.ts'
import { isEdit } from '../../../db/request/index.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import { type ControlPlaneDesired, type ControlPlanes, markOf } from '../../../integrations/control-planes/control.ts'
import { replicasFor } from '../../../integrations/control-planes/replicas.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { type EffectReport, watch } from '../../../kit/reconcile/reconciler.ts'
import { watchNamed } from '../../../kit/reconcile/watch-named.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import {
  KubernetesCluster,
  type KubernetesClusterSpec,
  type KubernetesClusterStatus,
} from '../../../resources/kubernetes-cluster/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { NodePool, type NodePoolSpec } from '../../../resources/node-pool/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { hasObjectStorage } from '../../kit/internal-tenant.ts'
import { intentOf } from '../../kit/changes.ts'
import { requireNewest } from '../../kit/newest.ts'
import { findEditor, editorActor } from '../../kit/operation/direct-edit.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { requireStandingOfEdit } from '../../kit/standing.ts'
import { editsOf, newRequests } from '../../kit/synced.ts'
import { ASSOCIATED_KINDS, openAssociated } from './associated.ts'
import { grantToken } from './grants.ts'
import {
  CLAIMED,
  type ClusterEffects,
  type ClusterObject,
  HOSTED,
  type HostView,
  type Observed,
  SNAPSHOTS_PLACED,
} from './observed.ts'
import { plan } from './plan.ts'
import { deregisterCluster, registerCluster } from './registering.ts'
import { findSnapshotPlace, openSnapshotPlace } from './snapshot-place.ts'

export { openKubernetesMetrics } from './metrics.ts'

const POOLS_OF = 'pools of a Kubernetes cluster'
const poolsOf = ({ metadata: { namespace }, spec }: KubeObject<NodePoolSpec>) => [`${namespace}/${spec.clusterId}`]

/** Parts besides those of every controller. */
interface SecretAccess {
  /** Opens the key of the issuer; no cluster is created without it. */
  readonly sealing?: Sealing
}
type AllParts = Parts & SecretAccess

export const kubernetesClusterController = controller<ClusterEffects>()({
  name: 'kubernetes-cluster',
  resource: KubernetesCluster,
  sharding: 'by-zone',
  finalizer: finalizerOf(KubernetesCluster),
  intent: intentOf(kubernetesClusterChanges),
  plan,
  reads: [Network, Zone],
  // A cluster whose operation is its deletion is deleted here, and so are its pools.
  writes: [KubernetesCluster, NodePool, ...ASSOCIATED_KINDS],
  open(parts: AllParts) {
    const associatedOf = openAssociated(parts)
    parts.caches.of(NodePool).addIndex(POOLS_OF, poolsOf)
    return {
      watches: [
        watch(NodePool, ({ metadata: { namespace = '' }, spec }) => [{ namespace, name: spec.clusterId }]),
        watchNamed(parts.caches.of(KubernetesCluster), Network, ({ spec }) => spec.networkId),
        watch(Zone, () => []),
      ],
      observe: (cluster) => observe(parts, cluster, associatedOf),
      effects: effectsOf(parts),
    }
  },
})

async function observe(
  parts: AllParts,
  cluster: ClusterObject,
  associatedOf: ReturnType<typeof openAssociated>,
): Promise<Observed> {
  const { db, caches, store } = parts
  const { metadata, spec, status } = cluster
  const { namespace = '', name: clusterId } = metadata
  const accountId = await findAccountOf(db, namespace)
  const id = { accountId: accountId ?? '', clusterId }
  const claim = accountId === undefined ? undefined : await orUnavailable(findCluster(db, id))
  const requests = await newRequests(db, cluster)
  const begun = requests.find((request) => !isEdit(request))
  const isEdited = requests.length > 0 || spec.version !== status?.version || metadata.deletionTimestamp !== undefined
  return {
    accountId,
    claim,
    hasNetwork: caches.of(Network).get({ namespace, name: spec.networkId })?.status?.ipv4Cidr !== undefined,
    snapshots: claim === undefined ? [] : await orUnavailable(listClusterSnapshots(db, id)),
    tokens: claim === undefined ? [] : await orUnavailable(listClusterTokens(db, id)),
    host: await hostViewOf(parts, cluster, claim),
    place: claim === undefined ? undefined : await placeMarkOf(parts, { ...claim, ...id }),
    platform: await platformOf(parts, accountId),
    pools: caches.of(NodePool).by(POOLS_OF, `${namespace}/${clusterId}`),
    associated:
      spec.operation?.kind === 'kubernetes_cluster.delete' ? associatedOf({ namespace, name: clusterId }) : [],
    edits: editsOf(requests),
    editor:
      begun !== undefined
        ? editorActor(begun.username)
        : isEdited
          ? await findEditor(store, KubernetesCluster, cluster, '')
          : '',
  }
}

async function platformOf(
  { db, organisationPlatform }: AllParts,
  accountId: string | undefined,
): Promise<Observed['platform']> {
  if (organisationPlatform === undefined) return { isConfigured: false, organisationId: undefined }
  const organisationId = accountId === undefined ? undefined : await orUnavailable(findOrganisationOf(db, accountId))
  return { isConfigured: true, organisationId }
}

async function placeMarkOf(parts: AllParts, cluster: ClusterClaim & ClusterId): Promise<string | undefined> {
  if (!hasObjectStorage(parts, cluster.zone)) return undefined
  const place = await findSnapshotPlace(parts, cluster)
  return place === undefined ? '' : markOf(place)
}

const controlIn = (
  { controlPlanes }: Parts,
  region: string,
): { readonly control: ControlPlanes } | { readonly obstacle: string } =>
  controlPlanesIn(controlPlanes ?? { obstacle: 'the controllers have none configured' }, region)

/** The region whose host runs its control plane. */
const hostRegionOf = ({ caches }: Parts, { zone, controlPlaneRegion }: KubernetesClusterSpec): string | undefined =>
  controlPlaneRegion ?? caches.of(Zone).get({ name: zone })?.spec.region

async function hostViewOf(
  parts: Parts,
  { spec }: ClusterObject,
  claim: ClusterClaim | undefined,
): Promise<Observed['host']> {
  const region = claim?.region ?? hostRegionOf(parts, spec) ?? ''
  const hosted = controlIn(parts, region)
  if ('obstacle' in hosted) return { obstacle: `the host of its control plane: ${hosted.obstacle}` }
  const { control } = hosted
  try {
    const offer = await control.offer()
    if (claim === undefined) return { offer, plane: undefined, snapshots: [], nodes: [] }
    const plane = await control.get(claim.controlPlaneId)
    const snapshots = plane === undefined ? [] : await control.snapshots(claim.controlPlaneId)
    return { offer, plane, snapshots, nodes: await nodesOf(control, claim, plane) }
  } catch (error) {
    if (error instanceof Unavailable) return { obstacle: 'the host of its control plane to answer' }
    throw error
  }
}

/** Its API may be unavailable just now; the reconcile does not wait for it. */
async function nodesOf(
  control: ControlPlanes,
  { controlPlaneId }: ClusterClaim,
  plane: HostView['plane'],
): Promise<HostView['nodes']> {
  if (plane?.apiServer !== 'healthy') return []
  try {
    return await control.nodes(controlPlaneId)
  } catch (error) {
    if (error instanceof Unavailable) return []
    throw error
  }
}

/** Throws Unavailable where nothing can be sealed or opened. */
function sealingOf({ sealing }: SecretAccess): Sealing {
  if (sealing?.isAvailable !== true) throw new Unavailable('the sealing key of the issuer of tokens')
  return sealing
}

const NOT_PLACED = 'Its snapshots are with its control plane only: the object storage, or its host, does not answer.'

async function desiredOf(parts: AllParts, claim: ClusterClaim): Promise<ControlPlaneDesired> {
  const { publicKey } = await orUnavailable(ensureIssuer(parts.db, sealingOf(parts)))
  const { controlPlaneId: id, release, replicas } = claim
  return {
    id,
    release,
    replicas: replicas === 1 ? 1 : 3,
    serverNames: [],
    podCidrs: [claim.podCidr],
    serviceCidrs: [claim.serviceCidr],
    issuer: { url: TOKEN_ISSUER_URL, audience: id, keys: [publicKey] },
  }
}

/** A store that is unavailable must not block anything else. */
async function tellPlace(
  parts: AllParts,
  { claim, control }: { readonly claim: ClusterClaim; readonly control: ControlPlanes },
  id: ClusterId,
): Promise<EffectReport> {
  try {
    await control.keepSnapshotsIn(claim.controlPlaneId, await openSnapshotPlace(parts, { ...claim, ...id }))
    return grantedCondition(SNAPSHOTS_PLACED)
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    return { conditions: [{ type: SNAPSHOTS_PLACED, status: 'False', reason: 'Unreachable', message: NOT_PLACED }] }
  }
}

const raisePools =
  ({ store }: Parts): EffectsOn<ClusterEffects, KubernetesClusterSpec, KubernetesClusterStatus>['raisePools'] =>
  async ({ version, names }, { metadata: { namespace = '' } }) => {
    for (const name of names) await store.patch(NodePool, { namespace, name }, { spec: { version } })
    return undefined
  }

/** Throws Unavailable when its claim no longer exists, or its host is not known: the next reconcile decides. */
const placesOf = (parts: Parts) => async (id: Parameters<typeof findCluster>[1]) => {
  const claim = await orUnavailable(findCluster(parts.db, id))
  if (claim === undefined) throw new Unavailable('the claim of the cluster')
  const hosted = controlIn(parts, claim.region)
  if ('obstacle' in hosted) throw new Unavailable('the host of its control plane')
  return { claim, control: hosted.control }
}

/** A claim for a cluster that is deleted meanwhile would never be released. */
async function claim(parts: AllParts, id: ClusterId, cluster: ClusterObject): Promise<EffectReport> {
  const { db, random } = parts
  await requireNewest(parts.store, KubernetesCluster, cluster)
  await requireStandingOfEdit(parts, cluster, id.accountId)
  const { zone, name, networkId, version } = cluster.spec
  const region = hostRegionOf(parts, cluster.spec)
  const hosted = controlIn(parts, region ?? '')
  if ('obstacle' in hosted || region === undefined) throw new Unavailable('the host of control planes')
  const offer = await hosted.control.offer()
  const [release, replicas] = [newestRelease(version, offer.releases), replicasFor(offer)]
  if (release === undefined) throw unavailable('not_configured', `Kubernetes ${version} is not offered.`)
  if (replicas === undefined)
    throw unavailable('no_capacity', 'The host of control planes has no memory left for another one.')
  const controlPlane = { controlPlaneId: newUuid(random), release, replicas }
  const demand = { ...id, zone, region, name, networkId, ...controlPlane }
  await orUnavailable(db.transaction().execute((tx) => claimCluster(tx, demand, 'spec.networkId')))
  return grantedCondition(CLAIMED)
}

/** The port in kubeconfigs. */
const portOf = (endpoint: string | undefined): number | null =>
  endpoint === undefined ? null : Number(new URL(endpoint).port) || null

function effectsOf(parts: AllParts): EffectsOn<ClusterEffects, KubernetesClusterSpec, KubernetesClusterStatus> {
  const { db } = parts
  const at = placesOf(parts)
  return {
    claim: withRefusalCondition(CLAIMED, (id, cluster) => claim(parts, id, cluster)),
    ensure: withRefusalCondition(HOSTED, async (id) => {
      const { claim, control } = await at(id)
      await control.ensure(await desiredOf(parts, claim))
      return grantedCondition(HOSTED)
    }),
    async setRelease({ release, ...id }) {
      await orUnavailable(setClusterRelease(db, id, release))
      return undefined
    },
    async snapshot({ snapshotId, ...id }) {
      const { claim, control } = await at(id)
      await control.snapshot(claim.controlPlaneId, snapshotId)
      return undefined
    },
    async record({ snapshot, ...id }) {
      await orUnavailable(recordClusterSnapshot(db, id, snapshot))
      return undefined
    },
    place: async (id) => tellPlace(parts, await at(id), id),
    async forget({ snapshotId, ...id }) {
      const { claim, control } = await at(id)
      await control.removeSnapshot(claim.controlPlaneId, snapshotId)
      await orUnavailable(forgetClusterSnapshot(db, id, snapshotId))
      return undefined
    },
    restore: withRefusalCondition(HOSTED, async ({ restoreId, snapshotId, ...id }) => {
      const { claim, control } = await at(id)
      await control.restore(claim.controlPlaneId, restoreId, snapshotId)
      return grantedCondition(HOSTED)
    }),
    async grant({ addon, tokenId, ...id }) {
      await grantToken(parts, { ...id, addon, tokenId }, await at(id))
      return undefined
    },
    recover: withRefusalCondition(HOSTED, async ({ restoreId, snapshotId, ...id }, { status }) => {
      const { claim, control } = await at(id)
      const [desired, place] = [await desiredOf(parts, claim), await openSnapshotPlace(parts, { ...claim, ...id })]
      await control.recover(desired, place, restoreId, snapshotId, portOf(status?.endpoint))
      return grantedCondition(HOSTED)
    }),
    register: async (input, cluster) => registerCluster(parts, input, cluster, await at(input)),
    deregister: async (input, cluster) => deregisterCluster(parts, input, cluster, await at(input)),
    async forgetNodes({ names, ...id }) {
      const { claim, control } = await at(id)
      for (const name of names) await control.removeNode(claim.controlPlaneId, name)
      return undefined
    },
    raisePools: raisePools(parts),
    async dismantle(id) {
      const { claim, control } = await at(id)
      await control.remove(claim.controlPlaneId)
      return undefined
    },
    async release(id) {
      await orUnavailable(db.transaction().execute((tx) => releaseCluster(tx, id)))
      return undefined
    },
    audit: auditEffect(parts),
  }
}
