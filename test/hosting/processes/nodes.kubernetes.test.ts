/** Nodes of a control plane, played by a client that does what kubelets do: they join, ask for certificates, learn what
 *  they are, are reached by the tunnel, and are emptied. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ControlPlaneState } from '../../../integrations/control-planes/control.ts'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, kubeClient, newDesired, openHosted, untilState } from './hosted.ts'
import { ADDRESS, askFor, canBeReached, joinAsKubelet, type Kubelet } from './kubelet.ts'

let hosted: Hosted
let state: ControlPlaneState
let worker: Kubelet
const desired = newDesired()
const { id } = desired
beforeAll(async () => {
  hosted = await openHosted()
  await hosted.host.ensure(desired)
  state = await untilState(hosted, id, isWhole)
})
afterAll(async () => {
  await worker?.end()
  await hosted.end()
})

test('a node joins by the token of its pool, until that is revoked', async () => {
  const { token } = await hosted.host.joinToken(id, 'abcdef', 'pool-1', 600)
  expect((await hosted.host.joinToken(id, 'abcdef', 'pool-1', 600)).token).toBe(token)
  expect(token).toMatch(/^abcdef\.[a-z0-9]{16}$/)
  const joiner = kubeClient(state, token)
  expect((await joiner.send('GET', '/api/v1/nodes')).status).toBe(403)
  worker = await joinAsKubelet({ state, token, name: 'worker-1', address: ADDRESS })
  await worker.report(true)
  expect(await hosted.host.nodes(id)).toEqual([
    {
      name: 'worker-1',
      isReady: true,
      kubeletVersion: 'v1.36.3',
      address: ADDRESS,
      marked: '',
      podCidr: expect.stringMatching(/^(10\.244\.0\.0\/24)?$/),
    },
  ])
  await until(
    'a range for its pods',
    () => hosted.host.nodes(id),
    ([node]) => node?.podCidr === '10.244.0.0/24',
  )
  expect(await bindingsOf('pool-1')).toEqual(['svccloud:approve-pool-1', 'svccloud:join-pool-1'])
  await hosted.host.removeJoinToken(id, 'abcdef', 'pool-1')
  await hosted.host.removeJoinToken(id, 'abcdef', 'pool-1')
  expect(await bindingsOf('pool-1')).toEqual([])
  await until(
    'the token to be refused',
    () => joiner.send('GET', '/api/v1/nodes'),
    ({ status }) => status === 401,
  )
})

/** Names of what lets nodes of the pool join. */
async function bindingsOf(pool: string): Promise<readonly string[]> {
  const admin = await adminOf(hosted, id)
  const { body } = await admin.send('GET', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings')
  const { items } = body as { items: { metadata: { name: string } }[] } // a list of them
  return items.map(({ metadata: { name } }) => name).filter((name) => name.endsWith(`-${pool}`))
}

test('what a kubelet serves with is signed once it is approved here', async () => {
  expect(await hosted.host.servingRequests(id)).toEqual([])
  const request = await worker.askToServe(['worker-1', ADDRESS, 'fd00:0:0:0:0:0:0:7'])
  await askFor(worker.client, 'client', { name: 'worker-1' })
  const [found, ...others] = await hosted.host.servingRequests(id)
  expect(others).toEqual([])
  expect(found).toMatchObject({
    name: request,
    username: 'system:node:worker-1',
    commonName: 'system:node:worker-1',
    hasMore: false,
    organizations: ['system:nodes'],
    dnsNames: ['worker-1'],
    ipAddresses: [ADDRESS, 'fd00::7'],
    usages: ['digital signature', 'server auth'],
    groups: expect.arrayContaining(['system:nodes']),
  })
  await hosted.host.approveServing(id, request)
  await hosted.host.approveServing(id, request)
  await hosted.host.approveServing(id, 'not-there')
  expect(await hosted.host.servingRequests(id)).toEqual([])
  await worker.serve(request)
})

test.runIf(canBeReached)('API servers reach a node by the tunnel that it has opened', async () => {
  const admin = await adminOf(hosted, id)
  const ask = () => admin.send('GET', '/api/v1/nodes/worker-1/proxy/hello')
  // They listen on the same machine, and nobody connects past the tunnel.
  expect((await ask()).status).toBeGreaterThanOrEqual(500)
  await worker.startTunnel()
  const reached = await until('the node to be reached', ask, ({ status }) => status === 200)
  expect(reached.body).toEqual({ text: 'worker-1 says hello' })
  await worker.stopTunnel()
  await until('the tunnel to be missed', ask, ({ status }) => status >= 500)
})

test('a node has the labels and taints that it is configured with, and keeps what others gave', async () => {
  const admin = await adminOf(hosted, id)
  const node = '/api/v1/nodes/worker-1'
  const own = { metadata: { labels: { mine: 'kept' } }, spec: { taints: [{ key: 'mine', effect: 'NoSchedule' }] } }
  await admin.send('PATCH', node, own, 'application/merge-patch+json')
  const taint = (key: string) => ({ key, value: 'x', effect: 'NoSchedule' })
  const told = async () => {
    const { metadata, spec } = (await admin.send('GET', node)).body as {
      metadata: { labels: Record<string, string> }
      spec: { taints?: { key: string }[] }
    } // a Node
    const keys = (spec.taints ?? []).map(({ key }) => key).filter((key) => !key.includes('kubernetes.io'))
    return [metadata.labels, keys.toSorted()]
  }
  await hosted.host.markNode(id, 'worker-1', { labels: { tier: 'a', old: 'x' }, taints: [taint('one')], digest: 'd1' })
  expect(await told()).toMatchObject([{ mine: 'kept', tier: 'a', old: 'x' }, ['mine', 'one']])
  await hosted.host.markNode(id, 'worker-1', { labels: { tier: 'b' }, taints: [taint('two')], digest: 'd2' })
  const [labels, taints] = await told()
  expect([labels, taints]).toMatchObject([{ mine: 'kept', tier: 'b' }, ['mine', 'two']])
  expect(labels).not.toHaveProperty('old')
  expect(await hosted.host.nodes(id)).toMatchObject([{ marked: 'd2' }])
  await hosted.host.markNode(id, 'not-there', { labels: {}, taints: [], digest: 'd' })
})

test('the name server of the cluster is there for its nodes', async () => {
  const admin = await adminOf(hosted, id)
  const service = await admin.send('GET', '/api/v1/namespaces/kube-system/services/kube-dns')
  expect(service.body['spec']).toMatchObject({ clusterIP: '10.96.0.10' })
  const deployment = await admin.send('GET', '/apis/apps/v1/namespaces/kube-system/deployments/coredns')
  expect(JSON.stringify(deployment.body['spec'])).toContain('images.svccloud.internal/coredns:')
  expect(state.addons).toEqual([{ name: 'coredns', version: '1.15.0' }])
})

test('the budget of the name server holds a drain up while another node takes pods, not on the last one', async () => {
  const admin = await adminOf(hosted, id)
  const pods = '/api/v1/namespaces/kube-system/pods'
  const onNode = async () =>
    ((await admin.send('GET', `${pods}?fieldSelector=spec.nodeName%3Dworker-1`)).body as { items: object[] }).items
  const { body } = await admin.send('GET', '/apis/apps/v1/namespaces/kube-system/deployments/coredns')
  const { template } = (body as { spec: { template: { metadata: object; spec: object } } }).spec // a Deployment
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: 'dns-here' },
    spec: { ...template.spec, nodeName: 'worker-1', terminationGracePeriodSeconds: 0 },
  }
  expect((await admin.send('POST', pods, pod)).status).toBe(201)
  const conditions = [{ type: 'Ready', status: 'True' }]
  const merge = 'application/merge-patch+json'
  await admin.send('PATCH', `${pods}/dns-here/status`, { status: { phase: 'Running', conditions } }, merge)
  // Of two that there must be it is the only one that is ready: the other waits for a node.
  const other = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker-2' } }
  await admin.send('POST', '/api/v1/nodes', other)
  await admin.send('PATCH', '/api/v1/nodes/worker-2/status', { status: { conditions } }, merge)
  expect(await hosted.host.drain(id, 'worker-1')).toBe(false)
  expect(await onNode()).toHaveLength(1)
  await admin.send('PATCH', '/api/v1/nodes/worker-2', { spec: { unschedulable: true } }, merge)
  await until(
    'the node to be empty',
    () => hosted.host.drain(id, 'worker-1'),
    (isDone) => isDone,
  )
  expect(await onNode()).toEqual([])
  await hosted.host.removeNode(id, 'worker-2')
  await hosted.host.uncordon(id, 'worker-1')
})

test('a drain goes on as budgets allow', async () => {
  const admin = await adminOf(hosted, desired.id)
  const [pods, labels] = ['/api/v1/namespaces/default/pods', { app: 'web' }]
  await until(
    'the service account of the namespace',
    () => admin.send('GET', '/api/v1/namespaces/default/serviceaccounts/default'),
    ({ status }) => status === 200,
  )
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', labels },
    spec: { nodeName: 'worker-1', terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'none' }] },
  }
  expect((await admin.send('POST', pods, pod)).status).toBe(201)
  const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }
  await admin.send('PATCH', `${pods}/web/status`, running, 'application/merge-patch+json')
  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web' },
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  }
  await admin.send('POST', budgets, budget)
  expect(await hosted.host.drain(id, 'worker-1')).toBe(false)
  expect((await admin.send('GET', `${pods}/web`)).status).toBe(200)
  const node = await admin.send('GET', '/api/v1/nodes/worker-1')
  expect(node.body['spec']).toMatchObject({ unschedulable: true })
  await admin.send('DELETE', `${budgets}/web`)
  await until(
    'the node to be empty',
    () => hosted.host.drain(id, 'worker-1'),
    (isDone) => isDone,
  )
  expect((await admin.send('GET', `${pods}/web`)).status).toBe(404)
  await hosted.host.removeNode(id, 'worker-1')
  expect(await hosted.host.nodes(id)).toEqual([])
})
