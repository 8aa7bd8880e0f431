import { describe, expect, test } from 'vitest'
import { networkOf, plan } from '../../../../controllers/network/public-network/index.ts'
import { plan as planPort, portOf } from '../../../../controllers/network/public-network/port.ts'
import { factsDigest } from '../../../../controllers/kit/synced.ts'
import { defined } from '../../../../domain/defined.ts'
import type { PublicPoolSpec } from '../../../../resources/public-pool/index.ts'
import type { ServerSpec } from '../../../../resources/server/index.ts'

const NOW = new Date('2026-01-01T00:00:00Z')
const API_VERSION = 'svccloud.dev/v1alpha1'
const PORT = portOf(
  'guest',
  {
    macAddress: '52:54:00:00:00:01',
    kind: 'public',
    ipv4: { address: '203.0.113.77', prefix: 26, gateway: '203.0.113.65' },
    routedPrefixes: ['2001:db8:1::/64', '2001:db8:2::/64'],
  },
  ['n1'],
)
const NOTHING = { pools: [], gatewayNodes: [] }
const ZONE = { displayName: 'Z', region: 'r', isClosed: false, capabilities: [] }

describe('the network of a zone', () => {
  test('has the addresses outside in their canonical form, each once', () => {
    const publicNetwork = {
      physicalNetwork: 'wire',
      addresses: ['2001:DB8:0::2/64', '2001:db8::2/64', '198.51.100.2/24'],
      gateways: ['FE80::0001'],
    }
    expect(networkOf('z1', { ...ZONE, publicNetwork }, NOTHING).outside).toEqual({
      physicalNetwork: 'wire',
      addresses: ['2001:db8::2/64', '198.51.100.2/24'],
      gateways: ['fe80::1'],
    })
  })

  test('has the networks of all pools of IPv4 addresses, and knows those that are for servers', () => {
    const pool = (cidr: string, use: PublicPoolSpec['use'], gateway?: string) => ({
      spec: {
        zone: 'z1',
        family: cidr.includes(':') ? ('ipv6' as const) : ('ipv4' as const),
        cidr,
        use,
        announce: 'static' as const,
        state: 'active' as const,
        ...defined({ gateway }),
      },
    })
    const pools = [
      pool('203.0.113.0/24', 'server_ipv4'),
      pool('192.0.2.0/25', 'floating_ipv4'),
      pool('192.0.2.128/25', 'edge', '192.0.2.200'),
      pool('2001:db8::/48', 'edge'),
    ]
    expect(networkOf('z1', ZONE, { ...NOTHING, pools }).subnets).toEqual([
      { cidr: '192.0.2.0/25', gateway: '192.0.2.1', prefix: 25, isForServers: false },
      { cidr: '192.0.2.128/25', gateway: '192.0.2.200', prefix: 25, isForServers: false },
      { cidr: '203.0.113.0/24', gateway: '203.0.113.1', prefix: 24, isForServers: true },
    ])
  })
})

test('what was brought about is left alone until it changes', () => {
  const zone = { apiVersion: API_VERSION, kind: 'Zone', metadata: { name: 'z1' }, spec: ZONE }
  const network = networkOf('z1', ZONE, { ...NOTHING, gatewayNodes: ['n1'] })
  const [first] = plan(zone, { network, appliedDigest: undefined }, NOW)
  expect(first).toMatchObject({ do: 'effect', name: 'converge', input: { network } })
  const appliedDigest = first?.do === 'effect' ? String(first.input['digest']) : ''
  expect(plan(zone, { network, appliedDigest }, NOW).map((action) => action.do)).toEqual(['wait'])
  expect(
    plan(zone, { network: networkOf('z1', ZONE, NOTHING), appliedDigest }, NOW).map((action) => action.do),
  ).toEqual(['effect', 'wait'])
})

describe('the port of a server', () => {
  const server = {
    apiVersion: API_VERSION,
    kind: 'Server',
    metadata: { name: 'web', uid: 'guest' },
    spec: {} as ServerSpec, // what it has claimed counts
  }
  const wanted = { zone: 'z1', port: PORT }
  const applied = { zone: 'z1', digest: factsDigest(wanted) }

  test('has what points to it', () =>
    expect(PORT).toEqual({
      name: 'guest',
      macAddress: '52:54:00:00:00:01',
      ipv4: { address: '203.0.113.77', prefix: 26, gateway: '203.0.113.65', cidr: '203.0.113.64/26' },
      ipv6Prefixes: ['2001:db8:1::/64', '2001:db8:2::/64'],
      nodes: ['n1'],
    }))

  test.each([
    ['is brought about', { wanted, applied: undefined }, ['connect']],
    ['is left alone until it changes', { wanted, applied }, []],
    ['stays when PostgreSQL has forgotten its server', { wanted: undefined, applied }, []],
    ['follows its guest', { wanted: { ...wanted, port: { ...PORT, nodes: ['n1', 'n2'] } }, applied }, ['connect']],
    [
      'leaves the zone that its server leaves',
      { wanted: { ...wanted, zone: 'z2' }, applied },
      ['disconnect', 'connect'],
    ],
    ['goes with its deleted server', { wanted: undefined, applied, isRemovalOrdered: true }, ['disconnect']],
    ['is none of a server that never held any room', { wanted: undefined, applied: undefined }, []],
  ])('%s', (_what, observed, names) =>
    expect(planPort(server, observed).map((action) => action.do === 'effect' && action.name)).toEqual(names),
  )
})
