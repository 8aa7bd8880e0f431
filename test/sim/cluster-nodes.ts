/** Kubelets and pods of simulated clusters: guests that have a node's document join by the token in it, report, and run
 *  pods by their size; nothing of Kubernetes runs. What must hold of nodes at every instant is looked at here. */
import { nodeNameOf, nodeNumberOf } from '../../domain/node-pool/rules.ts'
import { wantedNumbers } from '../../controllers/nouns/node-pool/nodes.ts'
import type { ClusterLoad, LoadPod } from '../../integrations/control-planes/load.ts'
import { MachineAnswer, MachineDocument } from '../../resources/managed-machine/index.ts'
import { NodePool, type NodePoolSpec, type NodePoolStatus } from '../../resources/node-pool/index.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import type { Host } from './hosts.ts'
import type { Scheduler } from './scheduler.ts'
import type { SimulatedControlPlanes } from '../control-planes.ts'
import { WAITING } from '../domain/node-pool/pods.ts'

type Section = NonNullable<MachineDocument['kubernetes']>
export type PoolObject = KubeObject<NodePoolSpec, NodePoolStatus>
type Plane = SimulatedControlPlanes['planes'] extends Map<string, infer Known> ? Known : never

/** A guest that is the node of a cluster. */
interface Kubelet {
  readonly plane: string
  readonly node: string
  readyAt: number
}

interface Pod {
  readonly name: string
  readonly cpu: number
  node: string
  /** Its budget refuses until then. */
  readonly staysUntil: number
}

/** What is known of one control plane besides what it says. */
interface Place {
  readonly cordoned: Set<string>
  /** Nodes that must be there and were emptied to be replaced, until another one is ready under their name. */
  readonly replaced: Set<string>
  pods: Pod[]
}

export interface ClusterNodes {
  readonly violations: Set<string>
  /** Records what a guest received, and accepted. */
  hear(guest: string, request: Buffer, answer: Buffer): void
  /** The guest of a managed machine joins, reports, or is missed; pods are placed. */
  tick(hosts: readonly Host[]): void
  placeOf(plane: string): Place
  loadOf(plane: string): ClusterLoad
  /** True when nothing is left on it. */
  drain(plane: string, node: string): Promise<boolean>
  uncordon(plane: string, node: string): void
}

const NODE_CPU = 1_000
const READY_MILLISECONDS = { least: 500, most: 15_000 }

export function newClusterNodes(
  scheduler: Scheduler,
  planes: SimulatedControlPlanes['planes'],
  admin: () => Store,
): ClusterNodes {
  const { random } = scheduler
  const violations = new Set<string>()
  const documents = new Map<string, Section>()
  const kubelets = new Map<string, Kubelet>()
  const places = new Map<string, Place>()
  const placeOf = (plane: string): Place => {
    const place = places.get(plane) ?? { cordoned: new Set(), replaced: new Set(), pods: [] }
    places.set(plane, place)
    return place
  }
  const planeOfToken = (token: string | undefined) =>
    token === undefined ? undefined : [...planes].find(([, { tokens }]) => tokens.has(token))

  function join(guest: string, { nodeName, bootstrapToken, release, nodeAddress }: Section): void {
    const [id, plane] = planeOfToken(bootstrapToken) ?? []
    if (id === undefined || plane === undefined) return
    const { least, most } = READY_MILLISECONDS
    kubelets.set(guest, {
      plane: id,
      node: nodeName,
      readyAt: scheduler.nowMilliseconds + least + random.fraction() * (most - least),
    })
    scheduler.note(`node ${nodeName} joins`)
    const podCidr = `172.20.${plane.nodes.size}.0/24`
    plane.nodes.set(nodeName, {
      name: nodeName,
      isReady: false,
      kubeletVersion: `v${release}`,
      address: nodeAddress,
      podCidr,
      marked: '',
    })
    placeOf(id).cordoned.delete(nodeName)
  }

  function report(running: ReadonlySet<string>): void {
    const owners = new Map<string, string>()
    for (const [guest, { plane, node, readyAt }] of kubelets) {
      const isRunning = running.has(guest)
      if (!planes.has(plane)) kubelets.delete(guest)
      if (!isRunning) continue
      const identity = `${plane} ${node}`
      const other = owners.get(identity)
      if (other !== undefined) violations.add(`guests ${other} and ${guest} are both node ${node}`)
      owners.set(identity, guest)
      const known = planes.get(plane)?.nodes.get(node)
      if (known !== undefined && !known.isReady && readyAt <= scheduler.nowMilliseconds) {
        planes.get(plane)?.nodes.set(node, { ...known, isReady: true })
        placeOf(plane).replaced.delete(node)
      }
    }
    for (const [id, { nodes }] of planes)
      for (const node of nodes.values())
        if (node.isReady && !owners.has(`${id} ${node.name}`)) nodes.set(node.name, { ...node, isReady: false })
  }

  function placePods(id: string, { nodes }: Plane): void {
    const { pods, cordoned } = placeOf(id)
    const freeOf = (name: string) => NODE_CPU - pods.reduce((sum, pod) => sum + (pod.node === name ? pod.cpu : 0), 0)
    for (const pod of pods) {
      if (!nodes.has(pod.node)) pod.node = ''
      if (pod.node !== '') continue
      const room = [...nodes.values()].find(
        ({ name, isReady }) => isReady && !cordoned.has(name) && freeOf(name) >= pod.cpu,
      )
      pod.node = room?.name ?? ''
    }
  }

  /** One that must be there is emptied to be replaced: no more of them at a time than may be away. */
  async function judgeDrain(id: string, node: string): Promise<void> {
    const { items } = await admin().list(NodePool)
    const pool = items.find(({ metadata, spec }) => nodeNumberOf(namedOf({ metadata, spec }), node) !== undefined)
    if (pool === undefined || isLeaving(pool)) return
    const wanted = [...wantedNumbers(pool, pool.spec.count)].map((number) => nodeNameOf(namedOf(pool), number))
    if (!wanted.includes(node)) return
    const { replaced } = placeOf(id)
    replaced.add(node)
    const away = wanted.filter((name) => replaced.has(name))
    scheduler.note('a node is emptied to be replaced')
    if (away.length > pool.spec.maxUnavailable)
      violations.add(`${away.join(', ')} are replaced at once, and ${pool.spec.maxUnavailable} may be away`)
  }

  return {
    violations,
    placeOf,
    hear(guest, request, answer) {
      const said = MachineAnswer.parse(JSON.parse(answer.toString()))
      const asked = JSON.parse(request.toString()) as { readonly document?: unknown } // the agent's own
      const given = asked.document === undefined ? undefined : MachineDocument.parse(asked.document)
      if (given?.machine !== said.machine || given.kubernetes === undefined) return
      documents.set(guest, given.kubernetes)
    },
    tick(hosts) {
      const running = new Set(hosts.flatMap(({ machine }) => machine.running().map(({ name }) => name)))
      for (const [guest, section] of documents) if (running.has(guest) && !kubelets.has(guest)) join(guest, section)
      report(running)
      for (const [id, plane] of planes) placePods(id, plane)
    },
    loadOf(id) {
      const { cordoned, pods } = placeOf(id)
      const nodes = [...(planes.get(id)?.nodes.values() ?? [])]
      return {
        nodes: nodes.map(({ name, isReady }) => ({
          name,
          isReady,
          isSchedulable: !cordoned.has(name),
          isKept: false,
          labels: {},
          taints: [],
          allocatable: { cpu: NODE_CPU, memory: NODE_CPU, pods: 110 },
        })),
        pods: pods.map(loadPodOf),
        budgets: {},
      }
    },
    async drain(id, node) {
      const place = placeOf(id)
      const isKnown = planes.get(id)?.nodes.has(node) === true
      if (isKnown && !place.cordoned.has(node)) await judgeDrain(id, node)
      if (isKnown) place.cordoned.add(node)
      for (const pod of place.pods) if (pod.node === node && pod.staysUntil <= scheduler.nowMilliseconds) pod.node = ''
      return !place.pods.some((pod) => pod.node === node)
    },
    uncordon(id, node) {
      scheduler.note('a node stays after all')
      placeOf(id).cordoned.delete(node)
      placeOf(id).replaced.delete(node)
    },
  }
}

export const namedOf = ({ metadata, spec }: Pick<PoolObject, 'metadata' | 'spec'>) => ({
  name: spec.name,
  uid: metadata.uid ?? '',
})
const isLeaving = ({ metadata, spec }: PoolObject): boolean =>
  metadata.deletionTimestamp !== undefined || spec.operation?.kind === 'node_pool.delete'

const loadPodOf = ({ name, cpu, node }: Pod): LoadPod => ({
  ...WAITING,
  name,
  node,
  isUnschedulable: node === '',
  requests: { cpu },
})
