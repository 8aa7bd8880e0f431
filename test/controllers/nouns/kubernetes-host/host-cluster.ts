/** A host cluster for tests: settings as the chart renders them, in small, and an API that keeps what is applied. */
import type { HostClusters } from '../../../../controllers/nouns/kubernetes-host/index.ts'
import type { ControlPlanes } from '../../../../integrations/control-planes/control.ts'
import { type HostClustersSettings, readHostClusters } from '../../../../integrations/control-planes/host-clusters.ts'
import type { MadeHost } from '../../../../integrations/control-planes/made-hosts.ts'
import { keyText, type KubeObject, type ResourceType } from '../../../../kit/kube/object.ts'
import { ApiError, type Store } from '../../../../kit/kube/store.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const MANIFESTS = `
apiVersion: v1
kind: ConfigMap
metadata: { name: svccloud-control-planes }
data: { host-cluster.yaml: "images: {}" }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: svccloud-svccloud-control-planes }
rules: []
---
apiVersion: v1
kind: Service
metadata: { name: svccloud-control-planes }
spec: { type: LoadBalancer }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: svccloud-control-planes }
spec: { replicas: 1 }
`
export const REGION = 'home'

/** Reads such a file. */
export async function settingsFrom(content: unknown): Promise<HostClustersSettings | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-host-clusters-'))
  const file = join(folder, 'host-clusters.yaml')
  await writeFile(file, JSON.stringify(content))
  try {
    return await readHostClusters({ hostClustersFile: file })
  } finally {
    await rm(folder, { recursive: true })
  }
}

export interface HostCluster {
  readonly hostClusters: HostClusters
  /** By kind and name. */
  readonly applied: Map<string, KubeObject>
  /** As whom it was asked. */
  readonly tokens: Set<string>
  /** What the cluster says to whatever is applied; empty when it takes all. */
  refusal: string
  /** The pod of the host process is ready, and its balancer has this address. */
  address: string | undefined
  /** Who has asked the host process. */
  readonly asked: MadeHost[]
}

/** Its host process is the given one. */
export async function openHostCluster(process: Pick<ControlPlanes, 'offer'>): Promise<HostCluster> {
  const settings = await settingsFrom({ region: REGION, publicIpv4: false, manifests: MANIFESTS })
  if (settings === undefined) throw new Error('unreachable')
  const applied = new Map<string, KubeObject>()
  const keyed = (type: ResourceType, metadata: KubeObject['metadata']) => `${type.kind} ${keyText(metadata)}`
  const store = {
    async apply(type: ResourceType, draft: KubeObject) {
      // A real one takes no field that the kind lacks.
      if ('status' in draft) throw new ApiError({ code: 400, reason: 'BadRequest', message: 'unknown field status' })
      if (cluster.refusal !== '') throw new ApiError({ code: 403, reason: 'Forbidden', message: cluster.refusal })
      applied.set(keyed(type, draft.metadata), draft)
      return draft
    },
    async get(type: ResourceType, key: KubeObject['metadata']) {
      const found = applied.get(keyed(type, key))
      const isReady = cluster.address !== undefined
      const ready = { observedGeneration: 1, updatedReplicas: 1, readyReplicas: 1 }
      const status =
        type.kind === 'Service'
          ? { loadBalancer: { ingress: isReady ? [{ ip: cluster.address }] : [] } }
          : { ...(isReady ? ready : {}) }
      return found && { ...found, metadata: { ...found.metadata, generation: 1 }, status }
    },
    list: async () => ({ items: [], resourceVersion: '1' }),
  } as unknown as Store // what installing does with it
  const tokens = new Set<string>()
  const asked: MadeHost[] = []
  const cluster: HostCluster = {
    hostClusters: {
      settings,
      open({ authorization }) {
        void authorization?.().then((header) => tokens.add(header ?? ''))
        return { store, close: async () => {} }
      },
      connect: (host) => ({
        async offer() {
          asked.push(host)
          const secret = applied.get('Secret svccloud/svccloud-control-planes')?.data
          const token = Buffer.from(secret?.['token'] ?? '', 'base64').toString()
          if (token !== host.token) throw new Unavailable('the host of control planes')
          return process.offer()
        },
      }),
    },
    applied,
    tokens,
    asked,
    refusal: '',
    address: undefined,
  }
  return cluster
}
