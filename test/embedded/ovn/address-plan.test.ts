import { expect, it } from 'vitest'
import { GUEST_MTU } from '../../../controllers/network/ovn/names.ts'
import {
  MAXIMUM_ZONES,
  nodeAddresses,
  numberZones,
  OUTSIDE,
  ROUTE,
  SERVERS,
  zoneAddresses,
} from '../../../embedded/ovn/address-plan.ts'
import { contains, overlaps, parseAddress, parseNetwork } from '../../../domain/network/addresses.ts'
import { poolFault } from '../../../domain/public-pool/rules.ts'

const networkOf = (text: string) => {
  const network = parseNetwork(text)
  if (network === undefined) throw new Error(`${text} is no network`)
  return network
}
const numbers = Array.from({ length: MAXIMUM_ZONES }, (_, number) => number)

it('pools of zones are pools, of the servers, led to their zone, and nobody else has them', () => {
  const all = numbers.flatMap((number) => zoneAddresses(number).pools.map((pool) => ({ ...pool, number })))
  for (const { family, cidr, use, number } of all) {
    const network = networkOf(cidr)
    expect(poolFault({ family, cidr, use, isPrivate: false })).toBeUndefined()
    expect(contains(networkOf(SERVERS[family]), network.first)).toBe(true)
    expect(zoneAddresses(number).routes.some((route) => contains(networkOf(route), network.first))).toBe(true)
    expect(all.filter((other) => overlaps(networkOf(other.cidr), network))).toHaveLength(1)
  }
})

it('routers and nodes have an address each, which is none of the servers', () => {
  const addresses = [
    ...numbers.map((number) => zoneAddresses(number).router.ipv4),
    ...numbers.flatMap((number) => [nodeAddresses(number).host, nodeAddresses(number).tunnel]),
    ROUTE.ipv4.machine,
    ROUTE.ipv4.cloud,
  ]
  expect(new Set(addresses).size).toBe(addresses.length)
  for (const address of addresses)
    expect(contains(networkOf(SERVERS.ipv4), parseAddress(address)?.value ?? 0n)).toBe(false)
})

it('a zone keeps its number when other zones are added or removed', () => {
  const first = numberZones(['a', 'b'], {})
  expect(first).toEqual({ a: 0, b: 1 })
  expect(numberZones(['c', 'b'], first)).toEqual({ a: 0, b: 1, c: 2 })
  expect(() => numberZones([...numbers.map((number) => `z${number}`), 'more'], {})).toThrow('too many zones')
})

it('nothing from the outside is larger than what servers take', () => {
  expect(OUTSIDE.mtu).toBeLessThanOrEqual(GUEST_MTU)
})
