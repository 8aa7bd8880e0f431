/** A zone with networks on a real OVN, for benchmarks: two hosts with Open vSwitch's userspace datapath, a few guests
 *  that are network namespaces, and as many others that exist only as rows, on simulated hosts. The rows are those of
 *  the controllers, written by the same code. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { publicNetworkOwner, publicPortOwner } from '../controllers/network/ovn/difference.ts'
import { firewallRows } from '../controllers/network/ovn/firewall.ts'
import { type InterfaceFacts, interfaceRows } from '../controllers/network/ovn/interface.ts'
import { openOvn } from '../controllers/network/ovn/open-ovn.ts'
import type { Bundle, Ovn } from '../controllers/network/ovn/ovn.ts'
import { networkRows } from '../controllers/network/ovn/private-network.ts'
import { type RouterFacts, routerRows } from '../controllers/network/ovn/router.ts'
import {
  portRows,
  type PublicNetwork,
  type PublicPort,
  rowsOf,
} from '../controllers/network/public-network/topology.ts'
import { type Firewall, type FirewallRule, NO_FIREWALL } from '../domain/server/firewall.ts'
import { gatewayOf } from '../domain/network/rules.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { signalProcess } from '../kit/sys/process.ts'
import { asLineProcess } from '../test/controllers/network/ovn/line-process.ts'
import { type HostName, openOvnWorld, type OvnWorld } from '../test/controllers/network/ovn/ovn-world.ts'
import { until } from '../test/eventually.ts'
import { openSimulatedChassis, simulatedNodes } from './simulated-chassis.ts'

export const ZONE = 'z1'
/** The network of the real guests, and the host of each. */
const NETWORK = { id: 'measured', cidr: '10.0.0.0/24', ipv6Prefix: 'fd00:a::/64' } as const
export const GUESTS: Readonly<Record<string, HostName>> = { g1: 'h1', g2: 'h1', g3: 'h2' }
export const OUTSIDE = 'world'
const NAT_POOL = { cidr: '198.18.0.0/16', prefix: 16, gateway: '198.18.0.1' } as const
/** For floating IPs, and for the router of the real guests. */
const FLOATING_POOL = { cidr: '203.0.113.128/25', prefix: 25, gateway: '203.0.113.129' } as const
const SERVER_POOL = { cidr: '100.64.0.0/16', prefix: 16, gateway: '100.64.0.1' } as const
export const ROUTER = { id: 'measured', address: '203.0.113.130' } as const

/** How much else the zone contains. Each server has two ports: in the public network, and in a private network. */
export interface ZoneSize {
  readonly networks: number
  /** In each network. */
  readonly servers: number
  /** Of each server's firewall. */
  readonly rules: number
  /** Simulated ones. */
  readonly hosts: number
}

export interface NetworkZoneOptions {
  /** The folder of the schemas of the OVN that is first on the path. */
  readonly shared?: string | undefined
  /** How long hosts may take to install the additions of a growing zone. */
  readonly installedMilliseconds?: number
}

export interface NetworkZone {
  readonly world: OvnWorld
  readonly ovn: Ovn
  /** Sends an order to a guest, or to the network outside, on the wire. */
  tell(place: string, what: string, order?: object): Promise<unknown>
  /** Sets the firewall of a guest. Returns the sequence. */
  firewall(guest: string, firewall: Firewall): Promise<number>
  /** Resolves when all hosts have installed it. */
  installed(sequence: number): Promise<void>
  readonly hosts: readonly string[]
  /** Adds so many networks, on the same hosts, and resolves when everything is installed. */
  grow(networks: number): Promise<void>
  close(): Promise<void>
}

const publicNetwork: PublicNetwork = {
  zone: ZONE,
  subnets: [
    { ...NAT_POOL, isForServers: false },
    { ...FLOATING_POOL, isForServers: false },
    { ...SERVER_POOL, isForServers: true },
  ],
  gatewayNodes: ['h2', 'h1'],
  outside: {
    physicalNetwork: 'outside',
    addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
    gateways: ['198.51.100.1', '2001:db8:ffff::1'],
  },
}

const byte = (value: number) => (value & 0xff).toString(16).padStart(2, '0')
const macOf = (kind: string, number: number) =>
  `52:54:${kind}:${byte(number >> 16)}:${byte(number >> 8)}:${byte(number)}`
const addressIn = (start: string, number: number) => `${start}.${(number >> 8) & 0xff}.${number & 0xff}`

/** Realistic firewall rules: ports that are open to some networks, one of the rules to nobody. */
const rulesOf = (count: number): readonly FirewallRule[] =>
  Array.from({ length: count }, (_, index) => ({
    direction: 'in',
    action: index === 0 ? 'drop' : 'accept',
    family: 'any',
    protocol: index % 2 === 0 ? 'tcp' : 'udp',
    portStart: 1_001 + index,
    portEnd: 1_001 + index,
    remoteCidrs: index % 10 === 0 ? [`192.0.${index}.0/24`, `2001:db8:${index}::/48`] : [],
    comment: '',
  }))

const firewallOf = (rules: number): Firewall => ({ ...NO_FIREWALL, enabled: rules > 0, rules: rulesOf(rules) })

const networkFactsOf = (id: string, ipv4Cidr: string, ipv6Prefix: string) => ({
  zone: ZONE,
  id,
  ipv4Cidr,
  ipv6Prefix,
  dnsServers: ['192.0.2.53'],
  dhcpEnabled: true,
  router: { natEnabled: true, otherCidrs: [], staticRoutes: [] },
})

const routerFactsOf = (
  id: string,
  { cidr, ipv6Prefix }: { readonly cidr: string; readonly ipv6Prefix: string },
  nat: NonNullable<RouterFacts['nat']>,
  gatewayNodes: readonly string[],
): RouterFacts => ({
  zone: ZONE,
  id,
  networks: [{ networkId: id, cidr, ipv4: gatewayOf(cidr), ipv6: gatewayOf(ipv6Prefix) }],
  staticRoutes: [],
  nat,
  gatewayNodes,
})

export interface BulkServer {
  readonly publicPort: PublicPort
  readonly interface: InterfaceFacts
}

/** A server of the bulk: everything is derived from its number. */
export function bulkServer(network: number, index: number, { servers, hosts }: ZoneSize): BulkServer {
  const number = network * servers + index
  const name = `s${number}`
  const nodes = [simulatedNodes(hosts)[number % hosts] ?? 'h1']
  const { prefix, gateway, cidr } = SERVER_POOL
  return {
    publicPort: {
      name,
      macAddress: macOf('01', number),
      ipv4: { address: addressIn('100.64', number + 2), prefix, gateway, cidr },
      ipv6Prefixes: [`2001:db8:${(number + 0x1000).toString(16)}:1::/64`],
      nodes,
    },
    interface: {
      zone: ZONE,
      id: `i${number}`,
      networkId: `n${network}`,
      macAddress: macOf('02', number),
      ipv4: `10.0.0.${index + 2}`,
      ipv6: `fd00:${network.toString(16)}::${index + 2}`,
      hostname: name,
      nodes,
    },
  }
}

const serverOwner = (name: string) => `Server/${name}`

export const bulkNetwork = (network: number): Bundle => ({
  zone: ZONE,
  owner: `Network/n${network}`,
  rows: networkRows(networkFactsOf(`n${network}`, '10.0.0.0/24', `fd00:${network.toString(16)}::/64`)),
})

export const bulkRouter = (network: number, size: ZoneSize): Bundle => ({
  zone: ZONE,
  owner: `Router/n${network}`,
  rows: routerRows(
    routerFactsOf(
      `n${network}`,
      { cidr: '10.0.0.0/24', ipv6Prefix: `fd00:${network.toString(16)}::/64` },
      { address: addressIn('198.18', network + 2), prefix: NAT_POOL.prefix, gateway: NAT_POOL.gateway },
      simulatedNodes(size.hosts),
    ),
  ),
})

export const bulkPublicPort = ({ publicPort }: BulkServer): Bundle => ({
  zone: ZONE,
  owner: publicPortOwner(publicPort.name),
  rows: portRows(ZONE, publicPort),
})

/** The interface and the firewall, with rules that are unique to its number. */
export const bulkFirewall = ({ publicPort: { name }, interface: own }: BulkServer, rules: number): Bundle => ({
  zone: ZONE,
  owner: serverOwner(name),
  rows: [...interfaceRows(own), ...firewallRows(name, { ...firewallOf(rules), ports: [name, own.id] })],
})

/** In an order that satisfies dependencies. `from`: so many networks exist. */
async function fill(ovn: Ovn, size: ZoneSize, from: number): Promise<void> {
  const networks = Array.from({ length: size.networks - from }, (_, index) => from + index)
  await Promise.all(networks.map((network) => ovn.apply(bulkNetwork(network))))
  await Promise.all(networks.map((network) => ovn.apply(bulkRouter(network, size))))
  const servers = networks.flatMap((network) =>
    Array.from({ length: size.servers }, (_, index) => bulkServer(network, index, size)),
  )
  await Promise.all(servers.map((server) => ovn.apply(bulkPublicPort(server))))
  await Promise.all(servers.map((server) => ovn.apply(bulkFirewall(server, size.rules))))
}

const PYTHON = new URL('../test/controllers/network/ovn/wire.py', import.meta.url).pathname
const INSTALLED_MILLISECONDS = 900_000

/** Opens the zone and fills it. */
export async function openNetworkZone(
  size: ZoneSize,
  { shared, installedMilliseconds = INSTALLED_MILLISECONDS }: NetworkZoneOptions = {},
): Promise<NetworkZone> {
  const world = await openOvnWorld(shared === undefined ? {} : { shared })
  const ovn = openOvn({ northbound: world.remote, southbound: world.southbound, clock, log })
  const chassis = await openSimulatedChassis(world.southbound, size.hosts)
  const hosts = ['h1', 'h2', ...simulatedNodes(size.hosts)]
  const wires = new Map<string, ReturnType<typeof asLineProcess>>()
  const numbers = Object.keys(GUESTS)
  const interfaceOf = (guest: string): InterfaceFacts => ({
    zone: ZONE,
    id: guest,
    networkId: NETWORK.id,
    macAddress: macOf('03', numbers.indexOf(guest)),
    ipv4: addressOf(guest),
    ipv6: `fd00:a::${numbers.indexOf(guest) + 2}`,
    hostname: guest,
    nodes: [GUESTS[guest] ?? 'h1'],
  })
  const apply = (owner: string, rows: Bundle['rows']) => ovn.apply({ zone: ZONE, owner, rows })
  const listen = async (place: string) => {
    const wire = asLineProcess(world.start(place, 'python3', '-u', PYTHON, place), `the wire of ${place}`)
    await wire.next()
    wires.set(place, wire)
  }
  let there = 0
  const zone: NetworkZone = {
    world,
    ovn,
    hosts,
    tell: (place, what, order = {}) =>
      wires.get(place)?.order({ ...order, do: what }) ?? Promise.reject(new Error(`${place} has no wire`)),
    async firewall(guest, firewall) {
      const rows = [...interfaceRows(interfaceOf(guest)), ...firewallRows(guest, { ...firewall, ports: [guest] })]
      return (await apply(serverOwner(guest), rows)).sequence
    },
    async installed(sequence) {
      await until(
        'hosts to install what was written',
        () => ovn.installed(hosts),
        (at) => (at ?? 0) >= sequence,
        installedMilliseconds,
      )
    },
    async grow(networks) {
      // It would recompute everything for each of the transactions.
      await northd(world, 'SIGSTOP')
      await fill(ovn, { ...size, networks }, there)
      await northd(world, 'SIGCONT')
      there = networks
      await zone.installed((await apply(`Network/none-${networks}`, [])).sequence)
    },
    async close() {
      ovn.close()
      chassis.close()
      await world.close()
    },
  }
  try {
    // Sockets of the machine have no probes: otherwise either side would drop a peer that computes for five seconds.
    for (const host of ['h1', 'h2'])
      await world.run(
        host,
        'ovs-vsctl',
        `--db=unix:${join(world.folder, host, 'db.sock')}`,
        'set',
        'open',
        '.',
        `external_ids:ovn-remote=${world.southbound}`,
      )
    await apply(publicNetworkOwner(ZONE), rowsOf(publicNetwork))
    await apply(`Network/${NETWORK.id}`, networkRows(networkFactsOf(NETWORK.id, NETWORK.cidr, NETWORK.ipv6Prefix)))
    const { prefix, gateway } = FLOATING_POOL
    const nat = { address: ROUTER.address, prefix, gateway }
    await apply(`Router/${ROUTER.id}`, routerRows(routerFactsOf(ROUTER.id, NETWORK, nat, ['h2'])))
    for (const [guest, host] of Object.entries(GUESTS)) {
      await zone.firewall(guest, NO_FIREWALL)
      await world.addGuest(guest, host, interfaceOf(guest).macAddress)
      await world.run(guest, 'ip', 'address', 'add', `${addressOf(guest)}/24`, 'dev', 'eth0')
      await world.run(guest, 'ip', 'route', 'add', 'default', 'via', gatewayOf(NETWORK.cidr))
      await listen(guest)
    }
    await listen(OUTSIDE)
    await zone.grow(size.networks)
    return zone
  } catch (error) {
    await zone.close()
    throw error
  }
}

async function northd({ folder }: OvnWorld, signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
  const central = join(folder, 'central')
  const file = (await readdir(central)).find((name) => name.endsWith('ovn-northd.pid')) ?? ''
  signalProcess(Number(await readFile(join(central, file), 'utf8')), signal)
}

/** Of a real guest, in its network. */
export const addressOf = (guest: string): string => `10.0.0.${Object.keys(GUESTS).indexOf(guest) + 2}`
