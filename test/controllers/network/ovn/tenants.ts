/** Two tenants of one zone with equal ranges, on two hosts and a real OVN: `a` has two networks and a router with NAT,
 *  `b` one of each, and both have guests of the same addresses. One server has a public address. */
import { join } from 'node:path'
import { expect } from 'vitest'
import { floatingIpRows, type Forwarding } from '../../../../controllers/network/ovn/floating-ip.ts'
import { type FirewallFacts, firewallRows } from '../../../../controllers/network/ovn/firewall.ts'
import { interfaceRows } from '../../../../controllers/network/ovn/interface.ts'
import { networkRows } from '../../../../controllers/network/ovn/private-network.ts'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { type RouterFacts, routerRows } from '../../../../controllers/network/ovn/router.ts'
import type { Row } from '../../../../controllers/network/ovn/row.ts'
import type { PublicNetwork, PublicPort } from '../../../../controllers/network/public-network/topology.ts'
import type { Firewall } from '../../../../domain/server/firewall.ts'
import { gatewayOf } from '../../../../domain/network/rules.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { printLine } from '../../../../kit/sys/process.ts'
import { bringWhole } from '../public-network/whole-network.ts'
import { asLineProcess, type LineProcess } from './line-process.ts'
import { type HostName, HOSTS, openOvnWorld, type OvnWorld } from './ovn-world.ts'
import { PYTHON } from '../../../python.ts'

export const ZONE = 'z1'
export const GUESTS = {
  a1: { host: 'h1', network: 'a', ipv4: '10.0.0.2', number: 1 },
  a2: { host: 'h2', network: 'a', ipv4: '10.0.0.3', number: 2 },
  a3: { host: 'h2', network: 'other', ipv4: '10.0.1.2', number: 3 },
  b1: { host: 'h1', network: 'b', ipv4: '10.0.0.2', number: 4 },
  b2: { host: 'h2', network: 'b', ipv4: '10.0.0.3', number: 5 },
} as const
export type GuestName = keyof typeof GUESTS
export const NAMES = Object.keys(GUESTS) as readonly GuestName[] // they are its keys
export const NETWORKS = {
  a: { ipv4Cidr: '10.0.0.0/24', ipv6Prefix: 'fd00:a::/64' },
  other: { ipv4Cidr: '10.0.1.0/24', ipv6Prefix: 'fd00:c::/64' },
  b: { ipv4Cidr: '10.0.0.0/24', ipv6Prefix: 'fd00:a::/64' },
} as const
const ROUTERS = { a: ['a', 'other'], b: ['b'] } as const
/** Where the routers' guests seem to be, seen from outside. */
export const NAT = { a: '203.0.113.130', b: '203.0.113.131' } as const
export const PUBLIC = { name: 'p1', host: 'h1', mac: '52:54:00:00:00:09', ipv4: '203.0.113.2' } as const
const POOL = { prefix: 25, gateway: '203.0.113.129' }

export const macOf = (guest: GuestName): string => `52:54:00:00:00:0${GUESTS[guest].number}`
export const ipv6Of = (guest: GuestName): string =>
  `${NETWORKS[GUESTS[guest].network].ipv6Prefix.replace('/64', '')}${GUESTS[guest].ipv4.split('.').at(-1)}`

export interface Tenants {
  readonly world: OvnWorld
  readonly ovn: Ovn
  /** All hosts have what was written, and whatever was before it. Prints what they have instead when they never do. */
  installed(written: { readonly sequence: number }): Promise<void>
  /** What a guest, the network outside (`world`), a host or what joins the hosts (`fabric`) does on the wire. */
  tell(place: GuestName | 'p1' | 'world' | 'h1' | 'h2' | 'fabric', what: string, order?: object): Promise<unknown>
  /** A server of the guest's name with this firewall, and waits until hosts have it. */
  firewall(guest: GuestName, firewall: Firewall): Promise<void>
  /** Several at once. */
  firewalls(each: readonly (readonly [GuestName, Firewall])[]): Promise<void>
  float(id: string, address: string, target: Forwarding['target'] | undefined): Promise<void>
  /** What leads outside leads through these hosts only. */
  gateways(...hosts: readonly HostName[]): Promise<void>
  /** The router of tenant `a` has these routes, and its servers what it forwards. */
  routes(staticRoutes: RouterFacts['staticRoutes']): Promise<void>
  close(): Promise<void>
}

export const networkFacts = (id: keyof typeof NETWORKS) => ({
  zone: ZONE,
  id,
  ...NETWORKS[id],
  dnsServers: ['192.0.2.53', '2001:db8::53'],
  dhcpEnabled: true,
  router: {
    natEnabled: true,
    otherCidrs: id === 'b' ? [] : [NETWORKS[id === 'a' ? 'other' : 'a'].ipv4Cidr],
    staticRoutes: [],
  },
})

export const routerFacts = (
  id: keyof typeof ROUTERS,
  staticRoutes: RouterFacts['staticRoutes'] = [],
  gatewayNodes: readonly string[] = HOSTS,
): RouterFacts => ({
  zone: ZONE,
  id,
  networks: ROUTERS[id].map((networkId) => {
    const { ipv4Cidr, ipv6Prefix } = NETWORKS[networkId]
    return { networkId, cidr: ipv4Cidr, ipv4: gatewayOf(ipv4Cidr), ipv6: gatewayOf(ipv6Prefix) }
  }),
  staticRoutes,
  nat: { address: NAT[id], ...POOL },
  gatewayNodes,
})

export const interfaceFacts = (guest: GuestName, nodes: readonly string[] = [GUESTS[guest].host]) => ({
  zone: ZONE,
  id: guest,
  networkId: GUESTS[guest].network,
  macAddress: macOf(guest),
  ipv4: GUESTS[guest].ipv4,
  ipv6: ipv6Of(guest),
  hostname: guest.endsWith('1') ? 'web-1' : guest,
  nodes,
})

const publicNetwork: PublicNetwork = {
  zone: ZONE,
  subnets: [{ ...POOL, cidr: '203.0.113.128/25', isForServers: false }],
  gatewayNodes: ['h2', 'h1'],
  outside: {
    physicalNetwork: 'outside',
    addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
    gateways: ['198.51.100.1', '2001:db8:ffff::1'],
  },
}

const publicPort: PublicPort = {
  name: PUBLIC.name,
  macAddress: PUBLIC.mac,
  ipv4: { address: PUBLIC.ipv4, prefix: 25, gateway: '203.0.113.1', cidr: '203.0.113.0/25' },
  ipv6Prefixes: ['2001:db8:1:1::/64'],
  nodes: [PUBLIC.host],
}

/** What wire.py answers of what came over a connection, in seconds. */
export interface Pulse {
  readonly count: number
  readonly longest: number
  /** Since the last; null when nothing came. */
  readonly silent: number | null
}

export const PATIENCE = { timeout: 90_000, interval: 200 }

export async function openTenants(): Promise<Tenants> {
  const world = await openOvnWorld()
  const ovn = openOvn({ northbound: world.remote, southbound: world.southbound, clock, log })
  const wires = new Map<string, LineProcess>()
  const apply = (owner: string, rows: readonly Row[]) => ovn.apply({ zone: ZONE, owner, rows })
  const installed: Tenants['installed'] = async ({ sequence }) => {
    try {
      await expect
        .poll(() => ovn.installed([...HOSTS]), { ...PATIENCE, message: 'hosts have installed what was written' })
        .toBeGreaterThanOrEqual(sequence)
    } catch (error) {
      printLine(await world.report())
      throw error
    }
  }
  const listen = async (place: string) => {
    const wire = asLineProcess(
      world.start(place, PYTHON, '-u', join(import.meta.dirname, 'wire.py'), place),
      `the wire of ${place}`,
    )
    await wire.next()
    wires.set(place, wire)
  }
  const addGuest = async (name: string, host: HostName, mac: string, addresses: readonly string[], gateway: string) => {
    await world.addGuest(name, host, mac)
    for (const address of addresses) await world.run(name, 'ip', 'address', 'add', address, 'dev', 'eth0', 'nodad')
    await world.run(name, 'ip', 'route', 'add', 'default', 'via', gateway)
    await listen(name)
  }

  await bringWhole(ovn, publicNetwork, [publicPort])
  for (const id of ['a', 'other', 'b'] as const) await apply(`Network/${id}`, networkRows(networkFacts(id)))
  for (const id of ['a', 'b'] as const) await apply(`Router/${id}`, routerRows(routerFacts(id)))
  for (const guest of NAMES) await apply(`Server/${guest}`, interfaceRows(interfaceFacts(guest)))
  await Promise.all([
    ...NAMES.map((guest) => {
      const { host, network, ipv4 } = GUESTS[guest]
      const addresses = [`${ipv4}/24`, `${ipv6Of(guest)}/64`]
      return addGuest(guest, host, macOf(guest), addresses, gatewayOf(NETWORKS[network].ipv4Cidr))
    }),
    addGuest(PUBLIC.name, PUBLIC.host, PUBLIC.mac, [`${PUBLIC.ipv4}/25`, '2001:db8:1:1::1/64'], '203.0.113.1'),
    ...['world', 'h1', 'h2', 'fabric'].map(listen),
  ])

  const firewalls: Tenants['firewalls'] = async (each) => {
    const written = each.map(([guest, firewall]) => {
      const facts: FirewallFacts = { ...firewall, ports: [guest] }
      return apply(`Server/${guest}`, [...interfaceRows(interfaceFacts(guest)), ...firewallRows(guest, facts)])
    })
    for (const one of await Promise.all(written)) await installed(one)
  }

  const tell: Tenants['tell'] = (place, what, order = {}) =>
    wires.get(place)?.order({ ...order, do: what }) ?? Promise.reject(new Error(`${place} has no wire`))
  return {
    world,
    ovn,
    installed,
    tell,
    firewall: (guest, firewall) => firewalls([[guest, firewall]]),
    firewalls,
    async float(id, address, target) {
      const rows = target === undefined ? [] : floatingIpRows({ zone: ZONE, id, address, target })
      await installed(await apply(`FloatingIp/${id}`, rows))
    },
    async gateways(...hosts) {
      await bringWhole(ovn, { ...publicNetwork, gatewayNodes: hosts }, [publicPort])
      for (const id of ['a', 'b'] as const) await apply(`Router/${id}`, routerRows(routerFacts(id, [], hosts)))
    },
    async routes(staticRoutes) {
      const leading = (guest: GuestName) =>
        staticRoutes
          .filter(({ nextHop }) => [GUESTS[guest].ipv4, ipv6Of(guest)].includes(nextHop))
          .map(({ destination }) => destination)
      await Promise.all(
        NAMES.filter((guest) => guest.startsWith('a')).map((guest) =>
          apply(`Server/${guest}`, interfaceRows({ ...interfaceFacts(guest), routed: leading(guest) })),
        ),
      )
      await installed(await apply('Router/a', routerRows(routerFacts('a', staticRoutes))))
    },
    async close() {
      ovn.close()
      await world.close()
    },
  }
}
