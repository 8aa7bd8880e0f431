/** Pods brought to Running by a real control plane: kube-apiserver, etcd, kube-controller-manager, kube-scheduler, and
 *  kwok as the kubelets. Kubernetes' work to start a workload, without the workload. */
import { openClient } from '../kit/kube/client.ts'
import { openHttpsTransport } from '../kit/kube/https-transport.ts'
import { readKubeconfig } from '../kit/kube/kubeconfig.ts'
import { type KubeObject, Namespace, type ResourceType } from '../kit/kube/object.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { startRealCluster } from '../test/cluster/real-cluster.ts'

const NAMESPACE = 'bench'
const NODES = 10
const CREATIONS_AT_ONCE = 32
const READY_MILLISECONDS = 60_000
const POLL_MILLISECONDS = 50

interface PodStatus {
  readonly phase?: string
}
interface NodeStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[]
}

const Pod: ResourceType<object, PodStatus> = {
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  scope: 'Namespaced',
}
const KubeNode: ResourceType<object, NodeStatus> = {
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  scope: 'Cluster',
}

/** Nothing removes the taint of new nodes here: that would be the cloud's part. */
const POD_SPEC = {
  containers: [{ name: 'main', image: 'none', resources: { requests: { cpu: '1m' } } }],
  tolerations: [{ operator: 'Exists' }],
}

export interface PodCluster {
  /** Creates the pods and waits until all of them are Running. */
  run(count: number): Promise<void>
  close(): Promise<void>
}

export async function openPodCluster(): Promise<PodCluster> {
  const cluster = await startRealCluster({ durable: true, runsPods: true })
  const { transport, close } = openHttpsTransport(await readKubeconfig(cluster.kubeconfigFile, clock))
  const store = openClient({ transport, fieldManager: 'bench', clock, random })
  await store.create(Namespace, { metadata: { name: NAMESPACE }, spec: undefined })
  for (let number = 0; number < NODES; number++)
    await store.create(KubeNode, { metadata: { name: `node-${number}` }, spec: {} })
  for (let number = 0; number < NODES; number++) await ready(`node-${number}`)

  async function ready(name: string): Promise<void> {
    const until = clock.monotonicMilliseconds() + READY_MILLISECONDS
    const isReady = (node: KubeObject<object, NodeStatus> | undefined) =>
      node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
    while (!isReady(await store.get(KubeNode, { name }))) {
      if (clock.monotonicMilliseconds() > until) throw new Error(`${name} of the cluster did not get ready`)
      await clock.sleep(POLL_MILLISECONDS)
    }
  }

  return {
    async run(count) {
      const label = newUuid(random)
      const { resourceVersion } = await store.list(Pod, { namespace: NAMESPACE })
      const stop = new AbortController()
      const running = new Set<string>()
      const watching = (async () => {
        for await (const event of store.watch(Pod, { namespace: NAMESPACE, resourceVersion, signal: stop.signal })) {
          if (event.type === 'BOOKMARK' || event.object.metadata.labels?.['run'] !== label) continue
          if (event.object.status?.phase === 'Running') running.add(event.object.metadata.name)
          if (running.size === count) return
        }
      })()
      let made = 0
      await Promise.all(
        Array.from({ length: CREATIONS_AT_ONCE }, async () => {
          while (made++ < count)
            await store.create(Pod, {
              metadata: { name: newUuid(random), namespace: NAMESPACE, labels: { run: label } },
              spec: POD_SPEC,
            })
        }),
      )
      await watching
      stop.abort()
    },
    async close() {
      await close()
      await cluster.stop()
    },
  }
}
