/** Hosts of control planes, as their settings name them and as they answer. */
import { countClustersOf, ensureKubernetesHosts, type KubernetesHostRow } from '../../db/kubernetes-host/index.ts'
import { newestRelease, minorsOf } from '../../domain/kubernetes-cluster.ts'
import { clustersCapacity } from '../../domain/kubernetes-host.ts'
import { badField, conflict, notFound, Unavailable, unavailable } from '../../domain/problem.ts'
import { hostsOf } from '../../kit/control-planes/configuration.ts'
import type { ControlPlaneOffer } from '../../kit/control-planes/control.ts'
import { replicasFor } from '../../kit/control-planes/replicas.ts'
import { type Endpoint, operatorEndpoint } from '../../kit/http/endpoint.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { Plan, Region, Zone } from '../../resources/catalog/index.ts'
import * as routes from '../../resources/kubernetes-host/index.ts'
import { completeList } from '../list/page.ts'
import type { Parts } from '../parts.ts'

export function kubernetesHostEndpoints(parts: Parts): readonly Endpoint[] {
  const [regions, zones, plans] = [parts.caches.of(Region), parts.caches.of(Zone), parts.caches.of(Plan)]
  return [
    operatorEndpoint(routes.listKubernetesHosts, async ({ query: { region }, now }) => {
      const hosts = await listHosts(parts, now)
      return completeList(hosts.filter((host) => region === undefined || host.region === region))
    }),
    operatorEndpoint(routes.getKubernetesHost, async ({ params: { id }, now }) => {
      const host = (await listHosts(parts, now)).find((each) => each.id === id)
      if (host === undefined) throw notFound('kubernetes_host')
      return { status: 200, body: { kubernetes_host: host } }
    }),
    operatorEndpoint(routes.bootstrapKubernetesHost, async ({ body }) => {
      if (regions.get({ name: body.region }) === undefined)
        throw badField('region', `there is no region ${body.region}`)
      const foreign = body.zones.find((name) => zones.get({ name })?.spec.region !== body.region)
      if (foreign !== undefined) throw badField('zones', `${foreign} is no zone of region ${body.region}`)
      if (plans.get({ name: body.plan }) === undefined) throw badField('plan', `there is no plan ${body.plan}`)
      if (configuredRegions(parts).includes(body.region))
        throw conflict('state_not_allowed', `Region ${body.region} has a host of control planes.`)
      throw unavailable(
        'not_configured',
        'The platform makes no hosts of control planes from servers. Run one in a cluster of yours (chart: ' +
          'controlPlanes), and name it with its region in SVCCLOUD_CONTROL_PLANES_FILE.',
      )
    }),
  ]
}

const NONE = { obstacle: 'there is none' }

const configuredRegions = ({ controlPlanes = NONE }: Parts): readonly string[] =>
  hostsOf(controlPlanes).flatMap(({ regions }) => regions)

/** Each host is asked once, whatever regions it has. */
async function listHosts(parts: Parts, now: Date): Promise<readonly routes.KubernetesHostView[]> {
  const names = configuredRegions(parts)
  const [rows, hosted, offers] = await Promise.all([
    ensureKubernetesHosts(parts.db, names, { now, newId: () => newUuid(parts.random) }),
    countClustersOf(parts.db, names),
    offersOf(parts),
  ])
  return rows.map((row) => viewOf(parts, row, { offer: offers.get(row.region), hosted: hosted.get(row.region) ?? 0 }))
}

/** By region; undefined while its host does not answer. */
async function offersOf({ controlPlanes = NONE }: Parts): Promise<ReadonlyMap<string, ControlPlaneOffer | undefined>> {
  const asked = hostsOf(controlPlanes).map(async ({ control, regions }) => {
    const offer = await control.offer().catch((error: unknown) => {
      if (error instanceof Unavailable) return undefined
      throw error
    })
    return regions.map((region) => [region, offer] as const)
  })
  return new Map((await Promise.all(asked)).flat())
}

function viewOf(
  { caches }: Parts,
  { id, region, createdAt }: KubernetesHostRow,
  { offer, hosted }: { readonly offer: ControlPlaneOffer | undefined; readonly hosted: number },
): routes.KubernetesHostView {
  const zones = caches
    .of(Zone)
    .list()
    .filter(({ spec }) => spec.region === region)
    .map(({ metadata: { name } }) => name)
    .toSorted()
  const [newestMinor] = minorsOf(offer?.releases ?? [])
  return {
    ...{ id, region, zones, clusters_hosted: hosted, created_at: createdAt.toISOString() },
    version: newestMinor === undefined ? null : (newestRelease(newestMinor, offer?.releases ?? []) ?? null),
    ...(offer === undefined
      ? { state: 'error', node_count: 0, clusters_capacity: hosted, etcd_capacity_bytes: 0 }
      : answeredView(offer, hosted)),
  }
}

type Answered = Pick<routes.KubernetesHostView, 'state' | 'node_count' | 'clusters_capacity' | 'etcd_capacity_bytes'>

function answeredView(offer: ControlPlaneOffer, hosted: number): Answered {
  const replicas = replicasFor(offer)
  return {
    state: replicas === undefined ? 'degraded' : 'ready',
    node_count: offer.nodeCount,
    clusters_capacity: clustersCapacity(offer, hosted, replicas === 1 ? offer.bytesOfOne : offer.bytesOfThree),
    etcd_capacity_bytes: offer.etcdBytes,
  }
}
