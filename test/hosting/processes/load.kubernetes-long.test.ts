/** Autoscaling against a real control plane: what its scheduler cannot place makes a pool grow by what that then uses,
 *  and only nodes whose pods may move are given back. Nodes are objects: nothing runs on them. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  judgeGrowth,
  judgeShrinking,
  type ScalingPool,
  UNDERUSED_SECONDS,
  underusedNodes,
} from '../../../domain/node-pool/autoscaling/judge.ts'
import { until } from '../../eventually.ts'
import {
  adminOf,
  type Hosted,
  isWhole,
  type KubeClient,
  kubeClient,
  newDesired,
  openHosted,
  untilState,
} from './hosted.ts'

let hosted: Hosted
let admin: KubeClient
const desired = newDesired()
const { id } = desired
const PODS = '/api/v1/namespaces/default/pods'
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'

beforeAll(async () => {
  hosted = await openHosted()
  await hosted.host.ensure(desired)
  admin = await adminOf(hosted, id)
  await until(
    'the service account of the namespace',
    () => admin.send('GET', '/api/v1/namespaces/default/serviceaccounts/default'),
    ({ status }) => status === 200,
  )
  await removeNameServer()
  const named = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'owner' } }
  const { body } = await admin.send('POST', '/api/v1/namespaces/default/configmaps', named)
  const { uid } = body['metadata'] as { uid: string } // of every object
  owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid, controller: true }
})
afterAll(() => hosted.end())

/** Its pods wait for nodes like any others. That none are there says little before every controller on the way from
 *  the deployment to its pods has seen that none are wanted. */
async function removeNameServer(): Promise<void> {
  const deployments = '/apis/apps/v1/namespaces/kube-system/deployments'
  await merge(`${deployments}/coredns/scale`, { spec: { replicas: 0 } })
  const sets = '/apis/apps/v1/namespaces/kube-system/replicasets'
  const ownersOfPods = async () => {
    const [deployment, { body }] = await Promise.all([
      admin.send('GET', `${deployments}/coredns`),
      admin.send('GET', sets),
    ])
    return [deployment.body, ...(body['items'] as object[])] as OwnerOfPods[] // of its kind
  }
  await until('the controllers to want no name server', ownersOfPods, (owners) =>
    owners.every(
      ({ metadata, spec, status }) => spec.replicas === 0 && status?.observedGeneration === metadata.generation,
    ),
  )
  await until(
    'the pods of the name server to go',
    () => hosted.host.load(id),
    ({ pods }) => pods.length === 0,
  )
}

/** What is read of a deployment, or of a set of replicas. */
interface OwnerOfPods {
  readonly metadata: { readonly generation: number }
  readonly spec: { readonly replicas: number }
  readonly status?: { readonly observedGeneration?: number }
}

async function send(method: string, path: string, body?: object, type?: string): Promise<void> {
  const { status, body: answer } = await admin.send(method, path, body, type)
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`)
}
const merge = (path: string, body: object) => send('PATCH', path, body, 'application/merge-patch+json')

/** As a kubelet says it: ready, with two processors and 1 GiB. */
async function addNode(name: string, labels: object = { tier: 'web' }): Promise<void> {
  await send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } })
  const size = { cpu: '2', memory: '1Gi', pods: '110', 'ephemeral-storage': '10Gi' }
  const now = new Date().toISOString()
  const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: now, lastTransitionTime: now }]
  await merge(`/api/v1/nodes/${name}/status`, { status: { capacity: size, allocatable: size, conditions } })
}

interface PodOptions {
  readonly cpu?: string
  readonly metadata?: object
  readonly spec?: object
  /** Nothing makes it anew otherwise. */
  readonly isOwned?: boolean
}
/** Of pods: it is there, so that they are not collected, and no controller of Kubernetes looks after them. */
let owner: object
async function addPod(
  name: string,
  { cpu = '1', metadata = {}, spec = {}, isOwned = true }: PodOptions = {},
): Promise<void> {
  const ownerReferences = isOwned ? [owner] : []
  await send('POST', PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name }, ownerReferences, ...metadata },
    spec: {
      nodeSelector: { tier: 'web' },
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'c', image: 'none', resources: { requests: { cpu, memory: '64Mi' } } }],
      ...spec,
    },
  })
}
const removePods = () => send('DELETE', `${PODS}?gracePeriodSeconds=0`)

const podsOf = async () => (await hosted.host.load(id)).pods.filter(({ name }) => name.startsWith('default/'))
const whenPods = (what: string, isGood: (pods: Awaited<ReturnType<typeof podsOf>>) => boolean) =>
  until(what, podsOf, isGood)
const poolWith = (nodes: readonly string[], more: Partial<ScalingPool> = {}): ScalingPool => ({
  id: 'web',
  bounds: { min: 0, max: 4 },
  count: nodes.length,
  nodes,
  isBusy: false,
  isPaused: false,
  grownAt: undefined,
  template: {
    labels: { tier: 'web' },
    taints: [],
    allocatable: { cpu: 2_000, memory: 1024 ** 3, pods: 110, 'ephemeral-storage': 10 * 1024 ** 3 },
    overhead: {},
  },
  ...more,
})

test('what reads it may read that, and nothing else', async () => {
  const [certificate = '', key = ''] = await Promise.all(
    ['crt', 'key'].map((end) => readFile(join(hosted.folder, id, `autoscaler.${end}`), 'utf8')),
  )
  const autoscaler = kubeClient(await untilState(hosted, id, isWhole), { certificate, key })
  const statusOf = async (method: string, path: string) => (await autoscaler.send(method, path)).status
  for (const path of ['/api/v1/nodes', '/api/v1/pods', '/apis/policy/v1/poddisruptionbudgets'])
    expect([path, await statusOf('GET', path)]).toEqual([path, 200])
  for (const path of ['/api/v1/secrets', '/api/v1/configmaps', '/apis/apps/v1/deployments'])
    expect([path, await statusOf('GET', path)]).toEqual([path, 403])
  expect(await statusOf('DELETE', PODS)).toBe(403)
  expect(await statusOf('DELETE', '/api/v1/nodes')).toBe(403)
})

test('a pool grows by what the scheduler then uses', async () => {
  const sidecar = { name: 's', image: 'none', restartPolicy: 'Always', resources: { requests: { cpu: '500m' } } }
  await addPod('a')
  await addPod('b')
  await addPod('c', { cpu: '500m', spec: { nodeSelector: { tier: 'web' }, initContainers: [sidecar] } })
  await addPod('elsewhere', { spec: { nodeSelector: { tier: 'other' } } })
  await addPod('gated', { spec: { nodeSelector: { tier: 'web' }, schedulingGates: [{ name: 'wait.example' }] } })
  await whenPods('the scheduler to find no node', (pods) => pods.filter((each) => each.isUnschedulable).length === 4)
  const growth = judgeGrowth(await hosted.host.load(id), [poolWith([])])
  expect(growth).toEqual({ poolId: 'web', by: 2, pods: 3 })
  for (const name of ['web-0', 'web-1']) await addNode(name)
  await whenPods('three pods to be placed', (pods) => pods.filter(({ node }) => node !== '').length === 3)
  // What is left is nothing that the pool could help.
  const later = await hosted.host.load(id)
  expect(later.pods.filter(({ isUnschedulable }) => isUnschedulable).map(({ name }) => name)).toContain(
    'default/elsewhere',
  )
  expect(judgeGrowth(later, [poolWith(['web-0', 'web-1'])])).toBeUndefined()
  await removePods()
})

test('a node is given back when its pods may go and find room', async () => {
  const pool = poolWith(['web-0', 'web-1'])
  await addPod('big', { cpu: '1200m', spec: { nodeSelector: { 'kubernetes.io/hostname': 'web-0' } } })
  await addPod('small', { cpu: '100m', spec: { nodeName: 'web-1' } })
  await merge('/api/v1/nodes/web-0', { metadata: { labels: { 'kubernetes.io/hostname': 'web-0' } } })
  await whenPods('both to be placed', (pods) => pods.every(({ node }) => node !== ''))
  const underused = async () => underusedNodes(await hosted.host.load(id), [pool]).map(({ name }) => name)
  expect(await underused()).toEqual(['web-1'])
  const now = new Date()
  const since = new Map([['web-1', new Date(now.getTime() - UNDERUSED_SECONDS * 1_000).toISOString()]])
  const judged = async () => judgeShrinking(await hosted.host.load(id), [pool], { since, now })?.name
  expect(await judged()).toBe('web-1')

  const kept = 'cluster-autoscaler.kubernetes.io/scale-down-disabled'
  await merge('/api/v1/nodes/web-1', { metadata: { annotations: { [kept]: 'true' } } })
  expect(await judged()).toBeUndefined()
  await merge('/api/v1/nodes/web-1', { metadata: { annotations: { [kept]: null } } })

  // A budget that allows none away now keeps it.
  const selector = { matchLabels: { app: 'small' } }
  await send('POST', BUDGETS, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'small' },
    spec: { minAvailable: 1, selector },
  })
  await until('the budget to be counted', judged, (name) => name === undefined)
  await send('DELETE', `${BUDGETS}/small`)
  await until('the budget to go', judged, (name) => name === 'web-1')
  await merge('/api/v1/nodes/web-1', { spec: { unschedulable: true } })
  expect(await judged()).toBeUndefined()
  await hosted.host.uncordon(id, 'web-1')
  expect(await judged()).toBe('web-1')
  await removePods()
})

test.each<[reason: string, pod: PodOptions, isGiven: boolean]>([
  ['nothing makes it anew', { isOwned: false }, false],
  ['nothing makes it anew, but it may go', { isOwned: false, metadata: evictable('true') }, true],
  ['it says that it stays', { metadata: evictable('false') }, false],
  ['it stores on its node', { spec: { volumes: [{ name: 'v', emptyDir: {} }] } }, false],
  ['it stores in memory', { spec: { volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] } }, true],
  [
    'what it stores is expendable',
    {
      metadata: { annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes': 'v' } },
      spec: { volumes: [{ name: 'v', emptyDir: {} }] },
    },
    true,
  ],
  ['it must be beside another', { spec: { affinity: beside() } }, false],
])('a node with a pod of which %s', async (_reason, { spec, ...more }, isGiven) => {
  await addPod('pod', { cpu: '100m', ...more, spec: { ...spec, nodeName: 'web-1' } })
  const load = await hosted.host.load(id)
  const names = underusedNodes(load, [poolWith(['web-0', 'web-1'])]).map(({ name }) => name)
  await removePods()
  expect(names.includes('web-1')).toBe(isGiven)
})

function evictable(answer: string): object {
  return { annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': answer } }
}
function beside(): object {
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'x' } } }
  return { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
}
