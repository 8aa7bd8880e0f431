/** Both charts in the shape of production: their pods really run, on a node of a control plane of the product, with
 *  PostgreSQL in a pod, network policies that are enforced, and a hypervisor that is simulated. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { VERSION } from '../../domain/version.ts'
import { toolPath } from '../../tools/cluster/build.ts'
import { containerImageName } from '../../tools/images/write.ts'
import { manifestsOf } from '../catalog.ts'
import type { Helm } from '../charts/helm.ts'
import { Customer, type Server } from '../e2e/customer.ts'
import type { Product } from '../e2e/product.ts'
import { eventually } from '../eventually.ts'
import type { PodCluster } from './node.ts'
import {
  openPlatformCluster,
  type PlatformCluster,
  START_MILLISECONDS,
  SYSTEM_NAMESPACE as NAMESPACE,
} from './release.ts'
import { groupWriter, startWriter } from './writer.ts'

const ROOT = join(import.meta.dirname, '../..')
const NEXT_VERSION = `${VERSION}-next`

let folder: string
let release: PlatformCluster
let cluster: PodCluster
let helm: Helm
let url: string
let customer: Customer
let server: Server

const kubectl = async (...flags: readonly string[]): Promise<string> =>
  (await promisify(execFile)(toolPath('kubectl'), ['--kubeconfig', cluster.kubeconfigFile, ...flags])).stdout
const inSystem = (...flags: readonly string[]) => kubectl('-n', NAMESPACE, ...flags)

async function manifest(object: object): Promise<string> {
  const file = join(folder, 'manifest.json')
  await writeFile(file, JSON.stringify(object))
  return file
}

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: { readonly containers: readonly { readonly image: string }[] }
  readonly status: {
    readonly podIP: string
    readonly containerStatuses: readonly { readonly ready: boolean; readonly restartCount: number }[]
  }
}

const podsOf = async (selector: string): Promise<readonly Pod[]> =>
  // as kubectl prints them
  (JSON.parse(await inSystem('get', 'pods', '-l', selector, '-o', 'json')) as { readonly items: readonly Pod[] }).items

/** As a customer of the platform would find it, by its Service. */
const customerOf = (email: string) =>
  // signing up needs the addresses only
  Customer.signUp(() => ({ endpoints: { api_url: url, mail_directory: '' } }) as Product, email)

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pods-'))
  release = await openPlatformCluster(folder)
  ;({ cluster, helm } = release)
  await cluster.tagImage(
    containerImageName('svccloud/svccloud', VERSION),
    containerImageName('svccloud/svccloud', NEXT_VERSION),
  )
  const values = {
    database: { existingSecret: 'svccloud-database' },
    catalog: manifestsOf('eu-1', 'eu-1a'),
    // While pods start on this machine, the proxy of its node learns late of one that ends.
    apiserver: { drainSeconds: 20 },
  }
  await writeFile(join(folder, 'values.yaml'), stringify(values))
}, START_MILLISECONDS)

afterAll(async () => {
  await release?.end()
  if (folder) await rm(folder, { recursive: true, force: true })
})

const chart = (name: string, ...more: readonly string[]) => [
  join(ROOT, 'charts', name),
  '-n',
  NAMESPACE,
  '--wait',
  '--timeout',
  '280s',
  ...more,
]

it('both charts are installed, and every pod gets ready at its first start', async () => {
  await helm.must('install', 'svccloud', ...chart('svccloud', '-f', join(folder, 'values.yaml')))
  const host = `nodes[0].name=n1,nodes[0].host=${cluster.machine.name}`
  await helm.must('install', 'agents', ...chart('svccloud-node-agent', '--set', `${host},hypervisor=simulated`))
  await kubectl('wait', 'nodes.svccloud.dev', 'n1', '--for=condition=Ready', '--timeout=200s')
  for (const [selector, count] of [
    ['app.kubernetes.io/component=apiserver', 2],
    ['app.kubernetes.io/component=controllers', 2],
    ['svccloud.dev/node=n1', 1],
  ] as const) {
    const states = (await podsOf(selector)).flatMap(({ status }) => status.containerStatuses)
    expect(
      states.map(({ ready, restartCount }) => ({ ready, restartCount })),
      await inSystem('logs', '-l', selector, '--previous', '--ignore-errors', '--tail=20'),
    ).toEqual(Array.from({ length: count }, () => ({ ready: true, restartCount: 0 })))
  }
})

it('a server of a customer gets started on the host', async () => {
  url = `http://${await inSystem('get', 'service', 'svccloud-apiserver', '-o', 'jsonpath={.spec.clusterIP}')}`
  customer = await customerOf('pods@example.com')
  await customer.addSshKey()
  const made = await customer.createServer({ zone: 'eu-1a', hostname: 'web', plan: 'tiny', template: 'tiny-linux' })
  expect(await customer.finished(made.operation.id)).toMatchObject({ status: 'succeeded', error: '' })
  server = made.server
  expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
  const console = customer.console(server.id)
  await console.see(/./, 0)
  console.close()
})

it('the webhook is found by its Service, and judges what kubectl writes', async () => {
  const account = 'svccloud.dev/account'
  const namespace = (
    await kubectl('get', 'namespaces', '-l', account, '-o', 'jsonpath={.items[0].metadata.name}')
  ).trim()
  const written = (name: string, more: object) =>
    manifest({
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Server',
      metadata: { name, namespace },
      spec: { hostname: name, zone: 'eu-1a', plan: 'tiny', template: 'tiny-linux', ...more },
    })
  await expect(kubectl('create', '-f', await written('keyless', { sshKeys: [] }))).rejects.toThrow(
    'a server needs at least one SSH key',
  )
})

it('network policies keep the port of operators from everybody but the namespace', async () => {
  const [pod] = await podsOf('app.kubernetes.io/component=apiserver')
  const [operators, customers] = [8_081, 8_080].map((port) => `http://${pod?.status.podIP}:${port}/livez`)
  const reached = (address = '') => fetch(address, { signal: AbortSignal.timeout(3_000) }).then(() => true)
  await eventually('the policies to be enforced', () =>
    reached(operators).then(
      () => false,
      () => true,
    ),
  )
  await eventually('customers to reach it', () => reached(customers))
  const script = `fetch('${operators}').then((answer) => console.log(answer.status))`
  expect(await inSystem('exec', 'svccloud-postgres-0', '--', 'node', '-e', script)).toBe('200\n')
})

/** What helm does is done while customers and an operator write; answers what they lost, and how much they wrote. */
async function whileWriting(work: () => Promise<unknown>) {
  const name = (await kubectl('get', 'servers.svccloud.dev', '-A', '-o', 'jsonpath={.items[0].metadata}')).trim()
  const { namespace, name: id } = JSON.parse(name) as Readonly<Record<'namespace' | 'name', string>> // of one object
  const annotate = ['annotate', '--overwrite', 'servers.svccloud.dev', id, '-n', namespace]
  const other = await customerOf(`writer-${performance.now()}@example.com`)
  const writers = [
    startWriter('lasting connections', groupWriter(url, customer.token, true)),
    startWriter('new connections', groupWriter(url, other.token, false)),
    startWriter('kubectl', async (turn) => void (await kubectl(...annotate, `turn=${turn}`))),
  ]
  await work()
  const lost = (await Promise.all(writers.map((writer) => writer.stop()))).flat()
  return { lost, counts: writers.map(({ count }) => count), story: lost.length === 0 ? '' : await storyOf() }
}

/** What pods complained of, and what was said of them. */
async function storyOf(): Promise<string> {
  const selector = 'app.kubernetes.io/instance=svccloud'
  const logs = await inSystem('logs', '-l', selector, '--prefix', '--tail=2000', '--ignore-errors')
  const events = await inSystem('get', 'events', '--sort-by=.lastTimestamp', '--field-selector=type=Warning')
  return [...logs.split('\n').filter((line) => /"level":[456]0/.test(line)), events].join('\n')
}

const imagesOf = async (component: string): Promise<readonly string[]> => [
  ...new Set(
    (await podsOf(`app.kubernetes.io/component=${component}`)).map(({ spec }) => spec.containers[0]?.image ?? ''),
  ),
]

it.each([
  { what: 'an upgrade', tag: NEXT_VERSION, words: ['upgrade', 'svccloud'] },
  { what: 'its rollback', tag: VERSION, words: ['rollback', 'svccloud', '1'] },
])(
  'during $what no write is lost, and guests run on',
  async ({ tag, words }) => {
    const [agent] = await podsOf('svccloud.dev/node=n1')
    const flags =
      words[0] === 'upgrade'
        ? chart('svccloud', '--reuse-values', '--set', `image.tag=${tag}`)
        : ['-n', NAMESPACE, '--wait', '--timeout', '280s']
    const { lost, counts, story } = await whileWriting(() => helm.must(...words, ...flags))
    expect(lost, story).toEqual([])
    for (const count of counts) expect(count).toBeGreaterThan(10)
    for (const component of ['apiserver', 'controllers'])
      await eventually('the others to be gone', async () => (await imagesOf(component)).length === 1)
    expect(await imagesOf('apiserver')).toEqual([`svccloud/svccloud:${tag}`])
    expect(await imagesOf('controllers')).toEqual([`svccloud/svccloud:${tag}`])
    expect((await podsOf('svccloud.dev/node=n1'))[0]?.metadata.uid).toBe(agent?.metadata.uid)
    expect(await customer.server(server.id)).toMatchObject({ state: 'started' })
  },
  300_000,
)
