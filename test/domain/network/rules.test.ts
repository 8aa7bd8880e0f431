import { describe, expect, test } from 'vitest'
import {
  effectiveRoutes,
  freeRange,
  gatewayOf,
  hostRange,
  overlapping,
  rangeFault,
  routesFault,
  ulaPrefix,
} from '../../../domain/network/rules.ts'
import { formatAddress } from '../../../domain/network/addresses.ts'

describe('a range that customers choose', () => {
  test.each([
    '10.0.0.0/16',
    '10.255.255.240/28',
    '172.16.0.0/16',
    '172.31.255.0/24',
    '192.168.0.0/16',
    '100.64.0.0/16',
    '100.127.255.0/24',
  ])('%s is one', (cidr) => expect(rangeFault(cidr)).toBeUndefined())

  test.each([
    ['10.0.0.0/15', /16 to 28 bits/],
    ['10.0.0.0/29', /16 to 28 bits/],
    ['10.0.0.1/24', /no bits beyond/],
    ['fd00::/64', /IPv4 network/],
    ['10.0.0.0', /IPv4 network/],
    ['10.0.0.0/024', /IPv4 network/],
    ['11.0.0.0/24', /must be in/],
    ['172.32.0.0/24', /must be in/],
    ['192.169.0.0/24', /must be in/],
    ['100.128.0.0/24', /must be in/],
    ['0.0.0.0/16', /must be in/],
  ])('%s is none', (cidr, fault) => expect(rangeFault(cidr)).toMatch(fault))
})

test.each([
  ['nothing is taken', [], '10.0.0.0/24'],
  ['the first is taken', ['10.0.0.0/24'], '10.0.1.0/24'],
  ['a part of the first is taken', ['10.0.0.240/28'], '10.0.1.0/24'],
  ['a larger one is taken', ['10.0.0.0/16'], '10.1.0.0/24'],
  ['others overlap each other', ['10.0.0.0/16', '10.0.3.0/24', '10.1.0.0/25'], '10.1.1.0/24'],
  ['one between is free', ['10.0.0.0/24', '10.0.2.0/24'], '10.0.1.0/24'],
  ['a space is full', Array.from({ length: 256 }, (_, index) => `10.${index}.0.0/16`), '172.16.0.0/24'],
])('the first free range when %s', (_when, taken, free) => expect(freeRange(taken)).toBe(free))

test('no range is free once all spaces are taken', () => {
  const sixteens = (first: string, count: number, second = 0) =>
    Array.from({ length: count }, (_, index) => `${first}.${second + index}.0.0/16`)
  expect(
    freeRange([
      ...sixteens('10', 256),
      ...sixteens('172', 16, 16),
      ...sixteens('192', 1, 168),
      ...sixteens('100', 64, 64),
    ]),
  ).toBeUndefined()
})

test('the router has the first address, hosts the others but the last', () => {
  expect([gatewayOf('10.1.0.0/24'), gatewayOf('fd00:1:2:3::/64')]).toEqual(['10.1.0.1', 'fd00:1:2:3::1'])
  const { first, last } = hostRange('10.1.0.16/28')
  expect([formatAddress('ipv4', first), formatAddress('ipv4', last)]).toEqual(['10.1.0.18', '10.1.0.30'])
})

test('a private prefix starts with fd and has the random bytes', () => {
  expect(ulaPrefix(Uint8Array.of(1, 2, 3, 4, 5, 6, 7))).toBe('fd01:203:405:607::/64')
  expect(ulaPrefix(Uint8Array.of(255, 255, 255, 255, 255, 255, 255))).toBe('fdff:ffff:ffff:ffff::/64')
})

test('ranges that overlap are found', () => {
  const others = ['10.1.0.0/24', '10.1.0.128/25', '10.2.0.0/16'].map((cidr) => ({ cidr }))
  expect(overlapping('10.1.0.0/16', others).map(({ cidr }) => cidr)).toEqual(['10.1.0.0/24', '10.1.0.128/25'])
  expect(overlapping('10.3.0.0/16', others)).toEqual([])
})

describe('static routes', () => {
  const route = (destination: string, nextHop: string) => ({ destination, nextHop })
  test.each([
    ['another range', [route('10.9.0.0/16', '10.1.0.9')], false],
    ['a host', [route('203.0.113.5/32', '10.1.0.9')], true],
    ['everything, without NAT', [route('0.0.0.0/0', '10.1.0.9')], false],
    ['half of everything, with NAT', [route('0.0.0.0/1', '10.1.0.9'), route('128.0.0.0/1', '10.1.0.9')], true],
    ['all of IPv6, with NAT', [route('::/0', 'fd00::9')], true],
    ['the prefix of translators', [route('64:ff9b::/96', 'fd00::9')], false],
  ])('may point to %s', (_what, routes, natEnabled) => expect(routesFault(routes, { natEnabled })).toBeUndefined())

  test.each([
    ['bits beyond the prefix', [route('10.9.0.1/16', '10.1.0.9')], 'destination', /no bits/],
    ['no address behind', [route('10.9.0.0/16', 'there')], 'nextHop', /family/],
    ['another family behind', [route('10.9.0.0/16', 'fd00::9')], 'nextHop', /family/],
    ['everything, with NAT', [route('0.0.0.0/0', '10.1.0.9')], 'destination', /NAT/],
    ['loopback', [route('127.1.0.0/16', '10.1.0.9')], 'destination', /cannot be the destination of a route/],
    ['metadata', [route('169.254.169.254/32', '10.1.0.9')], 'destination', /cannot be the destination of a route/],
    ['many', [route('224.0.0.0/8', '10.1.0.9')], 'destination', /cannot be the destination of a route/],
    ['link-local', [route('fe80::/64', 'fd00::9')], 'destination', /cannot be the destination of a route/],
    ['whoever is on the wire', [route('fd01::/64', 'fe80::1')], 'nextHop', /no address of a network/],
    ['loopback behind', [route('10.9.0.0/16', '127.0.0.1')], 'nextHop', /no address of a network/],
  ])('lead not to %s', (_what, routes, field, detail) => {
    const fault = routesFault([route('10.8.0.0/16', '10.1.0.9'), ...routes], { natEnabled: true })
    expect(fault).toMatchObject({ index: 1, field })
    expect(fault?.detail).toMatch(detail)
  })

  test('have each destination once, however it is written', () =>
    expect(
      routesFault([route('fd01:0::/64', 'fd00::9'), route('FD01::/64', 'fd00::8')], { natEnabled: false }),
    ).toMatchObject({ index: 1, field: 'destination' }))

  test('are active only where a network of the router has the next hop', () => {
    const networks = [{ ipv4Cidr: '10.1.0.0/24', ipv6Prefix: 'fd00:1::/64' }]
    const routes = [
      { ...route('10.9.0.0/16', '10.1.0.9'), comment: 'a' },
      { ...route('10.8.0.0/16', '10.2.0.9'), comment: 'b' },
      { ...route('FD09::/64', 'FD00:1::9'), comment: 'c' },
      { ...route('fd08::/64', 'fd00:2::9'), comment: 'd' },
    ]
    expect(effectiveRoutes(routes, networks)).toEqual([
      route('10.9.0.0/16', '10.1.0.9'),
      route('fd09::/64', 'fd00:1::9'),
    ])
  })
})
