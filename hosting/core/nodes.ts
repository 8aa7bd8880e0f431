/** Nodes of a cluster: their state in the API, their labels and taints, draining, and certificate requests of kubelets.
 */
import { z } from 'zod'
import { type ControlPlaneNode, type NodeMarks, ServingRequest } from '../../integrations/control-planes/control.ts'
import { readCertificateRequest } from '../../kit/sys/certificate-request.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import { isOfNameServer } from './addons.ts'
import { type KubeApi, listAll, send } from './kube-api.ts'

const NODES = '/api/v1/nodes'
const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const SERVING = 'kubernetes.io/kubelet-serving'
/** Annotation with the last marks of a node: digest, names of labels, and taints. */
const MARKS = 'svccloud.dev/marks'
/** More than a cluster has. Larger lists are not read. */
const [NODES_MAXIMUM, REQUESTS_MAXIMUM] = [5_000, 5_000]
const [NOT_FOUND, CONFLICT, TOO_MANY_REQUESTS] = [404, 409, 429]

const Taint = z.object({ key: z.string(), value: z.string().optional(), effect: z.string() }).loose()
const Marks = z.object({
  digest: z.string(),
  labels: z.array(z.string()),
  taints: z.array(z.object({ key: z.string(), effect: z.string() })),
})
const Node = z.object({
  metadata: z.object({
    name: z.string(),
    resourceVersion: z.string(),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z
    .object({
      podCIDR: z.string().default(''),
      taints: z.array(Taint).default([]),
      unschedulable: z.boolean().default(false),
    })
    .prefault({}),
  status: z.object({
    conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
    addresses: z.array(z.object({ type: z.string(), address: z.string() })).default([]),
    nodeInfo: z.object({ kubeletVersion: z.string() }).optional(),
  }),
})
type Node = z.infer<typeof Node>

export async function listNodes(api: KubeApi): Promise<readonly ControlPlaneNode[]> {
  const nodes = await listAll(api, NODES, Node, NODES_MAXIMUM)
  return nodes.map((node) => ({
    name: node.metadata.name,
    isReady: isReady(node),
    kubeletVersion: node.status.nodeInfo?.kubeletVersion ?? '',
    address: node.status.addresses.find(({ type }) => type === 'InternalIP')?.address ?? '',
    podCidr: node.spec.podCIDR,
    marked: marksOf(node).digest,
  }))
}

const isReady = ({ status }: Node): boolean =>
  status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')

/** Anybody who may write nodes can also write this annotation, so it only decides which labels and taints are removed.
 */
function marksOf({ metadata: { annotations } }: Node): z.infer<typeof Marks> {
  try {
    return Marks.parse(JSON.parse(annotations[MARKS] ?? ''))
  } catch {
    return { digest: '', labels: [], taints: [] }
  }
}

/** One conditional write; labels and taints of others stay. Does nothing when the node does not exist. */
export async function markNode(api: KubeApi, name: string, marks: NodeMarks): Promise<void> {
  const { status, text } = await send(api, 'GET', `${NODES}/${name}`, { accepted: [NOT_FOUND] })
  if (status === NOT_FOUND) return
  const node = Node.parse(JSON.parse(text))
  const before = marksOf(node)
  const isOwn = (taint: { readonly key: string; readonly effect: string }) =>
    [...before.taints, ...marks.taints].some(({ key, effect }) => key === taint.key && effect === taint.effect)
  const annotation: z.infer<typeof Marks> = {
    digest: marks.digest,
    labels: Object.keys(marks.labels),
    taints: marks.taints.map(({ key, effect }) => ({ key, effect })),
  }
  await send(api, 'PATCH', `${NODES}/${name}`, {
    body: {
      metadata: {
        resourceVersion: node.metadata.resourceVersion,
        labels: { ...Object.fromEntries(before.labels.map((label) => [label, null])), ...marks.labels },
        annotations: { [MARKS]: JSON.stringify(annotation) },
      },
      spec: { taints: [...node.spec.taints.filter((taint) => !isOwn(taint)), ...marks.taints] },
    },
    type: 'application/merge-patch+json',
    accepted: [NOT_FOUND, CONFLICT],
  })
}

const Request = z
  .object({
    metadata: z.object({ name: z.string() }),
    spec: z.object({
      request: z.string(),
      signerName: z.string(),
      username: z.string().default(''),
      groups: z.array(z.string()).default([]),
      usages: z.array(z.string()).default([]),
    }),
    status: z
      .object({ conditions: z.array(z.object({ type: z.string() }).loose()).default([]) })
      .loose()
      .prefault({}),
  })
  .loose()

/** Requests of kubelets that nobody has approved or denied. */
export async function listServingRequests(api: KubeApi): Promise<readonly ServingRequest[]> {
  const path = `${CSRS}?fieldSelector=${encodeURIComponent(`spec.signerName=${SERVING}`)}`
  const requests = await listAll(api, path, Request, REQUESTS_MAXIMUM)
  return requests.flatMap(({ metadata: { name }, spec, status }) => {
    if (spec.signerName !== SERVING || status.conditions.length > 0) return []
    const { username, groups, usages } = spec
    try {
      const names = readCertificateRequest(Buffer.from(spec.request, 'base64').toString())
      return [ServingRequest.parse({ name, username, groups, usages, ...names })]
    } catch {
      return [] // invalid requests are skipped, so nobody approves them
    }
  })
}

/** Does nothing when the request is decided or deleted. */
export async function approveServing(api: KubeApi, name: string): Promise<void> {
  const { status, text } = await send(api, 'GET', `${CSRS}/${name}`, { accepted: [NOT_FOUND] })
  if (status === NOT_FOUND) return
  const request = Request.parse(JSON.parse(text))
  if (request.spec.signerName !== SERVING || request.status.conditions.length > 0) return
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'NodeOfPool',
    message: 'Its server is a node of a pool.',
  }
  await send(api, 'PUT', `${CSRS}/${name}/approval`, {
    body: { ...request, status: { ...request.status, conditions: [approved] } },
    accepted: [NOT_FOUND, CONFLICT],
  })
}

/** Does nothing when the node does not exist. */
export async function uncordonNode(api: KubeApi, name: string): Promise<void> {
  await send(api, 'PATCH', `${NODES}/${name}`, {
    body: { spec: { unschedulable: null } },
    type: 'application/merge-patch+json',
    accepted: [NOT_FOUND],
  })
}

export async function removeNode(api: KubeApi, name: string): Promise<void> {
  await send(api, 'DELETE', `${NODES}/${name}`, { accepted: [NOT_FOUND] })
}

const Pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    deletionTimestamp: z.string().optional(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
    ownerReferences: z.array(z.object({ kind: z.string() })).default([]),
  }),
  status: z.object({ phase: z.string().optional() }),
})
type Pod = z.infer<typeof Pod>
const MIRROR = 'kubernetes.io/config.mirror'
/** More than a node runs. */
const PODS_MAXIMUM = 5_000
const EVICTIONS_AT_ONCE = 6
/** No eviction starts later in its round. Together with the last ones this is less than what the platform waits for the
 *  answer to a call (`integrations/control-planes/client.ts`), whose workers serve other clusters too. */
const EVICTIONS_MILLISECONDS = 3_000
const EVICTION_MILLISECONDS = 9_000

/** Stops new pods on the node and evicts the others, which their disruption budgets may refuse for now. Webhooks of the
 *  cluster may make evictions slow, or let them fail: a round ends in time, begins with any pod, and passes failures,
 *  so that rounds make progress. Returns true when no pods are left. Does nothing when the node does not exist. */
export async function drainNode(
  api: KubeApi,
  name: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<boolean> {
  const { status } = await send(api, 'PATCH', `${NODES}/${name}`, {
    body: { spec: { unschedulable: true } },
    type: 'application/merge-patch+json',
    accepted: [NOT_FOUND],
  })
  if (status === NOT_FOUND) return true
  const path = `/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${name}`)}`
  const pods = await listAll(api, path, Pod, PODS_MAXIMUM)
  const leaving = pods.filter(
    ({ metadata, status: { phase } }) =>
      !['Succeeded', 'Failed'].includes(phase ?? '') &&
      metadata.annotations[MIRROR] === undefined &&
      !metadata.ownerReferences.some(({ kind }) => kind === 'DaemonSet'),
  )
  const first = Math.floor(random.fraction() * leaving.length)
  const staying = [...leaving.slice(first), ...leaving.slice(0, first)].filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  )
  const end = clock.monotonicMilliseconds() + EVICTIONS_MILLISECONDS
  const evictNext = async (): Promise<void> => {
    for (let pod = staying.shift(); pod !== undefined; pod = staying.shift()) {
      if (clock.monotonicMilliseconds() > end) return
      await evict(api, name, pod).catch(() => undefined) // tried again until the time for the drain is over
    }
  }
  await Promise.all(Array.from({ length: EVICTIONS_AT_ONCE }, evictNext))
  return leaving.length === 0
}

/** The name server's budget only counts while another node takes pods. */
async function evict(api: KubeApi, node: string, { metadata }: Pod): Promise<void> {
  const { name, namespace } = metadata
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`
  const { status } = await send(api, 'POST', `${path}/eviction`, {
    body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
    accepted: [NOT_FOUND, TOO_MANY_REQUESTS],
    timeoutMilliseconds: EVICTION_MILLISECONDS,
  })
  if (status === TOO_MANY_REQUESTS && isOfNameServer(metadata) && !(await hasOtherPlace(api, node)))
    await send(api, 'DELETE', path, { accepted: [NOT_FOUND, CONFLICT] })
}

/** Whether another node takes pods. On the last node, the name server's budget would block the drain until its
 *  deadline, because evicted pods cannot start elsewhere. */
async function hasOtherPlace(api: KubeApi, name: string): Promise<boolean> {
  const nodes = await listAll(api, NODES, Node, NODES_MAXIMUM)
  return nodes.some((node) => node.metadata.name !== name && !node.spec.unschedulable && isReady(node))
}
