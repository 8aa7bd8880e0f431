import { describe, expect, test } from 'vitest'
import { type ModelledRouter, wayOf } from './routing-model.ts'

const router: ModelledRouter = {
  networks: [
    { id: 'a', cidr: '10.0.0.0/24' },
    { id: 'a', cidr: 'fd00:a::/64' },
  ],
  staticRoutes: [
    { destination: '10.9.0.0/16', nextHop: '10.0.0.2' },
    { destination: '10.9.1.0/24', nextHop: '10.0.0.3' },
    { destination: '10.0.0.0/24', nextHop: '10.0.0.4' },
    { destination: '10.0.0.128/25', nextHop: '10.0.0.5' },
    { destination: 'fd09::/64', nextHop: 'fd00:a::2' },
  ],
  natEnabled: true,
}

describe('a router', () => {
  test.each([
    ['to its network, before a route of the same prefix', '10.0.0.9', { kind: 'network', id: 'a' }],
    ['by a route to a part of its network', '10.0.0.200', { kind: 'host', nextHop: '10.0.0.5' }],
    ['by a route', '10.9.0.1', { kind: 'host', nextHop: '10.0.0.2' }],
    ['by the route of the longest prefix', '10.9.1.1', { kind: 'host', nextHop: '10.0.0.3' }],
    ['outside', '192.0.2.1', { kind: 'outside' }],
    ['by both families', 'fd09::1', { kind: 'host', nextHop: 'fd00:a::2' }],
    ['to its network, by both families', 'fd00:a::9', { kind: 'network', id: 'a' }],
    ['nowhere by IPv6, which has no NAT', '2001:db8::1', undefined],
    ['nowhere what is no address', 'nowhere', undefined],
  ])('leads %s', (_what, destination, way) => expect(wayOf(router, destination)).toEqual(way))

  test('reaches nothing outside without NAT', () =>
    expect(wayOf({ ...router, natEnabled: false }, '192.0.2.1')).toBeUndefined())
})
