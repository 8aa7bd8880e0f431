/** Every address that a resource shows answers another server of its zone, noun by noun: machines of edges, databases,
 *  nodes and dev clusters in networks of the zone, and a server that pings them, connects to them and sends requests;
 *  endpoints of control planes by TLS, from where customers are. Machines boot the images in the folder that
 *  SVCCLOUD_IMAGE_CACHE names, which takes many minutes where guests are emulated. What has no image there boots a
 *  light guest with the network part of the image, and the test's name says so: everything of the platform is the
 *  same, and the programs of the image are not there. */
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { connect, type TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defined } from '../../domain/defined.ts'
import { EDGE_ROLES } from '../../domain/edge/rules.ts'
import {
  DATABASE_TEMPLATE,
  DEV_CLUSTER_TEMPLATE,
  KUBERNETES_NODE_TEMPLATE,
  MANAGED_TEMPLATE,
  MANAGED_TEMPLATES,
} from '../../domain/managed-machine/rules.ts'
import { findEngine } from '../../embedded/object-storage/program.ts'
import { findKubernetes } from '../../hosting/processes/programs.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { Unrecoverable, until } from '../eventually.ts'
import { addressesIn, LOOPED } from '../resources/shown-addresses.ts'
import { came, hasImage, IMAGES, MINUTES, ZONE } from './cluster-of-guests.ts'
import { Customer } from './customer.ts'
import { openImages } from './light-machines.ts'
import { clearAway, newFolder, Product } from './product.ts'

const run = promisify(execFile)
const CLI = join(import.meta.dirname, '../../cli/main.ts')
const there: readonly string[] = (
  await Promise.all(MANAGED_TEMPLATES.map(async (template) => ((await hasImage(template)) ? [template] : [])))
).flat()
const KUBERNETES_OBSTACLE =
  (await findKubernetes()) === undefined ? 'the programs of control planes are not built' : undefined
const STORAGE_OBSTACLE = (await findEngine()) === undefined ? 'its engine is not built' : undefined
/** Emulated guests boot one beside the other. */
const BOOT_MINUTES = 40
/** Shown once PostgreSQL runs. It is `database.host` again. */
const OF_POSTGRESQL = 'credentials.host'
const LIGHT = ' (a light guest in place of its image)'
/** Where others than this machine reach object storage. */
const HOST =
  Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? ''

describe('addresses', () => {
  let data: string
  let product: Product
  let customer: Customer
  let networkId: string
  const paths = new Map<string, readonly string[]>()
  /** Who signed the certificates of endpoints: PEM by the field. */
  const authorities = new Map<string, string | undefined>()

  const inAsker = (command: string) => [CLI, 'ssh', '--identity', join(data, 'key'), 'asker', '--', command]
  const environmentOfCli = () => ({
    PATH: process.env['PATH'],
    HOME: data,
    SVCCLOUD_URL: product.endpoints.api_url,
    SVCCLOUD_TOKEN: customer.token,
  })
  /** In the server that asks. */
  const ask = async (command: string): Promise<string> =>
    (await run(nodeBinary(), inAsker(command), { timeout: 2 * MINUTES, env: environmentOfCli() })).stdout.trim()
  /** Whether an HTTP server with a certificate of that authority for that address answers a request of that server. */
  async function hearsHttps(url: string, authority: string | undefined): Promise<boolean> {
    const { hostname, port } = new URL(url)
    const wire = spawn(nodeBinary(), inAsker(`nc ${hostname} ${port || 443}`), {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: environmentOfCli(),
    })
    const stream = Duplex.from({ writable: wire.stdin, readable: wire.stdout })
    const socket = connect({ socket: stream, host: hostname, ...defined({ ca: authority }) })
    try {
      return await isHttp(socket, hostname)
    } finally {
      socket.destroy()
      stream.destroy()
      wire.kill()
    }
  }
  const hears = async (command: string): Promise<boolean> =>
    (await ask(`${command} > /dev/null 2>&1 < /dev/null && echo yes || echo no`)) === 'yes'

  /** Makes one, as soon as its zone offers it; its id. */
  async function make(path: string, field: string, body: object): Promise<string> {
    const { body: made } = await came(
      `${path} to be offered`,
      async () => {
        const answer = await customer.request<Record<string, { readonly id: string }>>('POST', path, body)
        if (answer.status === 400) throw new Unrecoverable(JSON.stringify(answer.body))
        return answer
      },
      ({ status }) => status === 201 || status === 202,
      3,
    )
    return made[field]?.id ?? ''
  }
  const read = async (path: string) => (await customer.request<Record<string, unknown>>('GET', path)).body

  /** What is asked about each noun: the image that it takes besides those of servers, what keeps it from being had
   *  here, and where it is read. All are made before, so that their guests boot at once. */
  const NOUNS: readonly (readonly [
    noun: string,
    template: string | undefined,
    make: () => Promise<readonly string[]>,
    obstacle?: string | undefined,
  ])[] = [
    [
      'a server',
      undefined,
      async () => {
        const body = { zone: ZONE, hostname: 'asked', plan: 'tiny', template: 'tiny-linux', public_ipv4: true }
        const id = await make('/v1/servers', 'server', { ...body, networks: [{ network_id: networkId }] })
        return [`/v1/servers/${id}`, `/v1/servers/${id}/interfaces`]
      },
    ],
    [
      'a combined edge',
      MANAGED_TEMPLATE,
      async () => {
        const body = { name: 'edge', network_id: networkId, placement: 'combined', roles: EDGE_ROLES }
        return [`/v1/edges/${await make('/v1/edges', 'edge', body)}`]
      },
    ],
    [
      'a database',
      DATABASE_TEMPLATE,
      async () => {
        const body = { zone: ZONE, name: 'shop', network_id: networkId, database_name: 'shop' }
        const path = `/v1/databases/${await make('/v1/databases', 'database', body)}`
        return there.includes(DATABASE_TEMPLATE) ? [path, `${path}/credentials`] : [path]
      },
    ],
    [
      'a cluster',
      KUBERNETES_NODE_TEMPLATE,
      async () => {
        const node_pools = [{ name: 'pool', plan: 'starter-2c-4g', count: 1, public_ipv4: true }]
        const body = { zone: ZONE, name: 'cluster', network_id: networkId, public_ipv4: true, node_pools }
        const path = `/v1/kubernetes-clusters/${await make('/v1/kubernetes-clusters', 'kubernetes_cluster', body)}`
        const { kubeconfig } = await came(
          'its kubeconfig',
          () => read(`${path}/kubeconfig`),
          (answer) => typeof answer['kubeconfig'] === 'string',
          10,
        )
        const text = /certificate-authority-data: *(\S+)/.exec(String(kubeconfig))?.[1] ?? ''
        for (const field of ['kubernetes_cluster.endpoint', 'kubernetes_cluster.endpoint_ipv4'])
          authorities.set(field, Buffer.from(text, 'base64').toString())
        return [path]
      },
      KUBERNETES_OBSTACLE,
    ],
    [
      'a dev cluster',
      DEV_CLUSTER_TEMPLATE,
      async () => {
        const body = { zone: ZONE, name: 'play', plan: 'starter-2c-4g', public_ipv4: true }
        return [`/v1/dev-clusters/${await make('/v1/dev-clusters', 'dev_cluster', body)}`]
      },
    ],
    [
      'object storage',
      undefined,
      async () => {
        await make('/v1/object-storage', 'object_storage', { zone: ZONE })
        const { items } = await read('/v1/object-storage')
        const [storage] = items as { certificate_authority: string | null }[] // one for each zone
        authorities.set('object_storage.endpoint', storage?.certificate_authority ?? undefined)
        return ['/v1/object-storage']
      },
      STORAGE_OBSTACLE,
    ],
  ]

  const MADE = NOUNS.flatMap(([noun, template, makeIt, obstacle]) =>
    obstacle === undefined
      ? [[`${noun}${template === undefined || there.includes(template) ? '' : LIGHT}`, makeIt] as const]
      : [],
  )
  const LEFT_OUT = NOUNS.flatMap(([noun, , , obstacle]) => (obstacle === undefined ? [] : [`${noun}: ${obstacle}`]))

  beforeAll(async () => {
    data = await newFolder()
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(data, 'key')])
    const images = await openImages(join(data, 'images'), { source: IMAGES, there })
    product = await Product.start({
      data,
      flags: ['--hypervisor', 'qemu', '--nodes', `${ZONE}=2`, '--host', '0.0.0.0'],
      environment: { SVCCLOUD_IMAGE_CACHE: images, SVCCLOUD_OBJECT_STORAGE_HOST: HOST },
      warnings: [],
    })
    customer = await Customer.signUp(() => product, 'addresses@example.com')
    const publicKey = await readFile(join(data, 'key.pub'), 'utf8')
    await customer.request('POST', '/v1/ssh-keys', { name: 'test', public_key: publicKey })
    networkId = await make('/v1/networks', 'network', { zone: ZONE, name: 'back', ipv4_cidr: '10.77.0.0/24' })
    const body = { zone: ZONE, hostname: 'asker', plan: 'tiny', template: 'tiny-linux', public_ipv4: true }
    await make('/v1/servers', 'server', { ...body, networks: [{ network_id: networkId }] })
    for (const [noun, makeIt] of MADE) paths.set(noun, await makeIt())
    await until(
      'the server that asks',
      () => ask('hostname'),
      (name) => name === 'asker',
      10 * MINUTES,
    )
  }, 30 * MINUTES)
  afterAll(async () => {
    if (data !== undefined) await clearAway(product, data)
  }, 2 * MINUTES)

  /** Whether it answers, however the field is to be asked. */
  async function answers(field: keyof typeof LOOPED, address: string): Promise<boolean> {
    const how = LOOPED[field]
    if (how === 'tls') return isTls(address, authorities.get(field))
    if (how === 'https') return hearsHttps(address, authorities.get(field))
    if (how === 'ping') return hears(`ping -c 3 -W 2 ${address}`)
    if (how !== 'connect') return hears(`nc -w 5 ${address} ${how}`)
    const { hostname, port } = new URL(address)
    return hears(`nc -w 5 ${bare(hostname)} ${port}`)
  }

  const asked = new Set<string>()
  const isLooped = (field: string): field is keyof typeof LOOPED => field in LOOPED

  test.each(MADE)(
    'every address that %s shows answers another server of the zone',
    async (noun) => {
      expect(paths.get(noun)).not.toHaveLength(0)
      for (const path of paths.get(noun) ?? []) {
        const shown = () => read(path).then((answer) => addressesIn(answer, path).filter(([field]) => isLooped(field)))
        await came(
          `answers at what ${path} shows`,
          async () => {
            const answered = await Promise.all(
              (await shown()).map(async ([field, address]) => ({
                field,
                address,
                isThere: isLooped(field) && (await answers(field, address)),
              })),
            )
            for (const { field, isThere } of answered) if (isThere) asked.add(field)
            return answered
          },
          (answered) => isWhole(answered.map(({ field }) => field)) && answered.every(({ isThere }) => isThere),
          BOOT_MINUTES,
        )
      }
    },
    (BOOT_MINUTES + 10) * MINUTES,
  )

  test('a server reaches nothing else of the machine', async () => {
    const { port } = new URL(product.endpoints.api_url)
    expect((await fetch(`http://${HOST}:${port}/docs`)).ok).toBe(true)
    expect(await hears(`nc -w 5 ${HOST} ${port}`)).toBe(false)
  })

  const why = LEFT_OUT.length === 0 ? '' : ` (${LEFT_OUT.join('; ')})`
  test.skipIf(LEFT_OUT.length > 0)(`no field was left out${why}`, () => {
    const fields = Object.keys(LOOPED).filter((field) => field !== OF_POSTGRESQL || there.includes(DATABASE_TEMPLATE))
    expect([...asked].sort()).toEqual(fields.sort())
  })
})

const nounOf = (field: string): string => field.split('.')[0] ?? ''
/** Whether all fields of that noun are shown: before its machines have their places some are null. */
const isWhole = (shown: readonly string[]): boolean =>
  shown.length > 0 &&
  Object.keys(LOOPED).every((field) => shown.includes(field) || !shown.some((one) => nounOf(one) === nounOf(field)))

const bare = (host: string): string => host.replace(/^\[|\]$/g, '')

/** Whether what listens there has a certificate of that authority for that address; any authority when absent. */
const isTls = (url: string, authority: string | undefined): Promise<boolean> => {
  const { hostname, port } = new URL(url)
  const host = bare(hostname)
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || 443), ...defined({ ca: authority }) })
    const end = (isThere: boolean) => {
      socket.destroy()
      resolve(isThere)
    }
    socket.setTimeout(10_000, () => end(false))
    socket.once('secureConnect', () => end(socket.authorized)).once('error', () => end(false))
  })
}

const isHttp = (socket: TLSSocket, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    socket.setTimeout(30_000, () => resolve(false))
    socket.once('error', () => resolve(false)).once('close', () => resolve(false))
    socket.once('data', (head: Buffer) => resolve(socket.authorized && /^HTTP\/1\.1 \d{3} /.test(head.toString())))
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  })
