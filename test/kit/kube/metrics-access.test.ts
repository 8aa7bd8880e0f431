import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { startKubernetesApi, type EmbeddedServer } from '../../../embedded/kubernetes/server/serve.ts'
import { type ProbeServer, startProbes } from '../../../kit/http/probes.ts'
import { openHttpsTransport } from '../../../kit/kube/https-transport.ts'
import { readKubeconfig } from '../../../kit/kube/kubeconfig.ts'
import { openMetricsAccess } from '../../../kit/kube/metrics-access.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { Counter, openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
let folder: string
let cluster: EmbeddedServer
let https: ReturnType<typeof openHttpsTransport>
let probes: ProbeServer
let passedMilliseconds = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-metrics-'))
  const clock = systemClock
  cluster = await startKubernetesApi({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock,
    random: systemRandom,
    log: silentLog,
  })
  https = openHttpsTransport(await readKubeconfig(cluster.kubeconfig, clock))
  const metrics = openRegistry({ isProcessWide: false })
  new Counter({ name: 'svccloud_example_total', help: 'An example.', registers: [metrics] })
  const metricsAccess = openMetricsAccess(https.transport, {
    ...clock,
    monotonicMilliseconds: () => clock.monotonicMilliseconds() + passedMilliseconds,
  })
  probes = await startProbes({ host: '127.0.0.1', port: 0, metrics, missing: () => [], metricsAccess })
})
afterAll(async () => {
  await probes.stop()
  await https.close()
  await cluster.stop()
  await rm(folder, { recursive: true, force: true })
})

const read = (authorization?: string, path = '/metrics') =>
  fetch(`${probes.url}${path}`, authorization === undefined ? {} : { headers: { authorization } })
const post = (path: string, object: object) =>
  https.transport({
    method: 'POST',
    path,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(object),
  })

test('metrics are for users with the right to get their path, probes for everybody', async () => {
  const alice = `Bearer ${await cluster.issue({ user: 'alice', groups: [] }, join(folder, 'alice'))}`
  for (const wrong of [undefined, 'Bearer nobody', 'Basic YWxpY2U6', alice.replace('Bearer', 'Token')]) {
    const refused = await read(wrong)
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect(await refused.text()).not.toContain('svccloud_example_total')
  }
  const forbidden = await read(alice)
  expect([forbidden.status, await forbidden.text()]).toEqual([403, expect.not.stringContaining('example')])
  for (const path of ['/livez', '/readyz']) expect((await read(undefined, path)).status).toBe(200)

  const named = { metadata: { name: 'metrics-reader' } }
  await post(`${RBAC}/clusterroles`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    ...named,
    rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
  })
  await post(`${RBAC}/clusterrolebindings`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    ...named,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'metrics-reader' },
    subjects: [{ kind: 'User', name: 'alice' }],
  })
  passedMilliseconds += 60_000 // answers are kept for a while
  const allowed = await read(alice)
  expect([allowed.status, await allowed.text()]).toEqual([200, expect.stringContaining('svccloud_example_total')])
  const admin = parse(await readFile(cluster.kubeconfig, 'utf8')).users[0].user.token as string // as it issues it
  expect((await read(`Bearer ${admin}`)).status).toBe(200)
})
