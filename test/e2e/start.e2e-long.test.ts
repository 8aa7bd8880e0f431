/** What `npm start` refuses, and its other ways to run. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdir, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Endpoints } from '../../embedded/cloud.ts'
import { findKubernetes } from '../../hosting/processes/programs.ts'
import { findEngine } from '../../embedded/object-storage/program.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { eventually } from '../eventually.ts'
import { Customer, PUBLIC_KEY } from './customer.ts'
import { guestsOf, IMAGE_CACHE, newFolder, Product, refusedStart } from './product.ts'

const SIMULATED = ['--hypervisor', 'simulated']
const FREE_PORTS = ['--port', '0', '--operator-port', '0', '--kubernetes-port', '0']
const ROOT = join(import.meta.dirname, '../..')

let folder: string
const products: Product[] = []

beforeAll(async () => void (folder = await newFolder()))
afterEach(async () => {
  for (const product of products.splice(0)) await product.stop()
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A cluster of one's own calls no webhook of a single machine. */
const UNJUDGED = [/"msg":"no webhook: what people write to Kubernetes is judged only after it is stored"/]

async function start(data: string, ...flags: string[]): Promise<Product> {
  const product = await Product.start({
    data: join(folder, data),
    flags: [...SIMULATED, '--nodes', 'eu-1a=1', ...flags],
    warnings: flags.includes('--kubeconfig') ? UNJUDGED : [],
  })
  products.push(product)
  return product
}

const lines = (output: string) => output.trim().split('\n')

describe('refuses in one clear line', () => {
  it('a port in use', async () => {
    const taken: Server = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    try {
      const { code, output } = await refusedStart([
        '--data',
        join(folder, 'port'),
        ...SIMULATED,
        ...FREE_PORTS,
        '--port',
        String(port),
      ])
      expect(code).toBe(1)
      expect(output).toContain(`(process ${process.pid}).`)
      expect(
        lines(output)
          .at(-1)
          ?.replace(/ by .* \(process \d+\)/, ''),
      ).toBe(
        `Port ${port} on 127.0.0.1 is in use. Stop what uses it, or choose another: npm start -- --port PORT (0 ` +
          'takes a free one)',
      )
    } finally {
      taken.close()
    }
  })

  it('a folder that is none', async () => {
    const { code, output } = await refusedStart(['--data', '/dev/null/data', ...FREE_PORTS])
    expect(code).toBe(1)
    expect(lines(output)).toEqual(['/dev/null/data is not a folder. Choose another: npm start -- --data DIR'])
  })

  it('nonsense on the command line', async () => {
    const { code, output } = await refusedStart(['--prot', '80'])
    expect(code).toBe(2)
    expect(lines(output)).toEqual(['--prot is not known. See: npm start -- --help'])
  })

  it('a kubeconfig that is none', async () => {
    const { code, output } = await refusedStart([
      '--data',
      join(folder, 'kubeconfig'),
      ...SIMULATED,
      ...FREE_PORTS,
      '--kubeconfig',
      '/dev/null',
    ])
    expect(code).toBe(1)
    expect(lines(output).at(-1)).toBe('/dev/null is not a kubeconfig with a current context and a server.')
  })
})

it('holds its folder, and starts again where it was', async () => {
  const first = await start('held')
  expect(first.output()).toContain('WARNING: guests are simulated')
  const { code, output } = await refusedStart(['--data', first.data, ...SIMULATED, ...FREE_PORTS])
  expect(code).toBe(1)
  expect(lines(output)).toEqual([
    `The folder ${first.data} is in use by another svccloud. Stop that one, or choose another folder: npm start ` +
      '-- --data DIR',
  ])
  await first.query('create table kept (value int)')
  expect(await first.stop()).toBe(0)

  const second = await start('held')
  expect(second.endpoints.postgres_url).toBe(first.endpoints.postgres_url)
  expect(await second.query('select count(*)::int as count from kept')).toEqual([{ count: 0 }])
})

it('takes its settings from the environment too', async () => {
  const data = join(folder, 'environment')
  const product = await Product.start({
    data,
    environment: { SVCCLOUD_HYPERVISOR: 'simulated', SVCCLOUD_NODES: 'here=2,there=1' },
    warnings: [],
  })
  products.push(product)
  expect([...(await product.processes()).keys()].filter((name) => name.startsWith('agent-')).sort()).toEqual([
    'agent-here-1',
    'agent-here-2',
    'agent-there-1',
  ])
  await eventually(
    'the nodes to be known',
    async () => (await product.query('select 1 from node_capacity where is_schedulable')).length === 3,
  )
})

it.each([0, 60, 200])('can be stopped %i ms into its start', async (milliseconds) => {
  const child: ChildProcess = spawn(nodeBinary(), ['embedded/start.js', '--ephemeral', ...SIMULATED, ...FREE_PORTS], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => void (output += chunk.toString()))
  const data = await eventually('it to begin', async () => /^Starting svccloud in (\S+)/m.exec(output)?.[1])
  await sleep(milliseconds)
  const exited = once(child, 'close') // by then all that it said is here
  child.kill('SIGINT')
  expect(await exited, output).toEqual([0, null])
  // It may have begun with the portal, but begins with nothing after it was stopped.
  const said = lines(output).slice(1)
  expect(said.filter((line) => !line.startsWith('Building the portal'))).toEqual([
    `Starting svccloud in ${data} ...`,
    'Stopping ...',
  ])
  expect(said.at(-1)).toBe('Stopping ...')
  await expect(access(data)).rejects.toThrow(/ENOENT/)
})

it('leaves nothing of an ephemeral cloud, guests included', async () => {
  const child: ChildProcess = spawn(
    nodeBinary(),
    ['embedded/start.js', '--ephemeral', '--hypervisor', 'qemu', '--no-install', ...FREE_PORTS, '--nodes', 'eu-1a=1'],
    {
      cwd: ROOT,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, SVCCLOUD_IMAGE_CACHE: IMAGE_CACHE },
    },
  )
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => void (output += chunk.toString()))
  const data = await eventually(
    'it to start',
    async () => (output.includes('Ctrl-C stops it') ? /^Starting svccloud in (\S+)/m.exec(output)?.[1] : undefined),
    120_000,
  )
  // the product's own file
  const endpoints = JSON.parse(await readFile(join(data, 'endpoints.json'), 'utf8')) as Endpoints
  const customer = await Customer.signUp(() => ({ endpoints }), 'passer-by@example.com')
  const { operation } = await customer.createServer({
    zone: 'eu-1a',
    hostname: 'short-lived',
    plan: 'tiny',
    template: 'tiny-linux',
    ssh_keys: [PUBLIC_KEY],
  })
  expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  expect(await guestsOf(data)).toHaveLength(1)

  const exited = once(child, 'exit')
  child.kill('SIGINT')
  expect(await exited).toEqual([0, null])
  await expect(access(data)).rejects.toThrow(/ENOENT/)
  expect(await guestsOf(data)).toEqual([])
})

describe('your own cluster and database', () => {
  const children: ChildProcess[] = []
  afterAll(async () => {
    for (const child of children) {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    }
  })

  async function ready(main: string, data: string): Promise<Record<string, unknown>> {
    const child = fork(join(ROOT, main), [], {
      execPath: nodeBinary(),
      execArgv: [],
      env: { ...process.env, SVCCLOUD_DATA: data, SVCCLOUD_PORT: '0' },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    children.push(child)
    const [message] = (await once(child, 'message')) as [Record<string, unknown>]
    return message
  }

  it('take the place of the embedded ones', async () => {
    const [postgresFolder, kubernetesFolder] = [join(folder, 'own-postgres'), join(folder, 'own-kubernetes')]
    for (const path of [postgresFolder, kubernetesFolder]) await mkdir(path)
    await chmod(postgresFolder, 0o711)
    await chmod(folder, 0o711)
    const postgres = await ready('embedded/postgres-main.ts', postgresFolder)
    const kubernetes = await ready('embedded/kubernetes/main.ts', kubernetesFolder)
    const product = await start(
      'own',
      '--database-url',
      String(postgres['url']),
      '--kubeconfig',
      String(kubernetes['kubeconfig']),
    )
    expect(product.endpoints).toMatchObject({
      postgres_url: postgres['url'],
      kubernetes_url: kubernetes['url'],
      kubeconfig: kubernetes['kubeconfig'],
    })
    expect([...(await product.processes()).keys()].sort()).toEqual([
      'agent-eu-1a-1',
      'apiserver',
      ...((await findKubernetes()) === undefined ? [] : ['control-planes']),
      'controllers',
      ...((await findEngine()) === undefined ? [] : ['object-storage']),
    ])
    expect(await readFile(product.endpoints.ca_certificate ?? '', 'utf8')).toMatch(/BEGIN CERTIFICATE/)
    await eventually(
      'the node to be ready',
      async () => (await product.query('select 1 from node_capacity where is_schedulable')).length === 1,
    )
  })
})
