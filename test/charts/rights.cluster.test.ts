/** The processes of the cloud with exactly the rights, the certificate and the webhook that the charts give them, on a
 *  real API server: a customer's server comes and goes, and what others write is judged. */

import { type ChildProcess, execFile, fork } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { request } from 'undici'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { probePort } from '../../embedded/kit/ports.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { buildTool, toolPath } from '../../tools/cluster/build.ts'
import { type RealCluster, startRealCluster } from '../cluster/real-cluster.ts'
import { startPostgres, type TestServer } from '../database.ts'
import { Customer, PUBLIC_KEY } from '../e2e/customer.ts'
import type { Product } from '../e2e/product.ts'
import { eventually } from '../eventually.ts'
import { type Asking, NAMESPACE, openAsking } from './asking.ts'
import { openHelm } from './helm.ts'
import { namespaceRights } from './namespace-rights.ts'
import { manifestsOf } from '../catalog.ts'

const ROOT = join(import.meta.dirname, '../..')
const START_MILLISECONDS = 900_000 // the first time, the tools are built
const CATALOG = manifestsOf('r1', 'r1a')

/** Of this machine; endpoints of a Service cannot be on the loopback address. */
const ADDRESS = Object.values(networkInterfaces())
  .flat()
  .find((face) => face?.family === 'IPv4' && !face.internal)?.address

let cluster: RealCluster
let asking: Asking
let postgres: TestServer
let folder: string
let customer: Customer
let endpoints: { readonly api_url: string; readonly operator_url: string; readonly mail_directory: string }
const children: ChildProcess[] = []
let rights: string
const logs = new Map<string, string>()

const ask: Asking['ask'] = (...wanted) => asking.ask(...wanted)
/** A kubeconfig of a ServiceAccount of the release's namespace. */
const accessOf = (serviceAccount: string) => asking.accessOf(serviceAccount, folder)

/** Starts a process of the cloud and waits for its word that it is ready. */
function start(main: string, settings: Readonly<Record<string, string>>): Promise<Record<string, string>> {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !name.startsWith('SVCCLOUD_') && name !== 'DATABASE_URL' && name !== 'KUBECONFIG',
    ),
  )
  const child = fork(join(ROOT, main), [], {
    execPath: nodeBinary(),
    execArgv: [],
    cwd: folder,
    env: { ...inherited, ...settings },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  children.push(child)
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => logs.set(main, (logs.get(main) ?? '') + chunk.toString()))
  return new Promise((resolve, reject) => {
    child.on('message', (message) => resolve(message as Record<string, string>)) // tellParent of the process
    child.once('exit', (code) => reject(new Error(`${main} ended with ${code}:\n${logs.get(main)?.slice(-3_000)}`)))
  })
}

/** What the chart gives a pod of the API server for its webhook; the Service points to this process as it would to the
 *  pod. */
async function webhookSettings(): Promise<Readonly<Record<string, string>>> {
  if (ADDRESS === undefined) return {}
  const port = await probePort('127.0.0.1', 0)
  const { data } = await ask<{ data: Record<'tls.crt' | 'tls.key', string> }>(
    'GET',
    `/api/v1/namespaces/${NAMESPACE}/secrets/cloud-webhook`,
  )
  for (const [name, content] of Object.entries(data))
    await writeFile(join(folder, name), Buffer.from(content, 'base64'), { mode: 0o600 })
  await ask('POST', `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`, {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'cloud-webhook', labels: { 'kubernetes.io/service-name': 'cloud-webhook' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ADDRESS], conditions: { ready: true } }],
    ports: [{ name: 'webhook', port }],
  })
  const { items } = await ask<{ items: readonly { readonly metadata: { readonly name: string } }[] }>(
    'GET',
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  )
  return {
    SVCCLOUD_WEBHOOK_HOST: ADDRESS,
    SVCCLOUD_WEBHOOK_CONFIGURATION: items[0]?.metadata.name ?? '',
    SVCCLOUD_WEBHOOK_PORT: String(port),
    SVCCLOUD_WEBHOOK_CERTIFICATE_FILE: join(folder, 'tls.crt'),
    SVCCLOUD_WEBHOOK_KEY_FILE: join(folder, 'tls.key'),
    SVCCLOUD_WEBHOOK_TOKEN_FILE: cluster.webhookTokenFile,
    SVCCLOUD_PLATFORM_USERS: ['apiserver', 'controllers']
      .map((name) => `system:serviceaccount:${NAMESPACE}:cloud-${name}`)
      .join(','),
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-rights-'))
  for (const name of ['mail', 'n1']) await mkdir(join(folder, name))
  for (const tool of ['helm', 'kubectl'] as const) await buildTool(tool)
  cluster = await startRealCluster()
  asking = openAsking(cluster)
  postgres = await startPostgres()
  const helm = await openHelm(cluster.kubeconfigFile)
  await helm.must(
    'install',
    'cloud',
    join(ROOT, 'charts/svccloud'),
    '-n',
    NAMESPACE,
    '--create-namespace',
    '--set',
    'database.existingSecret=none,migrations.job=false',
  )
  await helm.must(
    'install',
    'agents',
    join(ROOT, 'charts/svccloud-node-agent'),
    '-n',
    NAMESPACE,
    '--set',
    'nodes[0].name=n1,nodes[0].host=h1',
  )
  await helm.close()
  rights = await namespaceRights(cluster, asking.connections)
  const { url } = await postgres.createDatabase()
  const catalog = join(folder, 'catalog.yaml')
  await writeFile(catalog, CATALOG.map((object) => stringify(object)).join('---\n'))
  await start('controllers/main.ts', {
    SVCCLOUD_DATABASE_URL: url,
    SVCCLOUD_KUBECONFIG: await accessOf('cloud-controllers'),
    SVCCLOUD_NAMESPACE_RIGHTS: rights,
    SVCCLOUD_CATALOG_FILE: catalog,
  })
  const agent = start('agents/node/main.ts', {
    SVCCLOUD_NODE_NAME: 'n1',
    SVCCLOUD_KUBECONFIG: await accessOf('agents-n1'),
    SVCCLOUD_DATA: join(folder, 'n1'),
    SVCCLOUD_HYPERVISOR: 'simulated',
  })
  const mail = join(folder, 'mail')
  const apiserver = await start('apiserver/main.ts', {
    SVCCLOUD_DATABASE_URL: url,
    SVCCLOUD_KUBECONFIG: await accessOf('cloud-apiserver'),
    SVCCLOUD_NAMESPACE_RIGHTS: rights,
    SVCCLOUD_PORT: '0',
    SVCCLOUD_OPERATOR_PORT: '0',
    SVCCLOUD_MAIL_DIRECTORY: mail,
    ...(await webhookSettings()),
  })
  await agent
  await eventually(
    'the node to be ready',
    async () =>
      (await ask<{ status?: { state?: string } }>('GET', '/apis/svccloud.dev/v1alpha1/nodes/n1')).status?.state ===
      'ready',
  )
  endpoints = {
    api_url: apiserver['api_url'] ?? '',
    operator_url: apiserver['operator_url'] ?? '',
    mail_directory: mail,
  }
}, START_MILLISECONDS)

afterAll(async () => {
  const ended = children
    .filter(({ exitCode }) => exitCode === null)
    .map((child) => new Promise((resolve) => child.once('exit', resolve)))
  for (const child of children) child.kill('SIGTERM')
  await Promise.all(ended)
  await asking?.close()
  await postgres?.stop()
  await cluster?.stop()
  if (folder) await rm(folder, { recursive: true, force: true })
})

const kubectl = async (...flags: string[]) =>
  (await promisify(execFile)(toolPath('kubectl'), ['--kubeconfig', cluster.kubeconfigFile, ...flags])).stdout

/** A manifest in a separate file. */
async function manifest(object: object): Promise<string> {
  const file = join(folder, 'manifest.json')
  await writeFile(file, JSON.stringify(object))
  return file
}

it('a server comes, restarts, and goes', async () => {
  // signing up needs the addresses only
  customer = await Customer.signUp(() => ({ endpoints }) as Product, 'rights@example.com')
  await customer.addSshKey()
  const { server, operation } = await customer.createServer({
    zone: 'r1a',
    hostname: 'web',
    plan: 'tiny',
    template: 'tiny-linux',
    user_data: '#!/bin/sh\ntrue\n',
  })
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded', error: '' })
  expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
  expect(
    await customer.finished((await customer.change('POST', `/v1/servers/${server.id}/restart`, {})).id),
  ).toMatchObject({ status: 'succeeded' })
  const console = customer.console(server.id)
  await console.see(/./, 0, 20_000)
  console.close()
  expect(await customer.finished((await customer.change('DELETE', `/v1/servers/${server.id}`)).id)).toMatchObject({
    status: 'succeeded',
  })
})

it.runIf(ADDRESS)(
  "the webhook of the chart, found by its Service and trusted by the chart's authority, judges what kubectl writes",
  async () => {
    const namespace = (
      await kubectl('get', 'namespaces', '-l', 'svccloud.dev/account', '-o', 'jsonpath={.items[0].metadata.name}')
    ).trim()
    const server = (name: string, spec: object = {}) =>
      manifest({
        apiVersion: 'svccloud.dev/v1alpha1',
        kind: 'Server',
        metadata: { name, namespace },
        spec: { hostname: name, zone: 'r1a', plan: 'tiny', template: 'tiny-linux', sshKeys: [PUBLIC_KEY], ...spec },
      })
    await expect(kubectl('create', '-f', await server('huge', { storageGibibytes: 16_384 }))).rejects.toThrow(
      'quota_exceeded',
    )
    await expect(kubectl('create', '-f', await server('keyless', { sshKeys: [] }))).rejects.toThrow(
      'a server needs at least one SSH key',
    )
    await expect(kubectl('create', '-f', await server('forged', { operation: { id: 'x' } }))).rejects.toThrow(
      /spec.operation|invalid/,
    )
    await kubectl('create', '-f', await server('judged'))
    await expect(kubectl('create', '-f', await server('twin', { hostname: 'judged' }))).rejects.toThrow('name_taken')
    await kubectl('wait', '-n', namespace, '--for=condition=Ready', 'server/judged', '--timeout=60s')
    expect(
      (await customer.request<{ items: { action: string; outcome: string }[] }>('GET', '/v1/audit')).body.items.map(
        ({ action, outcome }) => `${action} ${outcome}`,
      ),
    ).toEqual(expect.arrayContaining(['server.create success', 'server.create failed']))
    await kubectl('delete', 'server', 'judged', '-n', namespace, '--timeout=60s')
  },
)

it('a server group comes, keeps a server, and goes', async () => {
  const {
    body: { server_group: group },
  } = await customer.request<{ server_group: { id: string } }>('POST', '/v1/server-groups', {
    name: 'front',
    zone: 'r1a',
    spread: 'host',
  })
  const { server, operation } = await customer.createServer({
    zone: 'r1a',
    hostname: 'kept',
    plan: 'tiny',
    template: 'tiny-linux',
    server_group_id: group.id,
  })
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  expect(await customer.finished((await customer.change('DELETE', `/v1/servers/${server.id}`)).id)).toMatchObject({
    status: 'succeeded',
  })
  await eventually('the group to be empty, and gone', async () => {
    const answer = await customer.request('DELETE', `/v1/server-groups/${group.id}`)
    if (answer.status >= 300) throw new Error(JSON.stringify(answer.body))
    return true
  })
})

it('an operator of the cluster is known by a token of the cluster, and looks after nodes', async () => {
  const send = (method: 'GET' | 'POST', path: string, body = {}) =>
    request(`${endpoints.operator_url}/v1/operator${path}`, {
      method,
      headers: { authorization: `Bearer ${cluster.token}`, 'content-type': 'application/json' },
      body: method === 'POST' ? JSON.stringify(body) : null,
    })
  const state = async () =>
    (await ask<{ status?: { state?: string } }>('GET', '/apis/svccloud.dev/v1alpha1/nodes/n1')).status?.state
  expect((await send('GET', '/nodes')).statusCode).toBe(200)
  expect((await send('POST', '/nodes/n1/cordon', { reason: 'a test' })).statusCode).toBe(202)
  await eventually('the node to be cordoned', async () => (await state()) === 'cordoned')
  await eventually(
    'the operation to have ended',
    async () => (await send('POST', '/nodes/n1/uncordon')).statusCode === 202,
  )
  await eventually('the node to be ready', async () => (await state()) === 'ready')
  expect(
    (await request(`${endpoints.operator_url}/v1/operator/nodes`, { headers: { authorization: 'Bearer wrong' } }))
      .statusCode,
  ).toBe(401)
})

it('nobody was refused anything', async () => {
  for (const [main, log] of logs)
    expect(
      log.split('\n').filter((line) => /forbidden/i.test(line)),
      main,
    ).toEqual([])
  expect([...logs.keys()].toSorted()).toEqual(['agents/node/main.ts', 'apiserver/main.ts', 'controllers/main.ts'])
})
