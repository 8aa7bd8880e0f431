/** The network that `npm start` has by itself, by what real guests send: to each other on two hosts, to the outside,
 *  and from the machine by the proxy; across kills, and to nothing left. The tests build on each other. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { networkInterfaces } from 'node:os'
import { type AddressInfo, createServer, type Server as TcpServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { nodeBinary, signalProcess } from '../../kit/sys/process.ts'
import { eventually } from '../eventually.ts'
import { Customer } from './customer.ts'
import { bannerAt, machineNetwork, networkProcesses, twinIn } from './machine-network.ts'
import { clearAway, newFolder, Product } from './product.ts'
import { UNREAD } from './warnings.ts'

const run = promisify(execFile)
const CLI = join(import.meta.dirname, '../../cli/main.ts')
const FLAGS = ['--hypervisor', 'qemu', '--nodes', 'eu-1a=2']

interface Reached {
  readonly id: string
  readonly hostname: string
  readonly public_ipv4: string
  readonly public_ipv6: string
  readonly ssh_command: string
  readonly ssh: { readonly proxy: string | null }
  readonly network_status: string
}

let data: string
let product: Product
let customer: Customer
let machine: { readonly before: string; readonly listener: TcpServer }
const servers: Reached[] = []

/** Asks for something about the first of the two hosts. */
async function operator(method: string, path: string, body?: object) {
  const token = (await readFile(join(data, 'operator-token'), 'utf8')).trim()
  const answer = await fetch(`${product.endpoints.operator_url}/v1/operator/nodes/eu-1a-1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  expect(answer.ok).toBe(true)
  // as the contract has it
  return (await answer.json()) as { readonly node?: { readonly server_count: number; readonly state: string } }
}

const cli = async (...words: readonly string[]) =>
  (
    await run(nodeBinary(), [CLI, ...words], {
      timeout: 120_000,
      env: {
        PATH: process.env['PATH'],
        HOME: data,
        SVCCLOUD_URL: product.endpoints.api_url,
        SVCCLOUD_TOKEN: customer.token,
      },
    })
  ).stdout
const ssh = (hostname: string, command: string) => cli('ssh', '--identity', join(data, 'key'), hostname, '--', command)
const addressOf = (index: number) => servers[index]?.public_ipv4 ?? ''
/** Whether one ping of so many is answered. */
const reaches = async (hostname: string, address: string) =>
  ssh(hostname, `ping -c 3 -W 2 ${address} > /dev/null 2>&1 && echo yes || echo no`).then(
    (said) => said.trim() === 'yes',
  )

const comesBack = () => eventually('the network to come back', () => reaches('one', addressOf(1)), 120_000)

beforeAll(async () => {
  data = await newFolder()
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(data, 'key')])
  const listener = createServer((socket) => void socket.end('the machine'))
  await new Promise<void>((resolve) => listener.listen(0, '0.0.0.0', resolve))
  machine = { before: await machineNetwork(), listener }
  product = await Product.start({ data, flags: FLAGS, warnings: UNREAD })
  customer = await Customer.signUp(() => product, 'network@example.com')
  const publicKey = await readFile(join(data, 'key.pub'), 'utf8')
  await customer.request('POST', '/v1/ssh-keys', { name: 'test', public_key: publicKey })
  for (const hostname of ['one', 'two']) {
    const body = { hostname, zone: 'eu-1a', plan: 'tiny', template: 'tiny-linux', public_ipv4: true }
    // Looking for the one before may have taken all that an account may ask.
    const { server } = await eventually('a server to be accepted', () => customer.createServer(body))
    // The next one goes to the other host.
    if (hostname === 'one') {
      await operator('POST', '/cordon', { reason: 'test' })
      await eventually('the cordon', async () => (await operator('GET', '')).node?.state === 'cordoned')
    }
    servers.push(
      await eventually(
        `${hostname} to boot`,
        async () => {
          const answer = await customer.request<{ server: Reached & { ssh: { host_keys: string[] } } }>(
            'GET',
            `/v1/servers/${server.id}`,
          )
          return answer.body.server.ssh.host_keys.length > 0 ? answer.body.server : undefined
        },
        180_000,
      ),
    )
  }
}, 600_000)
afterAll(async () => {
  machine.listener.close()
  await clearAway(product, data)
})

it('servers say how they are reached', async () => {
  for (const { ssh_command, ssh: reached, public_ipv4, network_status } of servers) {
    expect(network_status).toBe('available')
    expect(public_ipv4).toMatch(/^198\.18\./)
    expect(reached.proxy).toMatch(/^socks5:\/\/127\.0\.0\.1:\d+$/)
    expect(await bannerAt(...twinIn(ssh_command))).toMatch(/^SSH-2\.0-/)
  }
})

it('are entered by ssh and scp through the twin', async () => {
  expect(await ssh('one', 'hostname')).toBe('one\n')
  await cli('scp', '--identity', join(data, 'key'), join(data, 'key.pub'), 'two:/tmp/copied')
  expect(await ssh('two', 'cat /tmp/copied')).toBe(await readFile(join(data, 'key.pub'), 'utf8'))
})

it('reach each other from host to host in both protocols, and the outside', async () => {
  expect(await reaches('one', addressOf(1))).toBe(true)
  expect(await reaches('two', servers[0]?.public_ipv6 ?? '')).toBe(true)
  // Of the outside, the resolver that servers get.
  expect(await ssh('one', 'nslookup localhost 2>&1 | head -1')).toContain('198.19.255.3')
})

it('follow a firewall, and what it says of itself is true', async () => {
  const path = `/v1/servers/${servers[0]?.id}/firewall`
  for (const [rules, expected] of [
    [[{ direction: 'in', action: 'accept', protocol: 'tcp', port_start: 22, port_end: 22 }], false],
    [[{ direction: 'in', action: 'accept' }], true],
  ] as const) {
    const operation = await customer.change('PUT', path, { enabled: true, rules })
    expect(await customer.finished(operation.id)).toMatchObject({ kind: 'server.firewall', status: 'succeeded' })
    const { firewall } = (await customer.request<{ firewall: Record<string, unknown> }>('GET', path)).body
    expect(firewall['applied_generation']).toBe(firewall['generation'])
    expect(await reaches('two', addressOf(0))).toBe(expected)
  }
})

it('are plugged into a private network while they run, and find each other there by name', async () => {
  const made = await customer.request<{ network: { id: string } }>('POST', '/v1/networks', {
    zone: 'eu-1a',
    name: 'back',
    ipv4_cidr: '10.1.0.0/24',
  })
  const body = { network_id: made.body.network.id }
  const router = { zone: 'eu-1a', name: 'out', nat_enabled: true, network_ids: [body.network_id] }
  expect(await customer.finished((await customer.change('POST', '/v1/routers', router)).id)).toMatchObject({
    status: 'succeeded',
  })
  for (const { id } of servers) {
    const operation = await eventually('the network to be ready', () =>
      customer.change('POST', `/v1/servers/${id}/interfaces`, body).catch(() => undefined),
    )
    expect(await customer.finished(operation.id)).toMatchObject({ status: 'succeeded' })
  }
  // By IPv6 first: of both protocols each has its own address.
  for (const words of ['two', '-4 two', '-6 two'])
    await eventually(`one to find ${words}`, () => reaches('one', words), 60_000)
  // What the network does not know the public one is asked for, as well as before.
  expect(await ssh('one', 'cat /etc/resolv.conf')).toContain('nameserver 198.19.255.3')
})

it('answer at a floating IP of their private network too, though their default route is the public one', async () => {
  const [network] = (await customer.request<{ items: { id: string }[] }>('GET', '/v1/networks')).body.items
  const body = { zone: 'eu-1a', server_id: servers[0]?.id, target: `private:${network?.id}` }
  const made = await customer.request<{ floating_ip: { address: string } }>('POST', '/v1/floating-ips', body)
  const address = made.body.floating_ip.address
  await eventually('an answer at the floating IP', () =>
    bannerAt(address.replace(/^198/, '127')).then(
      (banner) => banner.startsWith('SSH-2.0-'),
      () => false,
    ),
  )
})

it('are known to the metadata service, which is off for them', async () => {
  const request = String.raw`GET /metadata/v1.json HTTP/1.0\r\nHost: m\r\n\r\n`
  const ask = `printf '${request}' | nc -w 5 169.254.169.254 80 | head -1`
  expect(await ssh('two', ask)).toContain('403 Forbidden')
})

it('reach nothing of the machine', async () => {
  const address = machine.listener.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map((each) => each.address)
  for (const host of [...own, '198.19.255.2', '198.19.0.1', '198.19.1.1'])
    expect(await ssh('one', `nc -w 3 ${host} ${port} < /dev/null 2> /dev/null || echo closed`)).toBe('closed\n')
})

it("change nothing of the machine's own network", async () => {
  expect(await machineNetwork()).toBe(machine.before)
})

it('go from host to host while they run, and are where they were', async () => {
  await operator('POST', '/uncordon')
  await eventually('the end of the cordon', async () => (await operator('GET', '')).node?.state === 'ready')
  expect((await operator('GET', '')).node?.server_count).toBe(1)
  await ssh('one', 'touch /tmp/still-here')
  await operator('POST', '/maintenance', { reason: 'test', mode: 'live_only', deadline_minutes: 10 })
  await eventually('the move', async () => (await operator('GET', '')).node?.server_count === 0, 240_000)
  expect(await ssh('one', 'ls /tmp/still-here')).toBe('/tmp/still-here\n')
  expect(await reaches('one', addressOf(1))).toBe(true)
})

it('a part that is killed comes back, and so does everything', async () => {
  for (const program of ['ovs-vswitchd', 'ovsdb-server', 'ovn-controller', 'slirp4netns']) {
    const lines = await Promise.all(
      (await networkProcesses(data)).map(async (pid) => ({
        pid,
        line: await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
      })),
    )
    for (const { pid, line } of lines) if (line.startsWith(program)) signalProcess(pid, 'SIGKILL')
  }
  await comesBack()
  await product.killComponent('network')
  await comesBack()
})

it('kill -9 of everything leaves guests alone, and the next start finds them', async () => {
  const guests = await product.guests()
  await product.killEverything()
  await eventually('the end of the network', async () => (await networkProcesses(data)).length === 0)
  expect(await machineNetwork()).toBe(machine.before)
  product = await Product.start({ data, flags: [...FLAGS, '--public-route'], warnings: UNREAD })
  expect(await product.guests()).toEqual(guests)
  await comesBack()
})

it('with --public-route the machine itself reaches servers, and the start says what was added', async () => {
  const [, wire = ''] = /^Added to this machine, .*: the interface (wire\d+) /m.exec(product.output()) ?? []
  const routes = (await run('ip', ['route', 'show', 'dev', wire])).stdout
  expect(routes).toContain('198.18.0.0/16 via 198.19.3.2')
  for (const host of [addressOf(0), servers[0]?.public_ipv6 ?? '']) {
    expect(await bannerAt(host)).toMatch(/^SSH-2\.0-/)
  }
  const port = (machine.listener.address() as AddressInfo).port // it listens on TCP
  expect(await ssh('one', `nc -w 3 198.19.3.1 ${port} < /dev/null 2> /dev/null || echo closed`)).toBe('closed\n')
})

it('what was added to the machine goes with kill -9, and is there again after the next start', async () => {
  await product.killEverything()
  await eventually('the end of the route', async () => (await machineNetwork()) === machine.before)
  product = await Product.start({ data, flags: [...FLAGS, '--public-route'], warnings: UNREAD })
  expect(await machineNetwork()).not.toBe(machine.before)
})

it('starts at once after kill -9, whose wire the kernel may still have', async () => {
  await product.killEverything()
  product = await Product.start({ data, flags: [...FLAGS, '--public-route'], warnings: UNREAD })
  expect(product.output()).toContain('Added to this machine')
})

it('Ctrl-C leaves nothing of the network', async () => {
  await product.stop()
  expect(await networkProcesses(data)).toEqual([])
  await eventually('the end of the route', async () => (await machineNetwork()) === machine.before)
})
