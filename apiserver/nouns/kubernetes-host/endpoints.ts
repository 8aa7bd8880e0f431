/** Hosts of control planes, configured in the settings or created by the platform, with their current state. */
import { countClustersOf, ensureKubernetesHosts, type KubernetesHostRow } from '../../../db/kubernetes-host/index.ts'
import { newestRelease, minorsOf } from '../../../domain/kubernetes-cluster/rules.ts'
import { clustersCapacity } from '../../../domain/kubernetes-host/rules.ts'
import { notFound, Unavailable } from '../../../domain/problem.ts'
import { configuredHostsOf, hostsOf } from '../../../integrations/control-planes/configuration.ts'
import type { ControlPlaneOffer } from '../../../integrations/control-planes/control.ts'
import { replicasFor } from '../../../integrations/control-planes/replicas.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Plan, Region, Zone } from '../../../resources/catalog/index.ts'
import * as routes from '../../../resources/kubernetes-host/index.ts'
import { KubernetesHost } from '../../../resources/kubernetes-host/index.ts'
import { begunView } from '../../kit/change/begun.ts'
import { completeList } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { bootstrap, type HostObject, type HostParts, isBegun } from './bootstrap.ts'

export function kubernetesHostEndpoints(parts: HostParts): readonly Endpoint[] {
  const { caches } = parts
  void [caches.of(Region), caches.of(Zone), caches.of(Plan), caches.of(KubernetesHost)]
  return [
    operatorEndpoint(routes.listKubernetesHosts, async ({ query: { region }, now }) => {
      const hosts = await listHosts(parts, now)
      return completeList(hosts.filter((host) => region === undefined || host.region === region))
    }),
    operatorEndpoint(routes.getKubernetesHost, async ({ params: { id }, now }) => ({
      status: 200,
      body: { kubernetes_host: await readHost(parts, id, now) },
    })),
    operatorEndpoint(routes.bootstrapKubernetesHost, async (call) => {
      const object = await bootstrap(parts, call)
      const operation = begunView(object, { type: 'kubernetes_host', id: object.metadata.name })
      const host = await readHost(parts, object.metadata.name, call.now)
      return { status: 202, body: { kubernetes_host: host, operation } }
    }),
  ]
}

const NONE = { obstacle: 'there is none' }

async function readHost(parts: Parts, id: string, now: Date): Promise<routes.KubernetesHostView> {
  const host = (await listHosts(parts, now)).find((each) => each.id === id)
  if (host === undefined) throw notFound('kubernetes_host')
  return host
}

/** Each host is asked once, even if it serves several regions. */
async function listHosts(parts: Parts, now: Date): Promise<readonly routes.KubernetesHostView[]> {
  const { controlPlanes = NONE } = parts
  const configured = configuredHostsOf(controlPlanes).flatMap(({ regions }) => regions)
  const ownHosts = new Map(
    parts.caches
      .of(KubernetesHost)
      .list()
      .filter(({ spec }) => !configured.includes(spec.region))
      .map((host) => [host.spec.region, host]),
  )
  const names = [...configured, ...ownHosts.keys()]
  const [rows, hosted, offers] = await Promise.all([
    ensureKubernetesHosts(parts.db, names, { now, newId: () => newUuid(parts.random) }),
    countClustersOf(parts.db, names),
    offersOf(parts),
  ])
  return rows.map((row) =>
    viewOf(parts, row, {
      object: ownHosts.get(row.region),
      offer: offers.get(row.region),
      hosted: hosted.get(row.region) ?? 0,
    }),
  )
}

/** By region; undefined while its host does not answer. */
async function offersOf({ controlPlanes = NONE }: Parts): Promise<ReadonlyMap<string, ControlPlaneOffer | undefined>> {
  const offers = hostsOf(controlPlanes).map(async ({ control, regions }) => {
    const offer = await control.offer().catch((error: unknown) => {
      if (error instanceof Unavailable) return undefined
      throw error
    })
    return regions.map((region) => [region, offer] as const)
  })
  return new Map((await Promise.all(offers)).flat())
}

interface HostSources {
  /** Undefined for a host from the settings. */
  readonly object: HostObject | undefined
  readonly offer: ControlPlaneOffer | undefined
  readonly hosted: number
}

function viewOf(
  { caches }: Parts,
  { id, region, createdAt }: KubernetesHostRow,
  { object, offer, hosted }: HostSources,
): routes.KubernetesHostView {
  const zones = caches
    .of(Zone)
    .list()
    .filter(({ spec }) => spec.region === region)
    .map(({ metadata: { name } }) => name)
    .toSorted()
  const [newestMinor] = minorsOf(offer?.releases ?? [])
  return {
    id,
    region,
    zones,
    clusters_hosted: hosted,
    created_at: createdAt.toISOString(),
    version: newestMinor === undefined ? null : (newestRelease(newestMinor, offer?.releases ?? []) ?? null),
    ...(offer === undefined ? silentView(object, hosted) : answeredView(offer, hosted)),
  }
}

type HostAnswer = Pick<routes.KubernetesHostView, 'state' | 'node_count' | 'clusters_capacity' | 'etcd_capacity_bytes'>

const silentView = (object: HostObject | undefined, hosted: number): HostAnswer => ({
  state: object !== undefined && object.status?.isMade !== true && isBegun(object) ? 'bootstrapping' : 'error',
  node_count: object?.status?.nodesReady ?? 0,
  clusters_capacity: hosted,
  etcd_capacity_bytes: 0,
})

function answeredView(offer: ControlPlaneOffer, hosted: number): HostAnswer {
  const replicas = replicasFor(offer)
  return {
    state: replicas === undefined ? 'degraded' : 'ready',
    node_count: offer.nodeCount,
    clusters_capacity: clustersCapacity(offer, hosted, replicas === 1 ? offer.bytesOfOne : offer.bytesOfThree),
    etcd_capacity_bytes: offer.etcdBytes,
  }
}
