import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { contains, parseAddress, parseNetwork } from '../../../domain/network/addresses.ts'
import {
  poolAddress,
  poolFault,
  type PoolNetwork,
  poolsOverlap,
  poolTotal,
  firstOfPrefix,
  prefixOf,
  PREFIXES_OF_SERVER_MAXIMUM,
} from '../../../domain/public-pool/rules.ts'

const ipv4: PoolNetwork = { family: 'ipv4', cidr: '203.0.113.0/29', use: 'server_ipv4', isPrivate: false }
const ipv6: PoolNetwork = { family: 'ipv6', cidr: '2001:db8::/40', use: 'server_ipv6_prefix', isPrivate: false }

describe('a pool', () => {
  test.each<[string, PoolNetwork, string | undefined]>([
    ['of IPv4 addresses', ipv4, undefined],
    ['of IPv6 prefixes', ipv6, undefined],
    ['of unique local prefixes that says so', { ...ipv6, cidr: 'fd12:3456::/48', isPrivate: true }, undefined],
    ['with a gateway of its own', { ...ipv4, gateway: '203.0.113.6' }, undefined],
    ['as large as one may be', { ...ipv4, cidr: '8.0.0.0/8' }, undefined],
    ['larger than one may be', { ...ipv4, cidr: '8.0.0.0/7' }, 'cidr'],
    ['as small as one may be', { ...ipv4, cidr: '203.0.113.0/30' }, undefined],
    ['of IPv6 as large as one may be', { ...ipv6, cidr: '2a00::/16' }, undefined],
    ['of IPv6 larger than one may be', { ...ipv6, cidr: '2a00::/15' }, 'cidr'],
    ['of IPv6 for one server', { ...ipv6, cidr: '2001:db8::/64' }, undefined],
    ['for floating addresses', { ...ipv4, use: 'floating_ipv4' }, undefined],
    ['of IPv4 for prefixes', { ...ipv4, use: 'server_ipv6_prefix' }, 'use'],
    ['with a link-local gateway in capitals', { ...ipv6, gateway: 'FE80::2' }, undefined],
    ['whose gateway is of the other family', { ...ipv4, gateway: 'fe80::1' }, 'gateway'],
    ['whose gateway is no address', { ...ipv4, gateway: 'router' }, 'gateway'],
    ['whose gateway is its first address', { ...ipv4, gateway: '203.0.113.1' }, undefined],
    ['of another family than it says', { ...ipv4, family: 'ipv6' }, 'cidr'],
    ['with bits beyond the prefix', { ...ipv4, cidr: '203.0.113.1/29' }, 'cidr'],
    ['without room', { ...ipv4, cidr: '203.0.113.0/31' }, 'cidr'],
    ['smaller than one server needs', { ...ipv6, cidr: '2001:db8::/65' }, 'cidr'],
    ['for a use of the other family', { ...ipv6, use: 'floating_ipv4' }, 'use'],
    ['of private addresses that does not say so', { ...ipv6, cidr: 'fd12:3456::/48' }, 'is_private'],
    ['of public addresses called private', { ...ipv4, isPrivate: true }, 'is_private'],
    ['of private addresses and public ones behind them', { ...ipv4, cidr: '192.168.0.0/15', isPrivate: true }, 'cidr'],
    ['of public addresses around private ones', { ...ipv4, cidr: '192.0.0.0/8' }, 'cidr'],
    ['whose gateway is its broadcast address', { ...ipv4, gateway: '203.0.113.7' }, 'gateway'],
    ['whose gateway is its network address', { ...ipv4, gateway: '203.0.113.0' }, 'gateway'],
    ['whose gateway lies outside', { ...ipv4, gateway: '203.0.112.1' }, 'gateway'],
    ['whose gateway could be a server', { ...ipv6, gateway: '2001:db8::1' }, 'gateway'],
  ])('%s', (_what, pool, field) => expect(poolFault(pool)?.field).toBe(field))

  test.each<[PoolNetwork, string]>([
    [{ ...ipv4, cidr: 'x' }, 'must be an IPv4 network whose address has no bits beyond its prefix'],
    [{ ...ipv6, cidr: 'x' }, 'must be an IPv6 network whose address has no bits beyond its prefix'],
    [{ ...ipv4, use: 'server_ipv6_prefix' }, 'is not for IPv4 pools'],
    [{ ...ipv6, use: 'server_ipv4' }, 'is not for IPv6 pools'],
    [{ ...ipv4, isPrivate: true }, 'the network is a public one'],
    [{ ...ipv4, cidr: '10.0.0.0/24' }, 'the network is a private one, which the Internet does not route'],
    [{ ...ipv6, cidr: '2001:db8::/65' }, 'must have a prefix of 16 to 64 bits'],
  ])('is refused in words: %o', (pool, detail) => expect(poolFault(pool)?.detail).toBe(detail))

  test('overlaps what holds one of its addresses', () => {
    expect(poolsOverlap('203.0.113.0/29', '203.0.113.0/24')).toBe(true)
    expect(poolsOverlap('203.0.113.0/29', '203.0.113.8/29')).toBe(false)
    expect(poolsOverlap('203.0.113.0/29', 'x')).toBe(false)
  })

  test('leaves a server its newest prefix and fifteen that were replaced', () =>
    expect(PREFIXES_OF_SERVER_MAXIMUM).toBe(16))

  test('hands out every address but network, broadcast and gateway', () => {
    const all = (pool: PoolNetwork) =>
      Array.from({ length: poolTotal(pool.cidr) }, (_, index) => poolAddress(pool, index).address)
    expect(all(ipv4)).toEqual(['203.0.113.2', '203.0.113.3', '203.0.113.4', '203.0.113.5', '203.0.113.6'])
    expect(all({ ...ipv4, gateway: '203.0.113.4' })).toEqual([
      '203.0.113.1',
      '203.0.113.2',
      '203.0.113.3',
      '203.0.113.5',
      '203.0.113.6',
    ])
    expect(poolAddress(ipv4, 0)).toEqual({ address: '203.0.113.2', prefix: 29, gateway: '203.0.113.1' })
  })

  test('hands out prefixes with their first address', () => {
    expect(poolTotal(ipv6.cidr)).toBe(2 ** 24)
    expect(poolAddress(ipv6, 0)).toEqual({ address: '2001:db8::1', prefix: 64, gateway: 'fe80::1' })
    expect(poolAddress(ipv6, 2 ** 24 - 1).address).toBe('2001:db8:ff:ffff::1')
    expect(prefixOf('2001:db8:ff:ffff::1')).toBe('2001:db8:ff:ffff::/64')
    expect(firstOfPrefix('2001:db8:ff:ffff::/64')).toBe('2001:db8:ff:ffff::1')
  })

  test('never hands out one address twice, nor one of another network', () => {
    const pools = fc.oneof(
      fc.tuple(fc.integer({ min: 20, max: 30 }), fc.nat(2 ** 12)).map(
        ([prefix, number]): PoolNetwork => ({
          ...ipv4,
          cidr: `198.18.0.0/${prefix}`,
          gateway: poolAddress({ ...ipv4, cidr: `198.18.0.0/${prefix}` }, number % poolTotal(`198.18.0.0/${prefix}`))
            .address,
        }),
      ),
      fc.integer({ min: 32, max: 64 }).map((prefix): PoolNetwork => ({ ...ipv6, cidr: `2001:db8::/${prefix}` })),
    )
    fc.assert(
      fc.property(pools, fc.nat(), fc.nat(), (pool, one, other) => {
        const [first, second] = [one, other].map((number) => number % poolTotal(pool.cidr)) as [number, number]
        const [a, b] = [poolAddress(pool, first), poolAddress(pool, second)]
        expect(a.address === b.address).toBe(first === second)
        expect(a.address).not.toBe(a.gateway)
        const network = parseNetwork(pool.cidr)
        expect(network !== undefined && contains(network, parseAddress(a.address)?.value ?? -1n)).toBe(true)
      }),
    )
  })
})
