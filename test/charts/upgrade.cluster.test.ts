/** From a chart that gave the processes Secrets of the whole cluster to the one of today, with the real helm on a real
 *  API server: nobody is refused anything meanwhile, and nothing of the earlier rights is left. Nothing runs pods here:
 *  the test says when they are ready. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
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
import { type Helm, openHelm } from './helm.ts'
import { namespaceRights } from './namespace-rights.ts'

const START_MILLISECONDS = 900_000 // the first time, the tools are built
const [EARLIER, CHART] = [join(import.meta.dirname, 'earlier'), join(import.meta.dirname, '../../charts/svccloud')]
const FLAGS = ['-n', NAMESPACE, '--set', 'database.existingSecret=none,migrations.job=false']
const ACCOUNT = 'acct-0191a1b2-0000-7000-8000-000000000001'
const PROCESSES = ['cloud-apiserver', 'cloud-controllers'] as const
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
let cluster: RealCluster
let asking: Asking
let helm: Helm
let folder: string

const secretIn = (namespace: string, name = 'kept') => ({
  apiVersion: 'v1',
  kind: 'Secret',
  stringData: { key: 'value' },
  metadata: { name, namespace },
})
const path = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`
/** What each does with Secrets of accounts. */
const uses = async () => ({
  reads: await asking.statusOf('cloud-controllers', 'GET', `${path(ACCOUNT)}/kept`),
  makes: await asking.statusOf('cloud-apiserver', 'POST', `${path(ACCOUNT)}?dryRun=All`, secretIn(ACCOUNT, 'made')),
})
const isHelped = { reads: 200, makes: 201 }

interface Listed {
  readonly items: {
    metadata: { name: string; generation?: number }
    roleRef?: { name: string }
    rules?: { resources?: string[] }[]
  }[]
}
/** Roles and bindings of the release, in the whole cluster. */
const named = async (what: 'clusterroles' | 'clusterrolebindings') =>
  (await asking.ask<Listed>('GET', `${RBAC}/${what}?labelSelector=app.kubernetes.io/instance=cloud`)).items
const earlier = async () =>
  [...(await named('clusterroles')), ...(await named('clusterrolebindings'))]
    .map(({ metadata: { name } }) => name)
    .filter((name) => name.endsWith('-earlier'))

const NUMBERS = { replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 }
const CONDITIONS = ['Available', 'Progressing'].map((type) => ({
  type,
  status: 'True',
  message: '',
  reason: type === 'Progressing' ? 'NewReplicaSetAvailable' : 'MinimumReplicasAvailable',
}))
const HEALTHY = { currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2 }
/** Says that the pods are ready, as controllers would that run no more here than these. */
async function getReady(): Promise<void> {
  const ready = [
    [`/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, { ...NUMBERS, conditions: CONDITIONS }],
    [`/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`, HEALTHY],
  ] as const
  for (const [all, status] of ready)
    for (const { metadata } of (await asking.ask<Listed>('GET', all)).items) {
      const { name, generation } = metadata
      await asking.ask('PATCH', `${all}/${name}/status`, { status: { ...status, observedGeneration: generation } })
    }
}

beforeAll(async () => {
  await buildTool('helm')
  folder = await mkdtemp(join(tmpdir(), 'svccloud-upgrade-'))
  cluster = await startRealCluster()
  asking = openAsking(cluster)
  helm = await openHelm(cluster.kubeconfigFile)
  await helm.must('install', 'cloud', EARLIER, '-n', NAMESPACE, '--create-namespace')
  for (const name of [ACCOUNT, 'payroll'])
    await asking.ask('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  for (const namespace of [ACCOUNT, 'payroll']) await asking.ask('POST', path(namespace), secretIn(namespace))
}, START_MILLISECONDS)
afterAll(async () => {
  await helm?.close()
  await asking?.close()
  await cluster?.stop()
  if (folder) await rm(folder, { recursive: true, force: true })
})

it('pods of both releases have what they need until those of the new one are ready, and no more then', async () => {
  expect(await uses()).toEqual(isHelped)
  const upgrade = helm.run('upgrade', 'cloud', CHART, ...FLAGS, '--wait', '--timeout', '10m')
  let hasEnded = false
  const ended = upgrade.finally(() => (hasEnded = true))
  const bounded = async () => {
    const { rules = [] } = await asking.ask<Listed['items'][number]>(
      'GET',
      `${RBAC}/clusterroles/${NAMESPACE}-cloud-controllers`,
    )
    return rules.every(({ resources = [] }) => !resources.includes('secrets'))
  }
  const deployments = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`
  const isThere = async () => (await asking.ask<Listed>('GET', deployments)).items.length === 2
  // Whatever helm does, and in whatever order.
  const found: Awaited<ReturnType<typeof uses>>[] = []
  await eventually('the chart to be applied', async () => {
    found.push(await uses())
    return hasEnded || ((await bounded()) && (await isThere()))
  })
  for (let more = 0; more < 5; more += 1) found.push(await uses())
  expect(hasEnded, hasEnded ? (await upgrade).text : '').toBe(false)
  expect(found).toEqual(found.map(() => isHelped))
  expect(await earlier()).toHaveLength(4)

  const rights = NamespaceRights.parse(await namespaceRights(cluster, asking.connections))
  const access = await readKubeconfig(await asking.accessOf('cloud-controllers', folder), systemClock)
  const { transport, close } = openHttpsTransport(access!)
  const client = openClient({ transport, fieldManager: 'test', clock: systemClock, random: systemRandom })
  const store = withNamespaceRights(client, { rights, clock: systemClock })
  const read = () => store.get(Secret, { namespace: ACCOUNT, name: 'kept' })
  expect(await read()).toBeDefined()
  await eventually('the upgrade to end', async () => {
    await getReady()
    expect(await read()).toBeDefined()
    return hasEnded
  })
  expect(await ended).toMatchObject({ code: 0 })
  expect(await earlier()).toEqual([])
  // A process of the new release goes on: it makes the bindings of an account from before itself.
  expect(await read()).toBeDefined()
  await eventually('both to have their rights', async () => JSON.stringify(await uses()) === JSON.stringify(isHelped))
  await close()

  for (const process of PROCESSES)
    for (const namespace of ['payroll', 'kube-system', 'default'])
      expect(await asking.statusOf(process, 'GET', `${path(namespace)}/kept`), `${process} ${namespace}`).toBe(403)
  const bound = (await named('clusterrolebindings')).map(({ roleRef }) => roleRef?.name)
  expect(bound.toSorted()).toEqual([`${NAMESPACE}-cloud-apiserver`, `${NAMESPACE}-cloud-controllers`])
  const roles = (await named('clusterroles')).filter(({ metadata }) => bound.includes(metadata.name))
  expect(roles.flatMap(({ rules = [] }) => rules.flatMap(({ resources = [] }) => resources))).not.toContain('secrets')
})

it('remains of a failed upgrade are removed by the next', async () => {
  const name = `${NAMESPACE}-cloud-controllers-earlier`
  const labels = { 'app.kubernetes.io/instance': 'cloud' }
  const metadata = { name, labels }
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata }
  const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }]
  await asking.ask('POST', `${RBAC}/clusterroles`, { ...rbac, kind: 'ClusterRole', rules })
  await asking.ask('POST', `${RBAC}/clusterrolebindings`, {
    ...rbac,
    kind: 'ClusterRoleBinding',
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name: 'cloud-controllers', namespace: NAMESPACE }],
  })
  const reads = () => asking.statusOf('cloud-controllers', 'GET', `${path('payroll')}/kept`)
  await eventually('it to be bound', async () => (await reads()) === 200)
  await helm.must('upgrade', 'cloud', CHART, ...FLAGS)
  expect(await earlier()).toEqual([])
  await eventually('it to have ended', async () => (await reads()) === 403)
  // An upgrade from this release makes none.
  await helm.must('upgrade', 'cloud', CHART, ...FLAGS)
  expect(await helm.must('get', 'hooks', 'cloud', '-n', NAMESPACE)).not.toContain('-earlier')
})
