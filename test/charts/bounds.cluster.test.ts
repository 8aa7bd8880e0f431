/** The bounds of what the processes may do by the chart, asked of a real API server with their own tokens. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openClient } from '../../kit/kube/client.ts'
import { openHttpsTransport } from '../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../kit/kube/kubeconfig.ts'
import { NamespaceRights, withNamespaceRights } from '../../kit/kube/namespace-rights.ts'
import { Secret } from '../../kit/kube/object.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { type RealCluster, startRealCluster } from '../cluster/real-cluster.ts'
import { eventually } from '../eventually.ts'
import { type Asking, NAMESPACE, openAsking } from './asking.ts'
import { openHelm } from './helm.ts'
import { namespaceRights } from './namespace-rights.ts'

const START_MILLISECONDS = 900_000 // the first time, the tools are built
let cluster: RealCluster
let asking: Asking
let folder: string
let rights: string

beforeAll(async () => {
  await buildTool('helm')
  folder = await mkdtemp(join(tmpdir(), 'svccloud-bounds-'))
  cluster = await startRealCluster()
  asking = openAsking(cluster)
  const helm = await openHelm(cluster.kubeconfigFile)
  const chart = join(import.meta.dirname, '../../charts/svccloud')
  const flags = ['-n', NAMESPACE, '--create-namespace', '--set', 'database.existingSecret=none,migrations.job=false']
  await helm.must('install', 'cloud', chart, ...flags)
  await helm.close()
  rights = await namespaceRights(cluster, asking.connections)
  await makeOldAccount()
  // A policy holds from a moment after it was made.
  const extra = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'payroll-extra' } }
  const isJudged = () => statusOf('cloud-apiserver', 'POST', '/api/v1/namespaces?dryRun=All', extra)
  await eventually('the policy to hold', async () => (await isJudged()) === 422)
}, START_MILLISECONDS)
afterAll(async () => {
  await asking?.close()
  await cluster?.stop()
  if (folder) await rm(folder, { recursive: true, force: true })
})

/** An account's namespace of before the bindings: with a Secret, and nothing that lets the processes reach it. */
const OLD_ACCOUNT = 'acct-0191a1b2-0000-7000-8000-000000000001'
async function makeOldAccount(): Promise<void> {
  for (const name of [OLD_ACCOUNT, FOREIGN])
    await asking.ask('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  for (const namespace of [OLD_ACCOUNT, FOREIGN, 'kube-system', NAMESPACE])
    await asking.ask('POST', `/api/v1/namespaces/${namespace}/secrets`, secretIn(namespace))
}
/** Of nobody that the platform knows. */
const FOREIGN = 'payroll'
const secretIn = (namespace: string, name = 'kept') => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace },
  stringData: { key: 'value' },
})

/** The status that a process gets with its own token. */
const statusOf: Asking['statusOf'] = (...wanted) => asking.statusOf(...wanted)

/** A binding as the processes make it, of a role to a service account of the release. */
const bindingIn = (namespace: string, role: string, subject: string) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name: `b-${role}-${subject}`, namespace },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects: [{ kind: 'ServiceAccount', name: subject, namespace: NAMESPACE }],
})

describe.each(['cloud-apiserver', 'cloud-controllers'])('%s', (process) => {
  const secrets = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`
  const bindings = (namespace: string) => `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`
  const roles = `${NAMESPACE}-${process}-`
  const own = process === 'cloud-apiserver' ? `${roles}accounts` : `${roles}namespaces`
  const post = (path: string, body: object) => statusOf(process, 'POST', path, body)

  it.each(['kube-system', FOREIGN, 'default'])('reaches no Secret in %s', async (namespace) => {
    expect(await statusOf(process, 'GET', `${secrets(namespace)}/kept`)).toBe(403)
    expect(await statusOf(process, 'GET', secrets(namespace))).toBe(403)
    expect(await post(secrets(namespace), secretIn(namespace, 'made'))).toBe(403)
    expect(await statusOf(process, 'DELETE', `${secrets(namespace)}/kept`)).toBe(403)
  })
  it.each(['kube-system', FOREIGN, NAMESPACE])('gives itself no rights in %s', async (namespace) => {
    expect(await post(bindings(namespace), bindingIn(namespace, own, process))).toBe(422)
    expect(await post(bindings(namespace), bindingIn(namespace, 'cluster-admin', process))).toBe(403)
  })
  it('binds nothing but its roles, and to nobody else', async () => {
    const path = bindings(OLD_ACCOUNT)
    expect(await post(path, bindingIn(OLD_ACCOUNT, 'cluster-admin', process))).toBe(403)
    expect(await post(path, bindingIn(OLD_ACCOUNT, 'admin', process))).toBe(403)
    expect(await post(path, bindingIn(OLD_ACCOUNT, own, 'default'))).toBe(422)
    const clusterWide = { ...bindingIn('', own, process), kind: 'ClusterRoleBinding' }
    expect(await post('/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', clusterWide)).toBe(403)
  })
  it('makes, changes and deletes no namespace of others', async () => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-extra' } }
    expect(await post('/api/v1/namespaces', namespace)).toBe(422)
    for (const name of [FOREIGN, 'kube-system', NAMESPACE])
      expect([403, 422]).toContain(await statusOf(process, 'DELETE', `/api/v1/namespaces/${name}`))
  })
  it('takes no lease of others', async () => {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'taken' }, spec: {} }
    expect(await post('/apis/coordination.k8s.io/v1/namespaces/kube-system/leases', lease)).toBe(403)
  })
})

it('an account of before the bindings is reached: the first refusal makes them', async () => {
  const access = await readKubeconfig(await asking.accessOf('cloud-controllers', folder), systemClock)
  const { transport, close } = openHttpsTransport(access!)
  const client = openClient({ transport, fieldManager: 'test', clock: systemClock, random: systemRandom })
  const store = withNamespaceRights(client, { rights: NamespaceRights.parse(rights), clock: systemClock })
  const key = { namespace: OLD_ACCOUNT, name: 'kept' }
  await expect(client.get(Secret, key)).rejects.toThrow('cannot get resource')
  expect((await store.get(Secret, key))?.data).toEqual({ key: Buffer.from('value').toString('base64') })
  expect(await store.get(Secret, { namespace: 'acct-nobody', name: 'kept' })).toBeUndefined()
  await expect(store.get(Secret, { namespace: FOREIGN, name: 'kept' })).rejects.toThrow('cannot get resource')
  // The API server's was made with it.
  const secret = secretIn(OLD_ACCOUNT, 'made')
  await eventually(
    'the API server to reach it',
    async () =>
      (await statusOf('cloud-apiserver', 'POST', `/api/v1/namespaces/${OLD_ACCOUNT}/secrets`, secret)) === 201,
  )
  expect(await statusOf('cloud-apiserver', 'GET', `/api/v1/namespaces/${OLD_ACCOUNT}/secrets/kept`)).toBe(403)
  await close()
})
