/** `npm start` on a real API server in place of the embedded one: the whole way of a server with a real guest, and
 *  components that are killed in the middle of every operation. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { signalProcess } from '../../kit/sys/process.ts'
import { buildTool, toolPath } from '../../tools/cluster/build.ts'
import { Customer, type Server } from '../e2e/customer.ts'
import { eventually, until } from '../eventually.ts'
import { Product } from '../e2e/product.ts'
import { type RealCluster, startRealCluster } from './real-cluster.ts'
import { UNREAD } from '../e2e/warnings.ts'

const run = promisify(execFile)
const START_MILLISECONDS = 900_000 // the first time, the tools are built

let cluster: RealCluster
let data: string
let product: Product
let customer: Customer
let server: Server

const kubectl = async (...flags: string[]) =>
  (await run(toolPath('kubectl'), ['--kubeconfig', cluster.kubeconfigFile, ...flags])).stdout

beforeAll(async () => {
  await buildTool('kubectl')
  cluster = await startRealCluster()
  data = await mkdtemp(join(tmpdir(), 'svccloud-product-'))
  product = await Product.start({
    data,
    flags: ['--kubeconfig', cluster.kubeconfigFile, '--webhook-host', '127.0.0.1', '--hypervisor', 'qemu'],
    environment: { SVCCLOUD_WEBHOOK_TOKEN_FILE: cluster.webhookTokenFile },
    warnings: UNREAD,
  })
}, START_MILLISECONDS)

afterAll(async () => {
  const guests = (await product?.guests()) ?? []
  await product?.stop()
  for (const pid of guests) signalProcess(pid, 'SIGKILL')
  await cluster?.stop()
  if (data) await rm(data, { recursive: true, force: true })
})

it('makes a server whose guest talks on its console', async () => {
  expect(product.endpoints.kubernetes_url).toBe(cluster.url)
  customer = await Customer.signUp(() => product, 'cluster@example.com')
  await customer.addSshKey()
  const created = await customer.createServer({ zone: 'eu-1a', hostname: 'web', plan: 'tiny', template: 'tiny-linux' })
  expect(await customer.finished(created.operation.id)).toMatchObject({ status: 'succeeded', error: '' })
  server = await customer.server(created.server.id)
  const console = customer.console(server.id)
  try {
    await console.see(/root@web:~# /, 0)
    // The guest's host keys may come between what is typed and what it prints.
    await console.type('echo "this is $(hostname)"\n')
    await console.see(/this is web/, 0)
  } finally {
    console.close()
  }
})

it("the README's session with kubectl works as it is written", async () => {
  const block = [
    ...(await readFile(join(import.meta.dirname, '../../README.md'), 'utf8')).matchAll(/^```sh\n([\s\S]*?)^```$/gm),
  ]
    .map(([, text]) => text ?? '')
    .find((text) => text.includes('kubectl'))
  if (block === undefined) throw new Error('the README speaks no longer of kubectl')
  const script = block.replaceAll('.svccloud/kubernetes/admin.kubeconfig', cluster.kubeconfigFile)
  const { stdout } = await run('bash', ['-eu', '-c', script], {
    env: { ...process.env, SERVER: server.id, PATH: `${dirname(toolPath('kubectl'))}:${process.env['PATH']}` },
    timeout: 180_000,
  })
  expect(stdout).toMatch(/condition met/)
  expect(stdout).toMatch(/server\.stop/)
  expect(await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/start`)).id)).toMatchObject({
    status: 'succeeded',
  })
})

it('kubectl sees it and is an equal interface', async () => {
  const namespace = (await kubectl('get', 'servers', '-A', '-o', 'jsonpath={.items[0].metadata.namespace}')).trim()
  expect(await kubectl('get', 'servers', '-n', namespace, '-o', 'wide')).toContain('web')
  await kubectl('wait', '-n', namespace, '--for=condition=Ready', `server/${server.id}`, '--timeout=60s')
  await kubectl(
    'patch',
    'server',
    server.id,
    '-n',
    namespace,
    '--type=merge',
    '-p',
    '{"spec":{"desiredPower":"stopped"}}',
  )
  await kubectl(
    'wait',
    '-n',
    namespace,
    '--for=jsonpath={.status.state}=stopped',
    `server/${server.id}`,
    '--timeout=120s',
  )
  expect(await customer.server(server.id)).toMatchObject({ state: 'stopped', desired_power: 'stopped' })
})

it('what kubectl writes is judged before it is stored, what the platform writes is not', async () => {
  const namespace = (await kubectl('get', 'servers', '-A', '-o', 'jsonpath={.items[0].metadata.namespace}')).trim()
  const patch = (spec: object) =>
    kubectl('patch', 'server', server.id, '-n', namespace, '--type=merge', '-p', JSON.stringify({ spec }))
  await expect(patch({ zone: 'elsewhere' })).rejects.toThrow('zone cannot be changed')
  await expect(patch({ operation: { actor: 'user:somebody-else' } })).rejects.toThrow(
    'spec.operation is written by the platform only',
  )
  await expect(kubectl('delete', 'operations', '--all', '-n', namespace)).rejects.toThrow(
    'operations are written by the platform only',
  )
  expect(await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/start`)).id)).toMatchObject({
    status: 'succeeded',
  })
  const actors = (
    await kubectl(
      'get',
      'operations',
      '-n',
      namespace,
      '-o',
      'jsonpath={.items[?(@.spec.kind=="server.stop")].spec.actor}',
    )
  ).trim()
  expect(new Set(actors.split(' '))).toEqual(new Set(['user:admin']))
})

/** The server once nothing is done to it. A guest that was lost with its agent is started anew by an operation of the
 *  platform. */
const settled = () =>
  until(
    'the server to rest',
    () => customer.server(server.id),
    ({ active_operation, state }) => active_operation === null && (state === 'started' || state === 'stopped'),
    120_000,
  )

it.each(['controllers', 'apiserver', 'agent-eu-1a-1', 'agent-eu-1a-2'])(
  'an operation converges when %s is killed in the middle',
  async (component) => {
    const isStart = (await settled()).state === 'stopped'
    const operation = await (isStart
      ? customer.change('POST', `/v1/servers/${server.id}/start`)
      : customer.change('POST', `/v1/servers/${server.id}/stop`, { stop_type: 'hard' }))
    await product.killComponent(component)
    expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded', error: '' })
    await eventually(
      'the guest to be as wanted',
      async () =>
        (await settled()).state === (isStart ? 'started' : 'stopped') &&
        (await product.guests()).length === (isStart ? 1 : 0),
      120_000,
    )
  },
)

it.each([
  { kind: 'server.restart', path: 'restart', body: { stop_type: 'hard' } },
  { kind: 'server.metadata', path: 'metadata', body: { enabled: false } },
  { kind: 'server.metadata', path: 'metadata', body: { enabled: true } },
])('$kind $body converges when the controllers are killed in the middle', async ({ kind, path, body }) => {
  if ((await settled()).state === 'stopped')
    await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/start`)).id)
  const operation = await customer.change(
    path === 'metadata' ? 'PUT' : 'POST',
    `/v1/servers/${server.id}/${path}`,
    body,
  )
  expect(operation).toMatchObject({ kind })
  await product.killComponent('controllers')
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded', error: '' })
  await eventually(
    'the guest to run',
    async () => (await settled()).state === 'started' && (await product.guests()).length === 1,
    120_000,
  )
})

it('a server that is made while the controllers die is made once', async () => {
  const { server: second, operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'second',
    plan: 'tiny',
    template: 'tiny-linux',
  })
  await product.killComponent('controllers')
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  const removal = await customer.change('DELETE', `/v1/servers/${second.id}`)
  await product.killComponent('controllers')
  expect(await customer.finished(removal.id)).toMatchObject({ status: 'succeeded' })
})

it('deletes everything and leaves nothing', async () => {
  expect(await customer.finished((await customer.change('DELETE', `/v1/servers/${server.id}`)).id)).toMatchObject({
    status: 'succeeded',
  })
  await until(
    'nothing to be left',
    () => product.leftovers(),
    (left) => left.length === 0,
  )
})
