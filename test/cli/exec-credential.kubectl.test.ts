/** kubectl signs in through the plugin: the service's token is one that a Kubernetes API knows. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { type EmbeddedServer, startKubernetesApi } from '../../embedded/kubernetes/server/serve.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { silentLog } from '../../kit/sys/log.ts'
import { environment } from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'

const run = promisify(execFile)
const ID = '0197f3a0-0000-4000-8000-000000000001'
const EXPIRES_AT = '2100-01-01T00:00:00Z'
const PLUGIN = join(import.meta.dirname, '../../cli/svccloud.js')

interface Kubeconfig {
  readonly users: readonly { readonly name: string; readonly user: { readonly token: string } }[]
}

let folder: string
let cluster: EmbeddedServer
let service: Server
let token = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-exec-'))
  cluster = await startKubernetesApi({
    folder,
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  })
  // as the server has just written it
  const kubeconfig = parse(await readFile(cluster.kubeconfig, 'utf8')) as Kubeconfig
  const [admin] = kubeconfig.users
  token = admin?.user.token ?? ''
  service = createServer((request, response) => {
    const body =
      request.url === '/openapi.json'
        ? { paths: { '/v1/dev-clusters/{id}/token': { get: { operationId: 'get_dev_cluster_token' } } } }
        : request.url === `/v1/dev-clusters/${ID}/token`
          ? { token, expires_at: EXPIRES_AT }
          : undefined
    response
      .writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? {}))
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  const { port } = service.address() as AddressInfo // of a server that listens on TCP
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    interactiveMode: 'Never',
    command: PLUGIN,
    args: ['exec-credential', '--cluster', `dev-cluster/${ID}`],
    env: [
      { name: 'SVCCLOUD_URL', value: `http://127.0.0.1:${port}` },
      { name: 'SVCCLOUD_TOKEN', value: 'svc_test' },
    ],
  }
  await writeFile(
    join(folder, 'kubeconfig.yaml'),
    stringify({ ...kubeconfig, users: [{ name: admin?.name, user: { exec } }] }),
  )
})
afterAll(async () => {
  service?.close()
  await cluster?.stop()
  await rm(folder, { recursive: true, force: true })
})

const kubectl = async (...line: string[]): Promise<string> =>
  (
    await run(
      'kubectl',
      ['--kubeconfig', join(folder, 'kubeconfig.yaml'), '--cache-dir', join(folder, 'cache'), ...line],
      { env: { ...environment(), HOME: folder } },
    )
  ).stdout

test('kubectl works with the token that the plugin gives, and with no other', async () => {
  expect(token).not.toBe('')
  expect(await kubectl('get', 'namespace', 'default', '-o', 'name')).toBe('namespace/default\n')
  const good = token
  token = 'another'
  await expect(kubectl('get', 'namespace', 'default')).rejects.toThrow(/Unauthorized|must be logged in/)
  token = good
})
