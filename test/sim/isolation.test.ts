/** The watchers of the network are tested as well: of worlds that are wrong they say so, of a right one nothing. */
import { expect, test } from 'vitest'
import { firewallRows } from '../../controllers/network/ovn/firewall.ts'
import { floatingIpRows } from '../../controllers/network/ovn/floating-ip.ts'
import { interfaceRows } from '../../controllers/network/ovn/interface.ts'
import { networkRows } from '../../controllers/network/ovn/private-network.ts'
import { routerRows } from '../../controllers/network/ovn/router.ts'
import type { Row } from '../../controllers/network/ovn/row.ts'
import { portRows } from '../../controllers/network/public-network/topology.ts'
import { canonicalFirewall } from '../../domain/server/firewall.ts'
import { checkPortAddresses, checkRules, checkTenants } from './isolation.ts'

const ZONE = 'zone-a'
const network = (id: string) =>
  networkRows({
    zone: ZONE,
    id,
    ipv4Cidr: '10.0.0.0/24',
    ipv6Prefix: `fd00:${id.length}::/64`,
    dnsServers: [],
    dhcpEnabled: true,
  })
const port = (id: string, networkId: string, host: number, mac = host) =>
  interfaceRows({
    zone: ZONE,
    id,
    networkId,
    macAddress: `52:54:00:00:00:0${mac}`,
    ipv4: `10.0.0.${host}`,
    ipv6: `fd00::${host}`,
    hostname: id,
    nodes: ['a1'],
  })
const firewall = (uid: string, ports: readonly string[]) =>
  firewallRows(uid, {
    ...canonicalFirewall({ enabled: true, defaultInbound: 'drop', defaultOutbound: 'accept', rules: [] }),
    ports,
  })
const publicPort = (name: string, host: number) =>
  portRows(ZONE, {
    name,
    macAddress: `52:54:00:00:01:0${host}`,
    ipv4: { address: `198.51.100.${host}`, prefix: 24, gateway: '198.51.100.1', cidr: '198.51.100.0/24' },
    ipv6Prefixes: [],
    nodes: ['a1'],
  })
const floating = (id: string, host: number, address = '203.0.113.9') =>
  floatingIpRows({ zone: ZONE, id, address, target: { kind: 'public', serverAddress: `198.51.100.${host}` } })
const router = (id: string, networkId: string) =>
  routerRows({
    zone: ZONE,
    id,
    staticRoutes: [],
    gatewayNodes: [],
    networks: [{ networkId, cidr: '10.0.0.0/24', ipv4: '10.0.0.1', ipv6: 'fd00::1' }],
  })

/** Of two tenants whose ranges are the same. */
const right: Readonly<Record<string, readonly Row[]>> = {
  'Network/one': network('one'),
  'Network/other': network('other'),
  'Router/one': router('one', 'one'),
  'Server/red': [...port('p1', 'one', 2), ...firewall('red', ['red', 'p1'])],
  'Server/blue': [...port('p2', 'other', 2, 3), ...firewall('blue', ['blue', 'p2'])],
  'PublicPort/red': publicPort('red', 2),
  'PublicPort/blue': publicPort('blue', 3),
  'FloatingIP/red': floating('red', 2),
}
const tenants = new Map([
  ...['Network/one', 'Router/one', 'Server/red', 'FloatingIP/red'].map((owner) => [owner, 'acct-red'] as const),
  ...['Network/other', 'Server/blue'].map((owner) => [owner, 'acct-blue'] as const),
])
const violations = (changed: typeof right) => {
  const owners = new Map(Object.entries({ ...right, ...changed }).map(([owner, rows]) => [`${ZONE} ${owner}`, rows]))
  return [...checkPortAddresses(owners), ...checkTenants(owners, tenants), ...checkRules(owners)]
}

test.each<readonly [string, typeof right, readonly RegExp[]]>([
  ['nothing of what is right', {}, []],
  [
    'a server in a network of another tenant',
    { 'Server/blue': port('p2', 'one', 4) },
    [/^Server\/blue of acct-blue is joined to Network\/one of acct-red/, /^Server\/blue of acct-blue is joined/],
  ],
  [
    'a router at a network of another tenant',
    { 'Router/one': router('one', 'other') },
    [/^Router\/one of acct-red is joined to Network\/other of acct-blue/],
  ],
  [
    'a floating IP that leads to a server of another tenant',
    { 'FloatingIP/red': floating('red', 3) },
    [/^FloatingIP\/red of acct-red leads to PublicPort\/blue of acct-blue/],
  ],
  [
    'an address at two ports of a network',
    { 'Server/green': port('p3', 'one', 2, 4) },
    [/^10.0.0.2 in .* is at the ports p1 and p3$/, /^fd00::2 in .* is at the ports p1 and p3$/],
  ],
  [
    'a hardware address at two ports',
    { 'Server/green': port('p3', 'one', 5, 2) },
    [/^52:54:00:00:00:02 in zone-a is at/, /^fe80::5054:ff:fe00:2 in /],
  ],
  [
    'a public address that is forwarded twice',
    { 'FloatingIP/second': floating('second', 2) },
    [/^203.0.113.9 in zone-a outside is at the ports floating-red and floating-second$/],
  ],
  [
    'a rule at a server that it is not for',
    { 'Server/red': [...port('p1', 'one', 2), ...firewall('red', ['red', 'p1', 'blue'])] },
    [/^the firewall of zone-a Server\/red is at the port blue$/],
  ],
])('the watchers find %s', (_what, changed, patterns) => {
  const found = violations(changed)
  expect(found).toHaveLength(patterns.length)
  for (const [index, pattern] of patterns.entries()) expect(found[index]).toMatch(pattern)
})
