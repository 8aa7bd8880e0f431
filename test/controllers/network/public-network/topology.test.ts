import { describe, expect, test } from 'vitest'
import { linkLocalOf } from '../../../../controllers/network/ovn/names.ts'
import { routerRows } from '../../../../controllers/network/ovn/router.ts'
import { refer, type Row } from '../../../../controllers/network/ovn/row.ts'
import {
  LINK_LOCAL,
  portRows,
  type PublicNetwork,
  rowsOf,
} from '../../../../controllers/network/public-network/topology.ts'

const guest = {
  name: 'guest-1',
  macAddress: '52:54:00:00:00:01',
  ipv4: { address: '203.0.113.2', prefix: 24, gateway: '203.0.113.1', cidr: '203.0.113.0/24' },
  ipv6Prefixes: ['2001:db8:1::/64'],
  nodes: ['h1'],
}
const network: PublicNetwork = {
  zone: 'z1',
  subnets: [{ cidr: '203.0.113.0/24', prefix: 24, gateway: '203.0.113.1', isForServers: true }],
  gatewayNodes: ['h1', 'h2'],
  outside: {
    physicalNetwork: 'outside',
    addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
    gateways: ['198.51.100.1', '2001:db8:ffff::1'],
  },
}
const row = (rows: readonly Row[], key: string) => rows.find((one) => one.key === key)?.columns

test('a link-local address follows from the hardware address', () =>
  expect(linkLocalOf('52:54:00:12:34:56')).toBe('fe80::5054:ff:fe12:3456'))

describe('the public network of a zone', () => {
  test('lets a guest use its addresses and no others', () => {
    expect(row(portRows('z1', guest), 'guest-1')).toEqual({
      name: 'guest-1',
      type: '',
      addresses: ['52:54:00:00:00:01 203.0.113.2 2001:db8:1::1 fe80::5054:ff:fe00:1'],
      port_security: ['52:54:00:00:00:01 203.0.113.2 fe80::5054:ff:fe00:1 2001:db8:1::/64'],
      options: { 'requested-chassis': 'h1' },
      dhcpv4_options: refer({ table: 'DHCP_Options', key: 'dhcp-z1-203.0.113.0/24' }),
      dhcpv6_options: refer({ table: 'DHCP_Options', key: 'dhcp-z1-ipv6' }),
    })
  })

  test('has the metadata service on every host for itself, and a way to it for those with a public address', () => {
    expect(row(rowsOf(network), 'public-z1-metadata')).toEqual({
      name: 'metadata-z1',
      type: 'localport',
      addresses: ['0a:58:a9:fe:a9:fe 169.254.169.254'],
    })
    expect(row(rowsOf(network), 'router-z1-public')?.['networks']).toContain('169.254.0.1/16')
  })

  test('gives a guest without a public IPv4 address one for the metadata service, and no route beyond', () => {
    const ipv4 = { address: '169.254.7.7', ...LINK_LOCAL }
    expect(row(portRows('z1', { ...guest, ipv4 }), 'guest-1')).toMatchObject({
      addresses: [expect.stringMatching(/^52:54:00:00:00:01 169\.254\.7\.7 2001:db8:1::1 fe80:/)],
      dhcpv4_options: refer({ table: 'DHCP_Options', key: 'dhcp-z1-169.254.0.0/16' }),
    })
    expect(row(rowsOf(network), 'dhcp-z1-169.254.0.0/16')?.['options']).not.toHaveProperty('router')
    const optionsOf = (dnsServers?: readonly string[]) =>
      row(
        rowsOf({ ...network, outside: { physicalNetwork: 'wire', addresses: [], gateways: [], dnsServers } }),
        'dhcp-z1-203.0.113.0/24',
      )?.['options']
    expect(optionsOf()).toHaveProperty('router', '203.0.113.1')
    expect(optionsOf()).not.toHaveProperty('dns_server')
    expect(optionsOf(['192.0.2.1', '2001:db8::1', '192.0.2.2'])).toHaveProperty('dns_server', '{192.0.2.1, 192.0.2.2}')
    const outside = { physicalNetwork: 'wire', addresses: [], gateways: [], dnsServers: ['192.0.2.1', '2001:db8::1'] }
    expect(row(rowsOf({ ...network, outside }), 'dhcp-z1-ipv6')?.['options']).toHaveProperty(
      'dns_server',
      '{2001:db8::1}',
    )
  })

  test('leads every prefix of a guest to it', () => {
    const rows = portRows('z1', { ...guest, ipv6Prefixes: ['2001:db8:2::/64', '2001:db8:1::/64'] })
    expect(
      [...rows, ...rowsOf(network)]
        .filter(({ table }) => table === 'Logical_Router_Static_Route')
        .map(({ columns }) => [columns['ip_prefix'], columns['nexthop']]),
    ).toEqual([
      ['2001:db8:2::/64', 'fe80::5054:ff:fe00:1'],
      ['2001:db8:1::/64', 'fe80::5054:ff:fe00:1'],
      ['0.0.0.0/0', '198.51.100.1'],
      ['::/0', '2001:db8:ffff::1'],
    ])
  })

  test('has a guest that moves on both hosts until the other one speaks for it', () => {
    expect(row(portRows('z1', { ...guest, nodes: ['h1', 'h2'] }), 'guest-1')?.['options']).toEqual({
      'requested-chassis': 'h1,h2',
      'activation-strategy': 'rarp',
    })
  })

  test('goes outside by the first node that is alive', () => {
    const gateways = rowsOf(network)
      .filter(({ table }) => table === 'Gateway_Chassis')
      .map(({ columns }) => [columns['chassis_name'], columns['priority']])
    expect(gateways).toEqual([
      ['h1', 100],
      ['h2', 99],
    ])
    expect(rowsOf({ zone: 'z1', subnets: [], gatewayNodes: ['h1'] }).some(({ key }) => key.includes('outside'))).toBe(
      false,
    )
  })

  test('announces to no server networks whose addresses are not for servers', () =>
    expect(
      row(
        rowsOf({
          ...network,
          subnets: [{ cidr: '192.0.2.0/24', prefix: 24, gateway: '192.0.2.1', isForServers: false }],
        }),
        'dhcp-z1-192.0.2.0/24',
      ),
    ).toBeUndefined())

  test('keeps routers of customers apart from servers: each would have rules for all of them', () => {
    const floating = { cidr: '192.0.2.0/24', prefix: 24, gateway: '192.0.2.1', isForServers: false }
    const rows = rowsOf({ ...network, subnets: [...network.subnets, floating] })
    expect(row(rows, 'router-z1-edge')?.['networks']).toEqual(['192.0.2.1/24'])
    expect(row(rows, 'router-z1-public')?.['networks']).not.toContain('192.0.2.1/24')
    const parents = (key: string) => rows.find((one) => one.key === key)?.parent?.key
    expect(parents('edge-z1-router')).toBe('edge-z1')
    const router = routerRows({
      zone: 'z1',
      id: 'r',
      networks: [],
      staticRoutes: [],
      gatewayNodes: ['h1'],
      nat: { address: '192.0.2.9', prefix: 24, gateway: '192.0.2.1' },
    })
    expect(router.find(({ key }) => key === 'edge-z1-router-r-nat-public')?.parent?.key).toBe('edge-z1')
  })

  test('says the same of the same', () => expect(rowsOf(network)).toEqual(rowsOf(network)))
})
