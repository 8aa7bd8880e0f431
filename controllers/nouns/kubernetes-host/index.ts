/** The controller of hosts of control planes that the platform creates: its watches, what it reads, and its effects.
 *  `plan.ts` decides. */
import { Unavailable } from '../../../domain/problem.ts'
import {
  countClustersOf,
  ensurePlatformAccount,
  findMadeHost,
  forgetHost,
  keepHostSecrets,
  type MadeHostRow,
  openHostSecrets,
  registerHost,
  sealHostSecrets,
} from '../../../db/kubernetes-host/index.ts'
import type { HostClustersSettings } from '../../../integrations/control-planes/host-clusters.ts'
import { Namespace } from '../../../kit/kube/object.ts'
import { watch, type Watch } from '../../../kit/reconcile/reconciler.ts'
import { makeCertificate } from '../../../kit/sys/certificate.ts'
import { newBase62 } from '../../../kit/sys/random.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import {
  KubernetesHost,
  type KubernetesHostSpec,
  type KubernetesHostStatus,
} from '../../../resources/kubernetes-host/index.ts'
import { Network } from '../../../resources/network/index.ts'
import { NodePool } from '../../../resources/node-pool/index.ts'
import { staffAuditEffect } from '../../kit/audit.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { SYSTEM_ACTOR } from '../../kit/operation/direct-edit.ts'
import { derivedStanza } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'
import type { HostClusters } from './host-clusters.ts'
import { install } from './install.ts'
import type { HostEffects, HostObject, Observed, HostSettings } from './observed.ts'
import { NAMESPACE, namesOf } from './parts.ts'
import { plan, urlOf } from './plan.ts'

export type { HostClusters } from './host-clusters.ts'

/** Parts besides those of every controller. */
export interface HostClusterAccess {
  /** Absent where the platform creates no hosts. */
  readonly hostClusters?: HostClusters | undefined
  /** Opens tokens and keys of hosts; none is created without it. */
  readonly sealing?: Sealing
}

export type HostParts = Parts & HostClusterAccess

const TOKEN_CHARACTERS = 43
const CERTIFICATE_DAYS = 3_650
const NOT_SET = 'no host clusters are configured for the controllers (SVCCLOUD_HOST_CLUSTERS_FILE)'

export const kubernetesHostController = controller<HostEffects>()({
  name: 'kubernetes-host',
  resource: KubernetesHost,
  sharding: 'common',
  finalizer: finalizerOf(KubernetesHost),
  plan,
  reads: [],
  // A cluster whose host is deleted is deleted here.
  writes: [Namespace, Network, KubernetesCluster, NodePool],
  open(parts: HostParts) {
    return {
      watches: watches(parts),
      observe: (host) => observe(parts, host),
      effects: effectsOf(parts),
    }
  },
})

const watches = ({ caches }: Parts): readonly Watch[] => {
  const hosts = caches.of(KubernetesHost)
  const keys = ({ metadata }: { readonly metadata: { readonly namespace?: string } }) =>
    metadata.namespace === NAMESPACE ? hosts.list().map(({ metadata: { name } }) => ({ name })) : []
  return [watch(Network, keys), watch(KubernetesCluster, keys), watch(NodePool, keys), watch(Namespace, () => [])]
}

async function observe(parts: HostParts, host: HostObject): Promise<Observed> {
  const { db, caches } = parts
  const names = namesOf(host)
  const row = await orUnavailable(findMadeHost(db, host.metadata.name))
  const hosted = await orUnavailable(countClustersOf(db, [host.spec.region]))
  const at = (name: string) => ({ namespace: NAMESPACE, name })
  return {
    row,
    settings: settingsOf(parts),
    network: caches.of(Network).get(at(names.network)),
    cluster: caches.of(KubernetesCluster).get(at(names.cluster)),
    pools: names.pools.flatMap(({ name }) => caches.of(NodePool).get(at(name)) ?? []),
    silence: await silenceOf(parts, host, row),
    clustersHosted: hosted.get(host.spec.region) ?? 0,
  }
}

function settingsOf({ hostClusters, sealing }: HostClusterAccess): HostSettings | { readonly obstacle: string } {
  if (hostClusters === undefined) return { obstacle: NOT_SET }
  if (sealing?.isAvailable !== true) return { obstacle: 'there are no sealing keys' }
  const { publicIpv4, digest } = hostClusters.settings
  return { publicIpv4, digest }
}

const certifiedName = ({ name, namespace }: HostClustersSettings['service']): string => `${name}.${namespace}.svc`

/** The host is asked at its address, whether it is registered there yet or not. */
async function silenceOf(
  { hostClusters, sealing }: HostParts,
  { spec: { region }, status }: HostObject,
  row: MadeHostRow | undefined,
): Promise<string | undefined> {
  const { address } = status?.process ?? {}
  if (address === undefined || row === undefined) return undefined
  if (hostClusters === undefined || sealing?.isAvailable !== true) return NOT_SET
  const { token, serverName } = openHostSecrets(sealing, row)
  const url = urlOf(address)
  try {
    await hostClusters.connect({ region, url, token, authority: row.authority, serverName }).offer()
    return ''
  } catch (error) {
    if (error instanceof Unavailable) return 'it does not answer'
    throw error
  }
}

function requireSecrets({ sealing, hostClusters }: HostClusterAccess): {
  readonly sealing: Sealing
  readonly hostClusters: HostClusters
} {
  if (sealing?.isAvailable !== true || hostClusters === undefined) throw new Unavailable(NOT_SET)
  return { sealing, hostClusters }
}

async function claim(parts: HostParts, id: string): Promise<void> {
  const { db, clock, random } = parts
  const { sealing, hostClusters } = requireSecrets(parts)
  const common = { days: CERTIFICATE_DAYS, now: clock.now(), random }
  const serverName = certifiedName(hostClusters.settings.service)
  const authority = await makeCertificate({ ...common, commonName: serverName, isAuthority: true })
  const certificate = await makeCertificate({ ...common, commonName: serverName, hosts: [serverName], authority })
  const secrets = { token: newBase62(random, TOKEN_CHARACTERS), certificate, serverName }
  await orUnavailable(db.transaction().execute((tx) => ensurePlatformAccount(tx, clock.now())))
  const sealedSecrets = sealHostSecrets(sealing, id, secrets)
  await orUnavailable(keepHostSecrets(db, id, { authority: authority.certificate, sealedSecrets }))
}

const effectsOf = (parts: HostParts): EffectsOn<HostEffects, KubernetesHostSpec, KubernetesHostStatus> => ({
  async claim({ id }) {
    await claim(parts, id)
    return undefined
  },
  async install({ id, digest }, host) {
    const { sealing, hostClusters } = requireSecrets(parts)
    const row = await orUnavailable(findMadeHost(parts.db, id))
    if (row === undefined) throw new Unavailable('the secrets of the host')
    const process = await install(parts, {
      hostClusters,
      clusterId: namesOf(host).cluster,
      secrets: openHostSecrets(sealing, row),
      authority: row.authority,
    })
    return { isReading: true, status: { process: { ...process, digest, appliedAt: parts.clock.now().toISOString() } } }
  },
  async register({ id, url }) {
    await orUnavailable(registerHost(parts.db, id, url, parts.clock.now()))
    return undefined
  },
  async dismantle({ id, clusterId }, { metadata: { uid = '' } }) {
    const stanza = derivedStanza('kubernetes_cluster.delete', {
      seed: `${id}/${uid}`,
      actor: SYSTEM_ACTOR,
      now: parts.clock.now(),
    })
    const operation = { ...stanza, arguments: { associated: 'delete' } }
    const key = { namespace: NAMESPACE, name: clusterId }
    parts.caches.of(KubernetesCluster).apply(await parts.store.patch(KubernetesCluster, key, { spec: { operation } }))
    return undefined
  },
  async forget({ id }) {
    await orUnavailable(forgetHost(parts.db, id))
    return undefined
  },
  audit: staffAuditEffect(parts, 'kubernetes_host'),
})
