/** What a product with simulated guests needs for every noun of a customer: images of managed machines, public
 *  addresses, and somebody who plays the nodes of clusters. */
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { managedVersion } from '../../agents/node/images/managed/recipe.ts'
import { MANIFEST_FILE } from '../../agents/node/images/recipe.ts'
import { type Client, createClient, unwrap } from '../../client/index.ts'
import { MANAGED_TEMPLATES } from '../../domain/managed-machine/rules.ts'
import { buildTool } from '../../tools/cluster/build.ts'
import { IMAGE_CACHE, type Product } from '../e2e/product.ts'
import { until } from '../eventually.ts'

/** Publishes images of all managed machines in the folder. They are empty: simulated guests load nothing. */
export async function publishImages(folder: string): Promise<void> {
  for (const template of MANAGED_TEMPLATES) {
    const image = join(folder, template, await managedVersion(template, new Date()))
    await mkdir(image, { recursive: true })
    await writeFile(
      join(image, MANIFEST_FILE),
      JSON.stringify({ kernel: 'kernel', initialRamdisk: 'initrd', commandLine: '', disk: 'disk.qcow2' }),
    )
  }
  // it is built once for all tests
  await symlink(join(IMAGE_CACHE, 'tiny-linux'), join(folder, 'tiny-linux'))
}

const POOLS = [
  { use: 'server_ipv4', family: 'ipv4', cidr: '203.0.113.0/26' },
  { use: 'floating_ipv4', family: 'ipv4', cidr: '198.51.100.0/28' },
  { use: 'edge', family: 'ipv4', cidr: '192.0.2.0/27' },
  { use: 'server_ipv6_prefix', family: 'ipv6', cidr: '2001:db8::/48' },
] as const

interface PoolPage {
  readonly items: readonly { readonly active_operation: unknown }[]
}

/** Gives the zone public addresses for every use of customers. */
export async function addPublicAddresses({ endpoints }: Product, zone: string): Promise<void> {
  const token = (await readFile(endpoints.operator_token_file ?? '', 'utf8')).trim()
  const url = `${endpoints.operator_url}/v1/operator/public-pools`
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const add = (pool: object) => fetch(url, { method: 'POST', headers, body: JSON.stringify({ zone, ...pool }) })
  // parts of the product may still start
  for (const pool of POOLS)
    await until(
      'addresses',
      () => add(pool),
      ({ status }) => status === 202,
    )
  await until(
    'the addresses can be used',
    // as the API answers
    async () => (await (await fetch(url, { headers })).json()) as PoolPage,
    ({ items }) => items.every(({ active_operation: operation }) => operation === null),
  )
}

/** As often as the platform lets people ask. */
const LOOK_MILLISECONDS = 3_000

/** Control planes wait less than a minute for the next report of a node. */
const REPORT_MILLISECONDS = 15_000

/** Plays the nodes of the clusters of a customer: each joins and reports that it is ready as soon as its server is
 *  there. Their control planes are real. Returns what ends it. */
export function playNodes({ url, token, folder }: { url: string; token: string; folder: string }): () => Promise<void> {
  const client = createClient({ url, token })
  const ended = new AbortController()
  const reported = new Map<string, number>()
  async function play(): Promise<void> {
    while (!ended.signal.aborted) {
      // a cluster may come or go in between
      await reportAll(client, folder, reported).catch(() => undefined)
      await sleep(LOOK_MILLISECONDS, undefined, { signal: ended.signal }).catch(() => undefined)
    }
  }
  const playing = play()
  return async () => {
    ended.abort()
    await playing
  }
}

async function reportAll(client: Client, folder: string, reported: Map<string, number>): Promise<void> {
  const { items } = await unwrap(client.GET('/v1/kubernetes-clusters'))
  for (const { id } of items) {
    const params = { path: { id } }
    const { kubernetes_cluster: cluster } = await unwrap(client.GET('/v1/kubernetes-clusters/{id}', { params }))
    const { kubernetes_version: version, node_pools: pools = [] } = cluster
    const names = pools.flatMap(({ nodes }) => nodes.map(({ hostname }) => hostname))
    const isDue = (name: string) => (reported.get(`${id}/${name}`) ?? 0) + REPORT_MILLISECONDS < Date.now()
    for (const name of names.filter(isDue)) {
      const { kubeconfig } = await unwrap(client.GET('/v1/kubernetes-clusters/{id}/kubeconfig', { params }))
      await reportNode({ file: join(folder, `${id}.kubeconfig`), kubeconfig, name, version })
      reported.set(`${id}/${name}`, Date.now())
    }
  }
}

interface Node {
  readonly file: string
  readonly kubeconfig: string
  readonly name: string
  readonly version: string
}

async function reportNode({ file, kubeconfig, name, version }: Node): Promise<void> {
  await writeFile(file, kubeconfig, { mode: 0o600 })
  const program = await buildTool('kubectl')
  const kubectl = (...words: readonly string[]) => promisify(execFile)(program, ['--kubeconfig', file, ...words])
  const manifest = `${file}.${name}.json`
  await writeFile(manifest, JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name } }))
  await kubectl('apply', '-f', manifest)
  const now = new Date().toISOString()
  const ready = {
    type: 'Ready',
    status: 'True',
    reason: 'KubeletReady',
    message: '',
    lastHeartbeatTime: now,
    lastTransitionTime: now,
  }
  const status = {
    conditions: [ready],
    nodeInfo: { kubeletVersion: version },
    addresses: [{ type: 'Hostname', address: name }],
  }
  await kubectl('patch', 'node', name, '--subresource=status', '--type=strategic', '-p', JSON.stringify({ status }))
}
