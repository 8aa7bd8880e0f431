/** A load balancer of two machines on two hosts of a real OVN, as its controller and the script of its image set it up:
 *  reached from outside at its public addresses, by both protocols, before and after the machine that has them dies. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import type { Observed } from '../../../../controllers/nouns/load-balancer/observed.ts'
import { interfaceRows } from '../../../../controllers/network/ovn/interface.ts'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { prefixRoute } from '../../../../controllers/network/ovn/prefix-route.ts'
import { networkRows } from '../../../../controllers/network/ovn/private-network.ts'
import { prefixOf } from '../../../../domain/public-pool/rules.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { printLine, signalProcess } from '../../../../kit/sys/process.ts'
import { type MachineInNamespace, openMachineIn } from '../../../agents/node/images/machine-script.ts'
import { until } from '../../../eventually.ts'
import { type HostName, openOvnWorld, type OvnWorld } from '../../network/ovn/ovn-world.ts'
import { bringWhole } from '../../network/public-network/whole-network.ts'
import { demandFor, documentFor, knownMachine, type Role, roles } from './pair.ts'
import { PYTHON } from '../../../python.ts'

const ZONE = 'z1'
const CIDR = { ipv4Cidr: '10.9.0.0/24', ipv6Prefix: 'fd00:0:0:9::/64' }
const PUBLIC = { ipv4: '203.0.113.9', ipv6: '2001:db8:1:9::1' }
const MEMBER = { ipv4: '10.9.0.20', ipv6: 'fd00:0:0:9::20', macAddress: '52:54:00:00:02:20' }
const MACHINES = {
  a: { host: 'h1', publicMac: '52:54:00:00:01:0a', mac: '52:54:00:00:02:0a', ipv4: '10.9.0.2', number: 1 },
  b: { host: 'h2', publicMac: '52:54:00:00:01:0b', mac: '52:54:00:00:02:0b', ipv4: '10.9.0.3', number: 2 },
} as const
/** Who asks from outside: the second is admitted nowhere. */
const CLIENTS = ['2001:db8:ffff::1', '2001:db8:ffff::66']
/** How long it takes is printed; here there may be no processor for so long. */
const GAP_MILLISECONDS_MAXIMUM = 60_000

// What else an address has is not looked at.
const CLAIM = {
  zone: ZONE,
  name: 'web',
  networkId: 'n',
  ...CIDR,
  shared: { ipv4Address: '10.9.0.9', ipv6Address: 'fd00:0:0:9::9' },
  publicIpv4: { address: PUBLIC.ipv4, prefix: 24, gateway: '203.0.113.1' },
  publicIpv6: { address: PUBLIC.ipv6, prefix: 64, gateway: 'fe80::1' },
} as NonNullable<Observed['claim']>
const KNOWN = roles.map((role) => {
  const { mac, publicMac, ipv4 } = MACHINES[role]
  return knownMachine(role, { macAddress: mac, ipv4Address: ipv4, publicMacAddress: publicMac })
})
const CONFIGURED = {
  generation: 1,
  frontends: [
    { name: 'all', port: 80, mode: 'http', backend: 'web' },
    { name: 'some', port: 81, mode: 'http', backend: 'web', allowedCidrs: [`${CLIENTS[0]}/128`] },
  ],
  backends: [{ name: 'web', members: [{ name: 'one', address: MEMBER.ipv4, port: 8080 }] }],
}
const PAGES = `
import http.server, socket
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(("for " + str(self.headers["X-Forwarded-For"])).encode())
    def log_message(self, *words): pass
class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
Server(("::", 8080), Page).serve_forever()
`

let world: OvnWorld
let ovn: Ovn
const machines = new Map<Role, MachineInNamespace>()

const interfaceOf = (port: string, host: HostName, { macAddress, ipv4, ipv6 }: typeof MEMBER) => ({
  zone: ZONE,
  id: port,
  networkId: 'n',
  hostname: port,
  macAddress,
  ipv4,
  ipv6,
  nodes: [host],
})

beforeAll(async () => {
  world = await openOvnWorld()
  ovn = openOvn({ northbound: world.remote, southbound: world.southbound, clock, log })
  const surroundings = (role: Role) => ({ claim: CLAIM, machines: KNOWN, role })
  const shared = (demandFor(surroundings('a'), CONFIGURED)?.sharedAddresses ?? []).map(({ address, networkId }) => ({
    address,
    isPublic: networkId === undefined,
  }))
  const addresses = (isPublic: boolean) =>
    shared.filter((each) => each.isPublic === isPublic).map(({ address }) => address)
  const network = {
    zone: ZONE,
    subnets: [{ cidr: '203.0.113.0/24', prefix: 24, gateway: '203.0.113.1', isForServers: true }],
    gatewayNodes: ['h1', 'h2'],
    outside: {
      physicalNetwork: 'outside',
      addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
      gateways: ['198.51.100.1', '2001:db8:ffff::1'],
    },
  }
  const ports = roles.map((role) => {
    const { host, publicMac, number } = MACHINES[role]
    const ipv6Prefixes = [`2001:db8:1:${number}::/64`]
    return { name: `p${role}`, macAddress: publicMac, ipv6Prefixes, shared: addresses(true), nodes: [host] }
  })
  await bringWhole(ovn, network, ports)
  const apply = (owner: string, rows: Parameters<Ovn['apply']>[0]['rows']) => ovn.apply({ zone: ZONE, owner, rows })
  await apply('LoadBalancer/u', [prefixRoute(ZONE, prefixOf(PUBLIC.ipv6), PUBLIC.ipv6)])
  await apply('Network/n', networkRows({ zone: ZONE, id: 'n', ...CIDR, dnsServers: [], dhcpEnabled: true }))
  await apply('Server/m', interfaceRows(interfaceOf('m', 'h1', MEMBER)))
  await world.addGuest('m', 'h1', MEMBER.macAddress)
  await world.run('m', 'ip', 'address', 'add', `${MEMBER.ipv4}/24`, 'dev', 'eth0')
  await world.run('m', 'ip', 'address', 'add', `${MEMBER.ipv6}/64`, 'dev', 'eth0', 'nodad')
  world.start('m', PYTHON, '-c', PAGES)
  for (const role of roles) {
    const { host, publicMac, mac, ipv4, number } = MACHINES[role]
    const own = { macAddress: mac, ipv4, ipv6: `fd00:0:0:9::${number + 1}` }
    await apply(`Server/${role}`, interfaceRows({ ...interfaceOf(`i${role}`, host, own), shared: addresses(false) }))
    await world.addGuest(role, host, publicMac, `p${role}`)
    await world.addInterface(role, 'eth1', { host, macAddress: mac, port: `i${role}` })
    await world.run(role, 'ip', 'address', 'add', `2001:db8:1:${number}::1/64`, 'dev', 'eth0', 'nodad')
    await world.run(role, 'ip', 'address', 'add', `${ipv4}/24`, 'dev', 'eth1')
    await world.run(role, 'ip', 'address', 'add', `${own.ipv6}/64`, 'dev', 'eth1', 'nodad')
    machines.set(role, await openMachineIn(world.spaceOf(role)))
  }
  for (const address of CLIENTS.slice(1))
    await world.run('world', 'ip', 'address', 'add', `${address}/64`, 'dev', 'eth0', 'nodad')
  await Promise.all(
    roles.map(async (role) => {
      const document = documentFor(surroundings(role), { ...CONFIGURED, certificates: [] })
      expect(await machines.get(role)?.apply(document)).toMatchObject({ detail: '', isHealthy: true })
    }),
  )
})
afterAll(async () => {
  for (const machine of machines.values()) await machine.close()
  ovn?.close()
  await world?.close()
})

/** What the page says to whoever asks from an address; empty without one. */
const page = (host: string, from: string, port = 80, place = 'world'): Promise<string> =>
  world
    .run(place, 'curl', '--silent', '--max-time', '2', '--interface', from, `http://${host}:${port}/`)
    .catch(() => '')
const BY_IPV4 = [PUBLIC.ipv4, '198.51.100.1'] as const
const BY_IPV6 = [`[${PUBLIC.ipv6}]`, CLIENTS[0] ?? ''] as const
const isReached = () =>
  Promise.all(
    [BY_IPV4, BY_IPV6].map(([host, from]) =>
      until(
        `${host} from outside`,
        () => page(host, from),
        (text) => text === `for ${from}`,
      ),
    ),
  )
const owners = async (): Promise<readonly Role[]> => {
  const texts = await Promise.all(roles.map((role) => world.run(role, 'ip', 'address', 'show', 'dev', 'eth0')))
  return roles.filter((_role, at) => texts[at]?.includes(`${PUBLIC.ipv6}/128`))
}

test('is reached from outside by both protocols, and members know by whom', isReached)

test('is reached by a server of its network at its private addresses, by both protocols', async () => {
  for (const [address, from] of [
    [CLAIM.shared.ipv4Address, MEMBER.ipv4],
    [`[${CLAIM.shared.ipv6Address}]`, MEMBER.ipv6],
  ] as const)
    await until(
      `${address} from the network`,
      () => page(address, from, 80, 'm'),
      (text) => text === `for ${from}`,
    )
})

test('one machine has the address, and neither opens connections with it', async () => {
  const [active = 'a'] = await until('an owner', owners, ({ length }) => length === 1)
  const way = await world.run(active, 'ip', '-6', 'route', 'get', CLIENTS[0] ?? '')
  expect(way).toMatch(/via fe80:\S+ dev eth0/)
  expect(way).not.toContain(PUBLIC.ipv6)
})

test('admits whom allowed_cidrs names, and nobody else', async () => {
  const [host, from] = BY_IPV6
  expect(await page(host, from, 81)).toBe(`for ${from}`)
  expect(await page(host, CLIENTS[1] ?? '')).toBe(`for ${CLIENTS[1]}`)
  expect(await page(host, CLIENTS[1] ?? '', 81)).toBe('')
})

test('is reached at no address that is a machine’s own', async () => {
  const [, from] = BY_IPV6
  for (const role of roles) {
    const own = `2001:db8:1:${MACHINES[role].number}::1`
    await world.run('world', 'ping', '-c', '1', '-W', '5', own)
    expect(await page(`[${own}]`, from)).toBe('')
  }
})

test('a machine opens connections with its own address, and is answered', async () => {
  world.start('world', PYTHON, '-c', PAGES)
  const [active = 'a'] = await owners()
  const ask = () =>
    world.run(active, 'curl', '--silent', '--max-time', '2', `http://[${CLIENTS[0]}]:8080/`).catch(() => '')
  await until('a page of the world', ask, (text) => text === 'for None')
})

test('is reached at the other machine when the active one dies', async () => {
  const [active = 'a'] = await until('an owner', owners, ({ length }) => length === 1)
  const startedAt = clock.monotonicMilliseconds()
  for (const pid of (await runProgram('ip', ['netns', 'pids', world.spaceOf(active)])).match(/\d+/g) ?? [])
    signalProcess(Number(pid), 'SIGKILL')
  // A machine that is off is no longer on the wire.
  for (const device of ['eth0', 'eth1']) await world.run(active, 'ip', 'link', 'set', device, 'down')
  await world.run(active, 'ip', 'address', 'flush', 'dev', 'eth0')
  const [host, from] = BY_IPV6
  await until(
    'a page by IPv6',
    () => page(host, from),
    (text) => text === `for ${from}`,
  )
  const milliseconds = Math.round(clock.monotonicMilliseconds() - startedAt)
  printLine(`reached by IPv6 again after ${milliseconds} ms`)
  expect(milliseconds).toBeLessThan(GAP_MILLISECONDS_MAXIMUM)
  await isReached()
  expect(await owners()).toEqual(roles.filter((role) => role !== active))
})
