/** Every address that a resource shows answers another server of its zone, noun by noun: real machines of edges,
 *  databases and nodes in a network of the zone, and a server that pings them and connects to them; endpoints by
 *  TLS, from where customers are. Edges, databases and clusters take the images of managed machines, databases and
 *  nodes, in the folder that SVCCLOUD_IMAGE_CACHE names, and many minutes where guests are emulated; what has no image
 *  there is skipped. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defined } from '../../domain/defined.ts'
import { EDGE_ROLES } from '../../domain/edge/rules.ts'
import { DATABASE_TEMPLATE, KUBERNETES_NODE_TEMPLATE, MANAGED_TEMPLATE } from '../../domain/managed-machine/rules.ts'
import { nodeBinary } from '../../kit/sys/process.ts'
import { Unrecoverable, until } from '../eventually.ts'
import { addressesIn, LOOPED } from '../resources/shown-addresses.ts'
import { came, hasImage, IMAGES, MINUTES, ZONE } from './cluster-of-guests.ts'
import { Customer } from './customer.ts'
import { clearAway, newFolder, Product } from './product.ts'

const run = promisify(execFile)
const CLI = join(import.meta.dirname, '../../cli/main.ts')
const TEMPLATES = [MANAGED_TEMPLATE, DATABASE_TEMPLATE, KUBERNETES_NODE_TEMPLATE]
const there: readonly string[] = (
  await Promise.all(TEMPLATES.map(async (template) => ((await hasImage(template)) ? [template] : [])))
).flat()
/** Emulated guests boot one beside the other. */
const BOOT_MINUTES = 40

describe('addresses', () => {
  let data: string
  let product: Product
  let customer: Customer
  let networkId: string
  const paths = new Map<string, readonly string[]>()
  /** Who signed the certificates of endpoints: PEM by the field. */
  const authorities = new Map<string, string | undefined>()

  /** In the server that asks. */
  const ask = async (command: string): Promise<string> =>
    (
      await run(nodeBinary(), [CLI, 'ssh', '--identity', join(data, 'key'), 'asker', '--', command], {
        timeout: 2 * MINUTES,
        env: {
          PATH: process.env['PATH'],
          HOME: data,
          SVCCLOUD_URL: product.endpoints.api_url,
          SVCCLOUD_TOKEN: customer.token,
        },
      })
    ).stdout.trim()
  const hears = (command: string) => ask(`${command} > /dev/null 2>&1 < /dev/null && echo yes || echo no`)

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

  /** What is asked about each noun: the image that it takes besides those of servers, and where it is read. All are
   *  made before, so that their guests boot at once. */
  const NOUNS: readonly (readonly [
    noun: string,
    template: string | undefined,
    make: () => Promise<readonly string[]>,
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
        return [path, `${path}/credentials`]
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
    ],
  ]

  const MADE = NOUNS.filter(([, template]) => template === undefined || there.includes(template))
  const LEFT_OUT = NOUNS.filter((one) => !MADE.includes(one))

  beforeAll(async () => {
    data = await newFolder()
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(data, 'key')])
    product = await Product.start({
      data,
      flags: ['--hypervisor', 'qemu', '--nodes', `${ZONE}=2`],
      environment: IMAGES === undefined ? {} : { SVCCLOUD_IMAGE_CACHE: IMAGES },
      warnings: [],
    })
    customer = await Customer.signUp(() => product, 'addresses@example.com')
    const publicKey = await readFile(join(data, 'key.pub'), 'utf8')
    await customer.request('POST', '/v1/ssh-keys', { name: 'test', public_key: publicKey })
    networkId = await make('/v1/networks', 'network', { zone: ZONE, name: 'back', ipv4_cidr: '10.77.0.0/24' })
    const body = { zone: ZONE, hostname: 'asker', plan: 'tiny', template: 'tiny-linux', public_ipv4: true }
    await make('/v1/servers', 'server', { ...body, networks: [{ network_id: networkId }] })
    for (const [noun, , makeIt] of MADE) paths.set(noun, await makeIt())
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
    const command = how === 'ping' ? `ping -c 3 -W 2 ${address}` : `nc -w 5 ${address} ${how}`
    return (await hears(command)) === 'yes'
  }

  const asked = new Set<string>()
  const isLooped = (field: string): field is keyof typeof LOOPED => field in LOOPED

  test.each(MADE)(
    'every address that %s shows answers another server of the zone',
    async (noun) => {
      expect(paths.get(noun)).not.toHaveLength(0)
      for (const path of paths.get(noun) ?? []) {
        const shown = () => read(path).then((answer) => addressesIn(answer, path).filter(([field]) => isLooped(field)))
        await until(
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
          BOOT_MINUTES * MINUTES,
        )
      }
    },
    (BOOT_MINUTES + 10) * MINUTES,
  )

  const why = LEFT_OUT.length === 0 ? '' : ` (images are missing of ${LEFT_OUT.map(([noun]) => noun).join(', ')})`
  test.skipIf(LEFT_OUT.length > 0)(`no field was left out${why}`, () => {
    expect([...asked].sort()).toEqual(Object.keys(LOOPED).sort())
  })
})

const nounOf = (field: string): string => field.split('.')[0] ?? ''
/** Whether all fields of that noun are shown: before its machines have their places some are null. */
const isWhole = (shown: readonly string[]): boolean =>
  shown.length > 0 &&
  Object.keys(LOOPED).every((field) => shown.includes(field) || !shown.some((one) => nounOf(one) === nounOf(field)))

/** Whether what listens there has a certificate of that authority for that address; any authority when absent. */
const isTls = (url: string, authority: string | undefined): Promise<boolean> => {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
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
