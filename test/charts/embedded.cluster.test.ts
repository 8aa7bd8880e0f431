/** The charts with the real helm on the embedded Kubernetes API, which stores workloads and does nothing with them. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type EmbeddedServer, startKubernetesApi } from '../../embedded/kubernetes/server/serve.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { systemRandom } from '../../kit/sys/random.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { type Helm, openHelm } from './helm.ts'

const CHARTS = join(import.meta.dirname, '../../charts')
const NAMESPACE = ['-n', 'svccloud-system']
const SETTINGS = ['--set', 'database.existingSecret=database,migrations.job=false']
const START_MILLISECONDS = 900_000 // the first time, helm is built
let folder: string
let server: EmbeddedServer
let helm: Helm

beforeAll(async () => {
  await buildTool('helm')
  folder = await mkdtemp(join(tmpdir(), 'svccloud-embedded-charts-'))
  server = await startKubernetesApi({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  helm = await openHelm(server.kubeconfig)
}, START_MILLISECONDS)
afterAll(async () => {
  await helm?.close()
  await server?.stop()
  await rm(folder, { recursive: true, force: true })
})

it('the control plane is installed, upgraded, rolled back and taken away; its kinds stay', async () => {
  expect(
    await helm.must('install', 'cloud', join(CHARTS, 'svccloud'), ...NAMESPACE, '--create-namespace', ...SETTINGS),
  ).toContain('STATUS: deployed')
  expect(
    await helm.must(
      'upgrade',
      'cloud',
      join(CHARTS, 'svccloud'),
      ...NAMESPACE,
      ...SETTINGS,
      '--set',
      'controllers.shards[0].name=a,controllers.shards[0].zones={eu-1a}',
    ),
  ).toContain('REVISION: 2')
  await helm.must('rollback', 'cloud', '1', ...NAMESPACE)
  expect(await helm.must('uninstall', 'cloud', ...NAMESPACE)).toContain(
    '[CustomResourceDefinition] servers.svccloud.dev',
  )
  expect(await helm.must('list', '-A', '-q')).toBe('')
})

it('the agents follow the list of their hosts', async () => {
  const agents = (...names: string[]) =>
    names.flatMap((name, index) => ['--set', `nodes[${index}].name=${name},nodes[${index}].host=${name}`])
  await helm.must('install', 'agents', join(CHARTS, 'svccloud-node-agent'), ...NAMESPACE, ...agents('n1', 'n2'))
  expect(
    await helm.must('upgrade', 'agents', join(CHARTS, 'svccloud-node-agent'), ...NAMESPACE, ...agents('n2')),
  ).toContain('REVISION: 2')
  await helm.must('uninstall', 'agents', ...NAMESPACE)
})
