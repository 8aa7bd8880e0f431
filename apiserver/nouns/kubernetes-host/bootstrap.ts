/** Requests a host of control planes: its requirements of other resources, and the one write that starts it. */
import { requirePrivateNetworks } from '../../../changes/kit/zone.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../../domain/defined.ts'
import { minorOf, MINOR_PATTERN } from '../../../domain/kubernetes-cluster/rules.ts'
import { PLATFORM_ACCOUNT_ID } from '../../../domain/account/platform-account.ts'
import { badField, conflict, unavailable } from '../../../domain/problem.ts'
import { ensureKubernetesHosts, ensurePlatformAccount } from '../../../db/kubernetes-host/index.ts'
import { configuredHostsOf } from '../../../integrations/control-planes/configuration.ts'
import type { ControlPlaneOffer } from '../../../integrations/control-planes/control.ts'
import { replicasFor } from '../../../integrations/control-planes/replicas.ts'
import type { Call, Operator } from '../../../kit/http/call.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { isAlreadyExists } from '../../../kit/kube/store.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { Region, Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import {
  type bootstrapKubernetesHost,
  KubernetesHost,
  type KubernetesHostSpec,
  type KubernetesHostStatus,
} from '../../../resources/kubernetes-host/index.ts'
import { activeOperationOf } from '../../../resources/operation/index.ts'
import { newStanza } from '../../kit/change/accept.ts'
import { patchWithOperation } from '../../kit/change/begin.ts'
import { changeAsOperator } from '../../kit/change/operator-change.ts'
import { requireRelease } from '../kubernetes-cluster/index.ts'
import { rehearseMachines } from '../managed-machine/index.ts'
import { requireNodeImage, requireNodePlan } from '../node-pool/index.ts'
import type { Parts } from '../../kit/parts.ts'
import { WORDS } from '../../kit/words.ts'

export type HostParts = Parts & { readonly sealing: Sealing }
export type HostObject = KubeObject<KubernetesHostSpec, KubernetesHostStatus>
type Bootstrap = Call<typeof bootstrapKubernetesHost, Operator>
type Body = Bootstrap['body']

const NONE = { obstacle: 'there is none' }
const IN_SETTINGS =
  'Run one in a cluster of yours (chart: controlPlanes), and name it with its region in SVCCLOUD_CONTROL_PLANES_FILE.'

/** Its creation is under way, or has succeeded. */
export const isBegun = ({ spec, status }: HostObject): boolean =>
  status?.isMade === true || activeOperationOf({ spec, ...defined({ status }) }) !== undefined

/** Returns the object with its operation. Throws a Problem for an invalid request. */
export async function bootstrap(parts: HostParts, call: Bootstrap): Promise<HostObject> {
  const { body, caller, request, now } = call
  requireReadable(parts, body)
  requireNone(parts, body.region)
  const controlPlaneRegion = await requireMakeable(parts, body)
  await requireRoom(parts, body, now)
  const [row] = await ensureKubernetesHosts(parts.db, [body.region], { now, newId: () => newUuid(parts.random) })
  const id = row?.id ?? ''
  const spec = { ...specOf(body), controlPlaneRegion }
  const stanza = newStanza(parts, 'kubernetes_host.bootstrap', {
    actor: caller.actor,
    requestId: request.requestId,
    now,
  })
  const { region, plan, version } = body
  const detail = { region, zones: body.zones.join(' '), plan, nodes_per_zone: String(body.nodes_per_zone), version }
  const written = await changeAsOperator(parts, call, {
    resource: { type: 'kubernetes_host', id },
    audit: { action: 'kubernetes_host.bootstrap', detail },
    async write() {
      const known = await parts.store.get(KubernetesHost, { name: id })
      if (known !== undefined) {
        requireResumable(known, spec)
        return patchWithOperation(parts, KubernetesHost, known, stanza)
      }
      const metadata = { name: id, finalizers: [finalizerOf(KubernetesHost)] }
      return parts.store.create(KubernetesHost, { metadata, spec: { ...spec, operation: stanza } }).catch((error) => {
        throw isAlreadyExists(error) ? regionInUse(region) : error
      })
    },
  })
  parts.caches.of(KubernetesHost).apply(written)
  return written
}

const specOf = ({ region, zones, plan, nodes_per_zone: nodesPerZone, version }: Body) => ({
  region,
  zones: [...zones],
  plan,
  nodesPerZone,
  version,
})

/** Throws 400. */
function requireReadable({ caches }: Parts, { region, zones, plan, version }: Body): void {
  if (caches.of(Region).get({ name: region }) === undefined) throw badField('region', `there is no region ${region}`)
  const foreign = zones.find((name) => caches.of(Zone).get({ name })?.spec.region !== region)
  if (foreign !== undefined) throw badField('zones', `${foreign} is no zone of region ${region}`)
  if (new Set(zones).size !== zones.length) throw badField('zones', 'names a zone twice')
  requireNodePlan({ caches }, plan)
  if (!MINOR_PATTERN.test(version)) throw badField('version', 'must be a minor version such as 1.36')
}

const regionInUse = (region: string) => conflict('state_not_allowed', `Region ${region} has a host of control planes.`)

/** Throws 409 in a region that has a host, configured in the settings or created. */
function requireNone({ controlPlanes = NONE, caches }: Parts, region: string): void {
  const isConfigured = configuredHostsOf(controlPlanes).some(({ regions }) => regions.includes(region))
  const known = caches
    .of(KubernetesHost)
    .list()
    .some((host) => host.spec.region === region && isBegun(host))
  if (isConfigured || known) throw regionInUse(region)
}

/** Throws 409 for a host that was started already or is being deleted, and for one with other machines. */
function requireResumable(known: HostObject, spec: Omit<KubernetesHostSpec, 'operation'>): void {
  const { operation: _, ...before } = known.spec
  if (isBegun(known)) throw regionInUse(spec.region)
  const resource = { type: 'kubernetes_host', id: known.metadata.name } as const
  if (known.metadata.deletionTimestamp !== undefined)
    throw conflict('state_not_allowed', 'The host is being deleted.', { resource })
  if (!isDeepStrictEqual(before, spec))
    throw conflict(
      'state_not_allowed',
      'The attempt that failed had other values. Repeat them, or delete that host first ' +
        `(kubectl delete kuberneteshost ${known.metadata.name}).`,
      { resource },
    )
}

/** The region whose host runs its control plane. Throws 400 for a version that this region does not offer, and 503 with
 *  what is missing. */
async function requireMakeable(parts: HostParts, { region, zones, version }: Body): Promise<string> {
  const { hostClusters, sealing, controlPlanes = NONE } = parts
  if (hostClusters === undefined)
    throw unavailable(
      'not_configured',
      `The platform is not configured to make hosts of control planes (SVCCLOUD_HOST_CLUSTERS_FILE; chart: ` +
        `controlPlanes.hostClusters). ${IN_SETTINGS}`,
    )
  if (!sealing.isAvailable)
    throw unavailable('not_configured', 'Hosts of control planes need sealing keys, which this deployment lacks.')
  const parent = configuredHostsOf(controlPlanes).find(({ regions }) => regions.includes(hostClusters.region))
  if (parent === undefined)
    throw unavailable(
      'not_configured',
      `The control planes of hosts are run by the host of region ${hostClusters.region}, and the settings name none ` +
        `for it. ${IN_SETTINGS}`,
    )
  const offer = await parent.control.offer()
  requireRunning(offer, hostClusters.region)
  requireRelease(offer.releases, minorOf(version))
  const [zone = '', another] = zones
  if (another !== undefined)
    throw unavailable('not_configured', `The nodes of a cluster are in one network, and so in one zone of ${region}.`)
  requirePrivateNetworks(worldOf(parts.caches), zone, 'zones')
  requireNodeImage(parts, zone)
  return hostClusters.region
}

/** Throws 503 for a host that cannot run clusters with nodes, volumes and load balancers, or has no room. */
function requireRunning(offer: ControlPlaneOffer, region: string): void {
  if (offer.driver === 'simulated')
    throw unavailable('not_configured', `The host of region ${region} only counts: nothing runs there.`)
  if (offer.driver === 'pods')
    throw unavailable(
      'not_configured',
      `Clusters of region ${region} have their control planes in pods of a host cluster, and one of these is not the ` +
        'work of another: name a region whose host runs them as processes.',
    )
  if (offer.nodesObstacle !== '') throw unavailable('not_configured', `Nodes cannot join: ${offer.nodesObstacle}.`)
  if (replicasFor(offer) === undefined)
    throw unavailable('no_capacity', `The host of region ${region} has no memory left for another control plane.`)
}

/** Claims what its machines need and releases it. Throws the refusals that their creation would get. */
async function requireRoom(parts: Parts, { zones, plan, nodes_per_zone: nodes }: Body, now: Date): Promise<void> {
  const publicIpv4 = parts.hostClusters?.publicIpv4 === true
  await parts.db.transaction().execute((tx) => ensurePlatformAccount(tx, now))
  for (const zone of zones)
    await rehearseMachines(parts, WORDS.rest, {
      accountId: PLATFORM_ACCOUNT_ID,
      zone,
      machines: Array.from({ length: nodes }, () => ({ plan, publicIpv4, networkIds: [] })),
    })
}
