import { access, readdir, readFile } from 'node:fs/promises'
import { get } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlaneRecord } from '../../../hosting/processes/record.ts'
import { AgentObjects } from '../../../integrations/control-planes/control.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { until } from '../../eventually.ts'
import { adminOf, type Hosted, isWhole, kubeClient, newDesired, openHosted, untilState } from './hosted.ts'

let hosted: Hosted
const [one, other] = [newDesired(), newDesired()]
beforeAll(async () => {
  hosted = await openHosted({ memoryBytes: 1_400 * 1024 ** 2 })
  await hosted.host.ensure(one)
  await hosted.host.ensure(other)
})
afterAll(() => hosted.end())

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps'
const BINDINGS = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings'
interface Named {
  readonly metadata: { readonly name: string }
}
const configMap = (name: string, value = 'x') => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { value },
})

test('memory is reserved: a third one is refused', async () => {
  const offer = await hosted.host.offer()
  expect(offer.reservedBytes).toBe(2 * offer.bytesOfOne)
  await expect(hosted.host.ensure(newDesired())).rejects.toThrow('no memory left')
  expect((await hosted.host.ensure(one)).id).toBe(one.id)
})

async function everyByteOf(folder: string): Promise<Buffer> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  return Buffer.concat(await Promise.all(files.map((file) => readFile(file))))
}

test('secrets are sealed in etcd', async () => {
  const admin = await adminOf(hosted, one.id)
  await admin.send('POST', CONFIG_MAPS, configMap('open', 'value-of-the-config-map'))
  const stringData = { password: 'value-of-the-secret' }
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'sealed' }, stringData }
  expect((await admin.send('POST', '/api/v1/namespaces/default/secrets', secret)).status).toBe(201)
  const stored = await everyByteOf(join(hosted.folder, one.id, 'etcd-0-0'))
  expect(stored.includes('value-of-the-config-map')).toBe(true)
  expect(stored.includes('value-of-the-secret')).toBe(false)
  const audit = await readFile(join(hosted.folder, one.id, 'run/audit-0.log'), 'utf8')
  expect(audit).toContain('"name":"sealed"')
  expect(audit).not.toContain('value-of-the-secret')
})

test.each(['etcdClient', 'etcdPeer'] as const)('etcd answers nobody without a certificate: %s', async (door) => {
  await untilState(hosted, one.id, isWhole)
  const record = await readFile(join(hosted.folder, one.id, 'record.json'), 'utf8')
  const port = ControlPlaneRecord.parse(JSON.parse(record)).replicas[0]?.[door]
  const failure = await new Promise<string>((resolve) => {
    get(`https://127.0.0.1:${port}/version`, { rejectUnauthorized: false }, ({ statusCode }) =>
      resolve(`status ${statusCode}`),
    ).once('error', ({ message }) => resolve(message))
  })
  expect(failure).toMatch(/certificate|alert|ECONNRESET|socket hang up/i)
  await expect(fetch(`http://127.0.0.1:${port}/version`)).rejects.toThrow()
})

test('the keys of one cluster open no other', async () => {
  const [state, others] = [await untilState(hosted, one.id, isWhole), await untilState(hosted, other.id, isWhole)]
  const { token } = await hosted.host.userToken(one.id, 'admin', 3_600)
  expect((await kubeClient(state, token).send('GET', '/api/v1/nodes')).status).toBe(200)
  expect((await kubeClient(others, token).send('GET', '/api/v1/nodes')).status).toBe(401)
  const confused = { ...others, certificateAuthority: state.certificateAuthority }
  await expect(kubeClient(confused, token).send('GET', '/readyz')).rejects.toThrow()
  const anonymous = kubeClient(state)
  expect((await anonymous.send('GET', '/readyz')).status).toBe(200)
  expect((await anonymous.send('GET', '/version')).status).toBe(401)
})

test('a person has a credential with their role, worthless once it is removed, and no other with it', async () => {
  const state = await untilState(hosted, one.id, isWhole)
  const people = (['admin', 'edit', 'admin'] as const).map((role) => ({ id: newUuid(systemRandom), role }))
  const clients = await Promise.all(
    people.map(async (person) => kubeClient(state, (await hosted.host.personToken(one.id, person, 3_600)).token)),
  )
  const statusesOf = (path: string) =>
    Promise.all(clients.map(async (client) => (await client.send('GET', path)).status))
  expect(await statusesOf('/api/v1/nodes')).toEqual([200, 403, 200])
  // What `edit` may do is gathered once the controllers of a new cluster run.
  await until(
    'all to be let in',
    () => statusesOf(CONFIG_MAPS),
    (statuses) => statuses.join() === '200,200,200',
  )
  const [first, second, third] = people
  // Twice, as whoever asks may not have heard the answer; and one that never was.
  for (const person of [first!, first!, second!, { ...third!, role: 'edit' as const }])
    await hosted.host.removePerson(one.id, person)
  await until(
    'both to be refused',
    () => statusesOf(CONFIG_MAPS),
    (statuses) => statuses.join() === '401,401,200',
  )
  const bindings = (await (await adminOf(hosted, one.id)).send('GET', BINDINGS)).body['items'] as Named[]
  const names = bindings.map(({ metadata: { name } }) => name).filter((name) => name.startsWith('svccloud:kubeconfig-'))
  expect(names).toEqual([`svccloud:kubeconfig-admin-${third!.id}`])
})

test('what everybody shared once is removed when its host has started', async () => {
  await untilState(hosted, other.id, isWhole)
  const admin = await adminOf(hosted, other.id)
  const accounts = '/api/v1/namespaces/kube-system/serviceaccounts'
  const shared = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'svccloud-admin' } }
  expect((await admin.send('POST', accounts, shared)).status).toBe(201)
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} }
  const { status } = (await admin.send('POST', `${accounts}/svccloud-admin/token`, asked)).body as {
    status: { token: string }
  }
  const statusNow = async () => {
    const state = await untilState(hosted, other.id, isWhole)
    return (await kubeClient(state, status.token).send('GET', '/api/v1')).status
  }
  expect(await statusNow()).toBe(200)
  await hosted.reopen()
  await until('the token to be refused', statusNow, (found) => found === 401)
})

test('a snapshot is restored, and watchers learn that their revisions no longer exist', async () => {
  const admin = await adminOf(hosted, one.id)
  await admin.send('POST', CONFIG_MAPS, configMap('kept'))
  const snapshotId = newUuid(systemRandom)
  await hosted.host.snapshot(one.id, snapshotId)
  const taken = await until(
    'the snapshot',
    () => hosted.host.snapshots(one.id),
    (snapshots) => snapshots[0]?.phase === 'done',
  )
  expect(taken[0]).toMatchObject({ id: snapshotId, release: '1.36.3' })
  expect(taken[0]?.sizeBytes).toBeGreaterThan(20_000)
  await admin.send('DELETE', `${CONFIG_MAPS}/kept`)
  const late = await admin.send('POST', CONFIG_MAPS, configMap('late'))
  const restoreId = newUuid(systemRandom)
  await hosted.host.restore(one.id, restoreId, snapshotId)
  await hosted.host.restore(one.id, restoreId, snapshotId) // said twice
  await untilState(hosted, one.id, (state) => isWhole(state) && state.restoreId === restoreId)
  expect((await admin.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
  expect((await admin.send('GET', `${CONFIG_MAPS}/late`)).status).toBe(404)
  const { resourceVersion } = late.body['metadata'] as Record<string, string> // of every object
  const watch = await admin.send('GET', `${CONFIG_MAPS}?watch=true&timeoutSeconds=5&resourceVersion=${resourceVersion}`)
  expect(JSON.stringify(watch)).toMatch(/410|too old|Expired/i)
  expect((await hosted.host.restore(one.id, restoreId, snapshotId)).phase).toBe('running')
  const generations = async () =>
    (await readdir(join(hosted.folder, one.id))).filter((name) => /^etcd-\d+-\d+$/.test(name))
  await until('the data of before to go', generations, (names) => names.join() === 'etcd-1-0')
})

test('the agent of an organisation platform is what that says, and leaves nothing', async () => {
  const admin = await adminOf(hosted, other.id)
  const object = (kind: string, name: string, more: object = {}, apiVersion = 'v1') => ({
    apiVersion,
    kind,
    metadata: { name, ...('namespace' in more ? { namespace: 'agent' } : {}) },
    ...('data' in more ? { data: { to: 'see' } } : {}),
  })
  const namespace = object('Namespace', 'agent')
  const [one, two] = ['one', 'two'].map((name) => object('ConfigMap', name, { namespace: '', data: '' }))
  const role = object('ClusterRole', 'agent', {}, 'rbac.authorization.k8s.io/v1')
  const statusOf = async (path: string) => (await admin.send('GET', path)).status
  const seen = async () => [
    await statusOf('/api/v1/namespaces/agent/configmaps/one'),
    await statusOf('/api/v1/namespaces/agent/configmaps/two'),
    await statusOf('/apis/rbac.authorization.k8s.io/v1/clusterroles/agent'),
  ]
  const set = (...objects: readonly object[]) => hosted.host.setAgent(other.id, AgentObjects.parse(objects))
  // In any order of the requests.
  await set(role, one ?? {}, namespace)
  expect(await seen()).toEqual([200, 404, 200])
  await set(namespace, two ?? {})
  expect(await seen()).toEqual([404, 200, 404])
  // Refused before anything is changed.
  await expect(set(namespace, object('Node', 'mine'))).rejects.toThrow('An agent has no v1 Node')
  await expect(set(object('ConfigMap', 'nowhere'))).rejects.toThrow('needs a namespace')
  expect(await seen()).toEqual([404, 200, 404])
  await set()
  await until(
    'its namespace to go',
    () => statusOf('/api/v1/namespaces/agent'),
    (status) => status === 404,
  )
  expect(await statusOf('/apis/rbac.authorization.k8s.io/v1/clusterroles/admin')).toBe(200)
})

test('a host that was stopped goes on with what it had', async () => {
  await hosted.reopen()
  const admin = await adminOf(hosted, one.id)
  expect((await admin.send('GET', `${CONFIG_MAPS}/kept`)).status).toBe(200)
})

test('nothing is left of one that is removed', async () => {
  const programs = ['etcd-0', 'kube-apiserver-0', 'kube-controller-manager', 'kube-scheduler']
  await untilState(hosted, other.id, isWhole)
  const pids = programs.map((program) => hosted.host.pid(other.id, program) ?? 0)
  expect(pids.every((pid) => pid > 0 && signalProcess(pid, 0))).toBe(true)
  await until(
    'it to be gone',
    () => hosted.host.remove(other.id),
    (isGone) => isGone,
  )
  await expect(access(join(hosted.folder, other.id))).rejects.toThrow('ENOENT')
  expect(pids.some((pid) => signalProcess(pid, 0))).toBe(false)
  expect(await hosted.host.get(other.id)).toBeUndefined()
  const offer = await hosted.host.offer()
  expect(offer.reservedBytes).toBe(offer.bytesOfOne)
})
