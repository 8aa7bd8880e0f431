/** The host process in a host cluster: the manifests of the chart, applied with an administrator's token that is valid
 *  for ten minutes, and the Secret that the platform has created; and the state of the process. */
import { defined } from '../../../domain/defined.ts'
import { PLATFORM_ACCOUNT_ID } from '../../../domain/account/platform-account.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { findCluster } from '../../../db/kubernetes-cluster/index.ts'
import type { HostSecrets } from '../../../db/kubernetes-host/index.ts'
import { controlPlanesIn } from '../../../integrations/control-planes/configuration.ts'
import type { HostDocument, HostManifest } from '../../../integrations/control-planes/host-clusters.ts'
import { type Key, type KubeObject, Namespace, type ResourceType, Secret } from '../../../kit/kube/object.ts'
import { type Draft, isApiError, type Store } from '../../../kit/kube/store.ts'
import { KubernetesCluster } from '../../../resources/kubernetes-cluster/index.ts'
import type { KubernetesHostStatus } from '../../../resources/kubernetes-host/index.ts'
import { orUnavailable } from '../../kit/outage.ts'
import { truncated } from '../../kit/operation/decision.ts'
import type { Parts } from '../../kit/parts.ts'
import type { HostClusters } from './host-clusters.ts'
import { NAMESPACE } from './parts.ts'

type Process = NonNullable<KubernetesHostStatus['process']>
type ProcessState = Omit<Process, 'digest' | 'appliedAt'>

export interface Installation {
  readonly hostClusters: HostClusters
  readonly clusterId: string
  readonly secrets: HostSecrets
  /** PEM. */
  readonly authority: string
}

const TOKEN_SECONDS = 600

/** The state after it was applied: a refusal of the cluster is its detail. Throws Unavailable while the cluster does
 *  not answer. */
export async function install(parts: Parts, installation: Installation): Promise<ProcessState> {
  const { hostClusters, clusterId } = installation
  const { endpoint, certificateAuthority: ca } =
    parts.caches.of(KubernetesCluster).get({ namespace: NAMESPACE, name: clusterId })?.status ?? {}
  const claim = await orUnavailable(findCluster(parts.db, { accountId: PLATFORM_ACCOUNT_ID, clusterId }))
  if (claim === undefined || endpoint === undefined || ca === undefined) throw new Unavailable('the host cluster')
  const hosted = controlPlanesIn(parts.controlPlanes ?? { obstacle: '' }, claim.region)
  if ('obstacle' in hosted) throw new Unavailable('the host of the control plane of the host cluster')
  const { token } = await hosted.control.userToken(claim.controlPlaneId, 'admin', TOKEN_SECONDS)
  const { store, close } = hostClusters.open({ url: endpoint, ca, authorization: async () => `Bearer ${token}` })
  try {
    await apply(store, installation)
    return await seenOf(store, hostClusters)
  } catch (error) {
    if (!isApiError(error)) throw error
    return { isReady: false, detail: truncated(`its cluster refuses it: ${error.message}`) }
  } finally {
    await close()
  }
}

async function apply(store: Store, { hostClusters, secrets, authority }: Installation): Promise<void> {
  const { manifests, service: place } = hostClusters.settings
  await store.apply(Namespace, { metadata: { name: place.namespace }, spec: {} })
  const data = {
    'ca.crt': authority,
    'tls.crt': secrets.certificate.certificate,
    'tls.key': secrets.certificate.key,
    token: secrets.token,
  }
  await store.apply(Secret, {
    metadata: { ...place },
    spec: undefined,
    data: Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')])),
  })
  // Kinds without a spec have none in their manifest either.
  for (const { type, document } of manifests) await store.apply(type, asDraft(document))
}

/** Unchanged: kinds without a spec have none in their manifest either, and API servers accept no field that they do not
 *  know. */
const asDraft = (document: HostDocument) => document as HostDocument & Draft<object, never>

interface ServiceStatus {
  readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string; readonly hostname?: string }[] }
}
interface SetStatus {
  readonly observedGeneration?: number
  readonly updatedReplicas?: number
  readonly readyReplicas?: number
}
interface PodStatus {
  readonly containerStatuses?: readonly {
    readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } }
  }[]
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
}
const Pod: ResourceType<unknown, PodStatus> = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  scope: 'Namespaced',
}

async function seenOf(store: Store, { settings: { manifests, service: place } }: HostClusters): Promise<ProcessState> {
  const service = await read<ServiceStatus>(store, manifests, 'Service', place)
  const set = await read<SetStatus>(store, manifests, 'StatefulSet', place)
  const { observedGeneration = 0, updatedReplicas = 0, readyReplicas = 0 } = set?.status ?? {}
  const isReady = observedGeneration >= (set?.metadata.generation ?? 1) && updatedReplicas > 0 && readyReplicas > 0
  const [ingress] = service?.status?.loadBalancer?.ingress ?? []
  const address = ingress?.ip ?? ingress?.hostname
  const detail = isReady
    ? address === undefined
      ? 'its balancer has no address yet'
      : ''
    : await podDetail(store, place.namespace)
  return { isReady, detail: truncated(detail), ...defined({ address }) }
}

function read<Status>(
  store: Store,
  manifests: readonly HostManifest[],
  kind: string,
  key: Key,
): Promise<KubeObject<unknown, Status> | undefined> {
  const type = manifests.find((each) => each.type.kind === kind)?.type
  if (type === undefined) throw new Error(`the manifests of host clusters have no ${kind}`)
  return store.get(type as ResourceType<unknown, Status>, key) // as Kubernetes defines that kind
}

async function podDetail(store: Store, namespace: string): Promise<string> {
  const { items } = await store.list(Pod, { namespace, labelSelector: 'app.kubernetes.io/component=control-planes' })
  const [pod] = items
  if (pod === undefined) return 'its pod is not there yet'
  const unscheduled = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False')
  if (unscheduled?.message !== undefined) return `its pod has no place: ${unscheduled.message}`
  const waiting = pod.status?.containerStatuses?.find(({ state }) => state?.waiting !== undefined)?.state?.waiting
  if (waiting === undefined) return 'its pod is not ready yet'
  return `its pod waits: ${waiting.reason ?? ''}${waiting.message === undefined ? '' : `, ${waiting.message}`}`
}
