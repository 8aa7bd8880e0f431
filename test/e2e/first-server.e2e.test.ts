/** The whole way of a first customer, with a real guest: from `npm start` to nothing left. The tests build on each
 *  other. */
import { execFile } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findKubernetes } from '../../hosting/processes/programs.ts'
import { findEngine } from '../../embedded/object-storage/program.ts'
import { isBuilt, toolPath } from '../../tools/cluster/build.ts'
import { type Collector, startCollector } from '../collector.ts'
import { eventually, until } from '../eventually.ts'
import { Customer, type Server } from './customer.ts'
import { connectModel } from './model-client.ts'
import { clearAway, newFolder, Product } from './product.ts'

const run = promisify(execFile)
const HOSTNAME = 'web-1'
const EXAMPLE = join(import.meta.dirname, '../../examples/server.yaml')

let data: string
let collector: Collector
let product: Product
let customer: Customer
let server: Server

beforeAll(async () => {
  data = await newFolder()
  collector = await startCollector()
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }
  product = await Product.start({ data, flags: ['--hypervisor', 'qemu'], environment, warnings: [] })
})
afterAll(async () => {
  await clearAway(product, data)
  await collector.stop()
})

it('says where everything is', async () => {
  expect((await stat(join(data, 'endpoints.json'))).mode & 0o777).toBe(0o600)
  expect(product.endpoints).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    pid: expect.any(Number),
    api_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    operator_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    kubernetes_url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    kubeconfig: expect.stringContaining(data),
    ca_certificate: expect.stringContaining(data),
    mail_directory: join(data, 'mail'),
    postgres_url: expect.stringMatching(/^postgresql:\/\/svccloud:\w{32}@127\.0\.0\.1:\d+\/svccloud$/),
    operator_token_file: join(data, 'operator-token'),
    fake_payments_url: null,
    test_clock: null,
    bmc_url: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+$/),
    has_control_planes: (await findKubernetes()) !== undefined,
    object_storage_url: (await findEngine()) === undefined ? null : expect.stringMatching(/^https:\/\/localhost:\d+$/),
  })
  const { api_url, mail_directory, kubeconfig } = product.endpoints
  for (const text of [api_url, mail_directory, kubeconfig, 'off: --no-portal']) expect(product.output()).toContain(text)
})

/** As an operator asks for metrics. */
const authorized = async () => ({
  headers: { authorization: `Bearer ${await readFile(join(data, 'operator-token'), 'utf8')}` },
})

it.each(['/livez', '/readyz'])('the operator listener answers %s', async (path) => {
  expect((await fetch(`${product.endpoints.operator_url}${path}`)).status).toBe(200)
})

it('the operator listener has metrics for operators only', async () => {
  const url = `${product.endpoints.operator_url}/metrics`
  expect((await fetch(url)).status).toBe(401)
  const allowed = await fetch(url, await authorized())
  expect([allowed.status, await allowed.text()]).toEqual([200, expect.stringContaining('svccloud_webhook_served 1')])
})

it('every other process answers on a separate port', async () => {
  const records = JSON.parse(await readFile(join(data, 'processes.json'), 'utf8')) as {
    name: string
    metricsUrl?: string
  }[] // the supervisor's own file
  const named = records.filter(({ name }) => name === 'controllers' || name.startsWith('agent-'))
  expect(named).toHaveLength(4)
  for (const { name, metricsUrl } of named) {
    const answer = await fetch(metricsUrl ?? '', await authorized())
    expect([name, answer.status, (await answer.text()).includes('process_cpu_seconds_total')]).toEqual([
      name,
      200,
      true,
    ])
    for (const path of ['/livez', '/readyz']) expect((await fetch(new URL(path, metricsUrl))).status).toBe(200)
  }
})

it('signs a customer up, who adds a key', async () => {
  customer = await Customer.signUp(() => product, 'first@example.com')
  await customer.addSshKey()
  expect(await readdir(product.endpoints.mail_directory)).toEqual([expect.stringMatching(/\.eml$/)])
})

it('makes a server, step by step', async () => {
  const created = await customer.createServer({
    zone: 'eu-1a',
    hostname: HOSTNAME,
    plan: 'tiny',
    template: 'tiny-linux',
  })
  expect(created.operation).toMatchObject({ kind: 'server.create', error: '' })
  const operation = await customer.finished(created.operation.id)
  expect(operation).toMatchObject({ status: 'succeeded', error: '' })
  expect(operation.step_count).toBeGreaterThan(1)
  expect(operation.events?.at(-1)).toMatchObject({ kind: 'succeeded' })
  server = await customer.server(created.server.id)
  expect(server).toMatchObject({
    hostname: HOSTNAME,
    state: 'started',
    desired_power: 'running',
    active_operation: null,
  })
  expect(await product.guests()).toHaveLength(1)
})

it('traces it from the request to the guest, through every process', async () => {
  const requests = () => collector.spans.filter(({ name }) => name === 'POST /v1/servers')
  await until('the trace of the request', requests, (found) => found.length > 0)
  expect(requests()).toHaveLength(1)
  const [request] = requests()
  const ofTrace = () => collector.spans.filter(({ traceId }) => traceId === request?.traceId)
  const namesOf = (service: string) => ofTrace().flatMap((span) => (span.service === service ? [span.name] : []))
  // The last span is that of the whole operation.
  const spans = await until('the end of the trace', ofTrace, (all) => all.some(({ name }) => name === 'server.create'))
  expect(request).toMatchObject({ service: 'svccloud-apiserver', attributes: { 'http.response.status_code': 202 } })
  expect(namesOf('svccloud-apiserver')).toEqual(expect.arrayContaining(['POST servers', 'insert', 'commit']))
  expect(namesOf('svccloud-controllers')).toEqual(expect.arrayContaining(['reconcile server', 'PATCH instances']))
  await until(
    'the spans of the host',
    () => namesOf('svccloud-node-agent'),
    (names) => names.includes('effect start'),
  )
  expect(spans.find(({ name }) => name === 'server.create')?.attributes).toMatchObject({
    'svccloud.operation': server.active_operation?.id ?? expect.any(String),
    'svccloud.operation.status': 'succeeded',
  })
  const log = await readFile(join(data, 'logs', 'apiserver.log'), 'utf8')
  expect(log).toContain(`"trace_id":"${request?.traceId}"`)
})

it('lets the customer type on the console', async () => {
  const console = customer.console(server.id)
  try {
    await console.see(new RegExp(`root@${HOSTNAME}:~# `), 0)
    const before = console.shown.length
    // The guest's host keys may come between what is typed and what it prints.
    await console.type('echo "this is $(hostname)"\n')
    await console.see(new RegExp(`this is ${HOSTNAME}`), before)
    expect(console.statuses[0]).toMatchObject({ connected: true, writable: true, server_state: 'started' })
  } finally {
    console.close()
  }
})

it('restarts, stops and starts it', async () => {
  const [first] = await product.guests()
  expect(
    await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/restart`, {})).id),
  ).toMatchObject({ status: 'succeeded' })
  expect(await product.guests()).toEqual([expect.not.toSatisfy((pid: number) => pid === first)])

  expect(
    await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/stop`, { stop_type: 'hard' })).id),
  ).toMatchObject({ status: 'succeeded' })
  expect(await customer.server(server.id)).toMatchObject({ state: 'stopped', desired_power: 'stopped' })
  expect(await product.guests()).toEqual([])

  expect(await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/start`)).id)).toMatchObject({
    status: 'succeeded',
  })
  expect(await customer.server(server.id)).toMatchObject({ state: 'started', desired_power: 'running' })
  expect(await product.guests()).toHaveLength(1)
})

const hasKubectl = await isBuilt('kubectl')

describe.runIf(hasKubectl)('kubectl', () => {
  const kubectl = async (...flags: string[]) =>
    (await run(toolPath('kubectl'), ['--kubeconfig', product.endpoints.kubeconfig, ...flags])).stdout

  const namespaceOfServers = async () => {
    const { items } = await product.kubernetes('/apis/svccloud.dev/v1alpha1/servers')
    const namespace = items[0]?.metadata.namespace
    if (namespace === undefined) throw new Error('there is no server')
    return namespace
  }

  it('shows servers and explains them', async () => {
    expect(await kubectl('get', 'servers', '-A', '-o', 'wide')).toMatch(
      new RegExp(`acct-\\S+\\s+${server.id}\\s.*${HOSTNAME}`),
    )
    expect(await kubectl('explain', 'server.spec')).toMatch(/desiredPower/)
    expect(await kubectl('get', 'nodes.svccloud.dev')).toMatch(/eu-1a-1[\s\S]*eu-1a-2[\s\S]*eu-1b-1/)
  })

  it('is an equal interface: a changed power is an operation with its actor', async () => {
    const namespace = await namespaceOfServers()
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
    await eventually('the server to stop', async () => (await customer.server(server.id)).state === 'stopped', 120_000)
    const { items } = JSON.parse(await kubectl('get', 'operations', '-n', namespace, '-o', 'json')) as {
      items: { spec: Record<string, unknown> }[]
    } // a list of Operations
    const actors = items.filter(({ spec }) => spec['kind'] === 'server.stop').map(({ spec }) => spec['actor'])
    expect(actors.sort()).toEqual(['token:test', 'user:svccloud-admin'])
    await kubectl(
      'patch',
      'server',
      server.id,
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"spec":{"desiredPower":"running"}}',
    )
    await eventually('the server to start', async () => (await customer.server(server.id)).state === 'started', 120_000)
  })

  it('makes and deletes a server from a file', async () => {
    const namespace = await namespaceOfServers()
    await kubectl('apply', '-n', namespace, '-f', EXAMPLE)
    await kubectl(
      'wait',
      '-n',
      namespace,
      '--for=jsonpath={.status.state}=started',
      'server/from-git',
      '--timeout=120s',
    )
    expect(await customer.server('from-git')).toMatchObject({
      hostname: 'from-git',
      state: 'started',
      labels: { 'managed-by': 'git' },
    })
    expect(await product.guests()).toHaveLength(2)
    await kubectl('delete', '-n', namespace, '-f', EXAMPLE, '--timeout=120s')
    expect((await customer.request('GET', '/v1/servers/from-git')).status).toBe(404)
    expect(await product.guests()).toHaveLength(1)
  })
})

it('lets a model make a server by MCP and run a command in it', async () => {
  const model = await connectModel(product.endpoints.api_url, customer.token)
  try {
    expect(await model.call('whoami')).toMatchObject({ account: { role: 'owner' } })
    const made = await model.call('create_server', {
      zone: 'eu-1a',
      hostname: 'by-model',
      plan: 'tiny',
      template: 'tiny-linux',
    })
    const { id } = made['server'] as Server
    expect(await model.finished(made['operation'] as { id: string })).toMatchObject({ status: 'succeeded' })
    expect(await model.run(id, 'echo $((6 * 7)) on $(hostname)')).toContain('42 on by-model')
    expect(await model.run(id, 'exit_code_of() { return 3; }; exit_code_of; echo code $?')).toContain('code 3')
    const deleted = await model.call('delete_server', { id })
    expect(await model.finished(deleted['operation'] as { id: string })).toMatchObject({ status: 'succeeded' })
  } finally {
    await model.close()
  }
})

it('deletes it and leaves nothing', async () => {
  const operation = await customer.change('DELETE', `/v1/servers/${server.id}`)
  expect(await customer.finished(operation.id)).toMatchObject({ kind: 'server.delete', status: 'succeeded' })
  expect((await customer.request('GET', `/v1/servers/${server.id}`)).status).toBe(404)
  await until(
    'nothing to be left',
    () => product.leftovers(),
    (left) => left.length === 0,
  )
})

it('has recorded every change in a chain that verifies', async () => {
  const { body } = await customer.request<{ items: { action: string; outcome: string }[] }>('GET', '/v1/audit')
  const actions = body.items.map(({ action }) => action)
  for (const action of [
    'server.create',
    'server.restart',
    'server.stop',
    'server.start',
    'server.delete',
    'server.console_session',
  ])
    expect(actions).toContain(action)
  expect((await customer.request('GET', '/v1/audit/integrity')).body).not.toMatchObject({ status: 'broken' })
})

it('stops cleanly', async () => {
  expect(await product.stop()).toBe(0)
  await expect(stat(join(data, 'endpoints.json'))).rejects.toThrow(/ENOENT/)
  await expect(stat(join(data, 'processes.json'))).rejects.toThrow(/ENOENT/)
})
