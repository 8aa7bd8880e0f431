/** `npm start` of an ordinary user: the network of the servers is in namespaces of that user, and all of it is there.
 *  The tests build on each other. */
import { execFile, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, statSync } from 'node:fs'
import { chmod, cp, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isRoot, nodeBinary } from '../../kit/sys/process.ts'
import { eventually } from '../eventually.ts'
import { Customer } from './customer.ts'
import { bannerAt, machineNetwork, networkProcesses, twinIn } from './machine-network.ts'
import { clearAway, IMAGE_CACHE, newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

const run = promisify(execFile)
const CLI = join(import.meta.dirname, '../../cli/main.ts')
/** `nobody`: PostgreSQL wants a user with a name. */
const USER = 65_534
const FLAGS = ['--hypervisor', 'qemu', '--nodes', 'eu-1a=1']

/** As udev has it; some machines have it closed. */
const TUN = '/dev/net/tun'
const tunMode = existsSync(TUN) ? statSync(TUN).mode & 0o777 : undefined

const succeedsAsUser = (...command: readonly string[]): boolean =>
  spawnSync('setpriv', [`--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--', ...command]).status === 0

function obstacle(): string | undefined {
  if (!isRoot()) return 'only root can be somebody else'
  if (tunMode === undefined) return `there is no ${TUN}`
  if (!succeedsAsUser('unshare', '--user', '--map-root-user', '--net', 'true'))
    return 'the kernel gives ordinary users no user namespaces'
  const missing = ['ovs-vswitchd', 'ovn-northd', 'ovn-controller', 'nft', 'ethtool', 'slirp4netns'].find(
    (program) => spawnSync(program, ['--version']).error !== undefined,
  )
  if (missing !== undefined) return `${missing} is not installed`
  if (!succeedsAsUser(nodeBinary(), '--version')) return `ordinary users do not reach ${nodeBinary()}`
  return undefined
}
const why = obstacle()

interface Reached {
  readonly id: string
  readonly public_ipv4: string
  readonly ssh_command: string
  readonly network_status: string
}

describe.skipIf(why !== undefined)(`an ordinary user${why === undefined ? '' : ` (not here: ${why})`}`, () => {
  let data: string
  let before: string
  let product: Product
  let customer: Customer
  let server: Reached

  const start = () => Product.start({ data, flags: FLAGS, user: USER, warnings: UNREAD })
  const ssh = async (command: string) =>
    (
      await run(nodeBinary(), [CLI, 'ssh', '--identity', join(data, 'key'), 'one', '--', command], {
        timeout: 120_000,
        env: {
          PATH: process.env['PATH'],
          HOME: data,
          SVCCLOUD_URL: product.endpoints.api_url,
          SVCCLOUD_TOKEN: customer.token,
        },
      })
    ).stdout
  const network = (name: string) =>
    customer.request<{ network: { id: string } }>('POST', '/v1/networks', { zone: 'eu-1a', name })

  beforeAll(async () => {
    data = await newFolder()
    await mkdir(join(data, 'images'))
    if (existsSync(IMAGE_CACHE)) await cp(IMAGE_CACHE, join(data, 'images'), { recursive: true })
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(data, 'key')])
    await run('chown', ['--recursive', `${USER}:${USER}`, data])
    await chmod(TUN, 0o666)
    before = await machineNetwork()
    product = await start()
    customer = await Customer.signUp(() => product, 'ordinary@example.com')
    const publicKey = await readFile(join(data, 'key.pub'), 'utf8')
    await customer.request('POST', '/v1/ssh-keys', { name: 'test', public_key: publicKey })
    const { id } = (await network('back')).body.network
    const body = { zone: 'eu-1a', plan: 'tiny', template: 'tiny-linux', networks: [{ network_id: id }] }
    const made = await Promise.all([
      customer.createServer({ ...body, hostname: 'one', public_ipv4: true }),
      customer.createServer({ ...body, hostname: 'two' }),
    ])
    for (const { operation } of made)
      expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
    server = await eventually(
      'the host keys of one',
      async () => {
        const path = `/v1/servers/${made[0].server.id}`
        const found = (await customer.request<{ server: Reached & { ssh: { host_keys: string[] } } }>('GET', path)).body
        return found.server.ssh.host_keys.length > 0 ? found.server : undefined
      },
      180_000,
    )
  }, 600_000)
  afterAll(async () => {
    await clearAway(product, data)
    if (tunMode !== undefined) chmodSync(TUN, tunMode)
  })

  it('has the network without the rights of root', async () => {
    expect(product.output()).not.toContain('Open Virtual Network')
    expect(product.output()).toMatch(/servers +198\.18\.a\.b is 127\.\d+\.a\.b/)
    for (const pid of [...(await product.guests()), ...(await networkProcesses(data))])
      expect(statSync(`/proc/${pid}`).uid).toBe(USER)
    interface Zones {
      readonly items?: readonly { readonly capabilities: readonly string[]; readonly network_status_reason: unknown }[]
    }
    // Waiting for the host keys may have taken all that an account may ask.
    const zone = await eventually(
      'the zone',
      async () => (await customer.request<Zones>('GET', '/v1/zones')).body.items?.[0],
    )
    expect(zone).toMatchObject({
      capabilities: expect.arrayContaining(['private_networks', 'floating_ips']),
      network_status_reason: null,
    })
    expect(server.network_status).toBe('available')
    expect(await machineNetwork()).toBe(before)
  })

  it('enters a server, which reaches others by name, the outside and the metadata service', async () => {
    expect(await ssh('hostname')).toBe('one\n')
    await eventually('the other one', async () => {
      const said = await ssh('ping -c 1 -W 2 two > /dev/null 2>&1 && echo yes || echo no')
      return said === 'yes\n'
    })
    expect(await ssh('nslookup localhost 198.19.255.3 2>&1 | head -1')).toContain('198.19.255.3')
    const request = String.raw`GET /metadata/v1.json HTTP/1.0\r\nHost: m\r\n\r\n`
    expect(await ssh(`printf '${request}' | nc -w 5 169.254.169.254 80 | head -1`)).toContain('403 Forbidden')
  })

  it('gets an address of the loopback, which points to the server', async () => {
    const [host, port] = twinIn(server.ssh_command)
    expect(host.split('.').slice(2)).toEqual(server.public_ipv4.split('.').slice(2))
    expect(await bannerAt(host, port)).toMatch(/^SSH-2\.0-/)
  })

  it('kill -9 of everything leaves guests alone, and the next start finds them', async () => {
    const guests = await product.guests()
    await product.killEverything()
    await eventually('the end of the network', async () => (await networkProcesses(data)).length === 0)
    product = await start()
    expect(await product.guests()).toEqual(guests)
    const again = () => ssh('ping -c 1 -W 2 two > /dev/null 2>&1 && echo yes || echo no').catch(() => '')
    await eventually('the network to come back', async () => (await again()) === 'yes\n', 120_000)
  })

  it('Ctrl-C leaves nothing of the network', async () => {
    await product.stop()
    expect(await networkProcesses(data)).toEqual([])
    expect(await machineNetwork()).toBe(before)
  })
})
