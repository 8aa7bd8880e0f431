import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { withLinkLocals } from '../../../controllers/network/link-local.ts'
import type { PublicNetwork, PublicPort } from '../../../controllers/network/topology.ts'

const octet = (value: number) => value.toString(16).padStart(2, '0')
const port = (number: number): PublicPort => ({
  name: `g${number}`,
  macAddress: `52:54:00:00:${octet(number >> 8)}:${octet(number & 0xff)}`,
  ipv6Prefixes: [],
  nodes: ['h1'],
})
const network = (ports: readonly PublicPort[]): PublicNetwork => ({ zone: 'z1', ports, gatewayNodes: [] })
const given = (ports: readonly PublicPort[], held: ReadonlyMap<string, string> = new Map()) =>
  new Map(withLinkLocals(network(ports), held).ports.map(({ name, ipv4 }) => [name, ipv4?.address]))
const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 60_000 }), { maxLength: 40 })

describe('link-local addresses', () => {
  test('are for guests without a public one', () => {
    const ipv4 = { address: '203.0.113.2', prefix: 24, gateway: '203.0.113.1', cidr: '203.0.113.0/24' }
    expect(given([{ ...port(1), ipv4 }]).get('g1')).toBe('203.0.113.2')
  })

  test('are never given twice, nor those of the router and the metadata service', () => {
    fc.assert(
      fc.property(numbers, (drawn) => {
        const addresses = [...given(drawn.map(port)).values()]
        expect(new Set(addresses).size).toBe(drawn.length)
        for (const address of addresses) expect(address).toMatch(/^169\.254\.([1-9]|[1-9]\d|1[0-5]\d|16[0-8])\.\d+$/)
      }),
    )
  })

  test('stay with who has them, whoever comes and goes', () => {
    fc.assert(
      fc.property(numbers, numbers, (before, after) => {
        const held = new Map(
          [...given(before.map(port))].flatMap(([name, address]) =>
            address === undefined ? [] : [[name, address] as const],
          ),
        )
        const now = given(after.map(port), held)
        for (const [name, address] of held) if (now.has(name)) expect(now.get(name)).toBe(address)
      }),
    )
  })

  test('that would be the same by the hardware addresses are not', () => {
    const [one, other] = [port(1), { ...port(1), name: 'other', macAddress: '52:54:00:00:a8:01' }]
    const both = given([one, other])
    expect(both.get('g1')).not.toBe(both.get('other'))
  })
})
