import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { publicPortOwner } from '../../../../controllers/network/ovn/difference.ts'
import { openSimulatedOvn, type SimulatedOvn } from '../../../../controllers/network/ovn/simulated-ovn.ts'
import { openLinkLocals } from '../../../../controllers/network/public-network/port.ts'
import { portRows, type PublicPort, rowsOf } from '../../../../controllers/network/public-network/topology.ts'

const octet = (value: number) => value.toString(16).padStart(2, '0')
const port = (number: number): PublicPort => ({
  name: `g${number}`,
  macAddress: `52:54:00:00:${octet(number >> 8)}:${octet(number & 0xff)}`,
  ipv6Prefixes: [],
  nodes: ['h1'],
})
async function openZone(): Promise<SimulatedOvn> {
  const ovn = openSimulatedOvn()
  await ovn.apply({ zone: 'z1', owner: 'zone', rows: rowsOf({ zone: 'z1', subnets: [], gatewayNodes: [] }) })
  return ovn
}
/** All at the same time, by one process. */
async function given(ovn: SimulatedOvn, ports: readonly PublicPort[]) {
  const linkLocals = openLinkLocals(ovn)
  return new Map(
    await Promise.all(
      ports.map(async (one) => {
        const whole = await linkLocals.complete('z1', one)
        await ovn.apply({ zone: 'z1', owner: publicPortOwner(one.name), rows: portRows('z1', whole) })
        return [one.name, whole.ipv4?.address] as const
      }),
    ),
  )
}
const numbers = fc.uniqueArray(fc.integer({ min: 0, max: 60_000 }), { maxLength: 40 })

describe('link-local addresses', () => {
  test('are for guests without a public one', async () => {
    const ipv4 = { address: '203.0.113.2', prefix: 24, gateway: '203.0.113.1', cidr: '203.0.113.0/24' }
    expect(await openLinkLocals(openSimulatedOvn()).complete('z1', { ...port(1), ipv4 })).toMatchObject({ ipv4 })
  })

  test('are never given twice, nor those of the router and the metadata service', () =>
    fc.assert(
      fc.asyncProperty(numbers, async (drawn) => {
        const addresses = [...(await given(await openZone(), drawn.map(port))).values()]
        expect(new Set(addresses).size).toBe(drawn.length)
        for (const address of addresses) expect(address).toMatch(/^169\.254\.([1-9]|[1-9]\d|1[0-5]\d|16[0-8])\.\d+$/)
      }),
    ))

  test('stay with their holders, for any newcomer, and for the next process too', () =>
    fc.assert(
      fc.asyncProperty(numbers, numbers, async (before, after) => {
        const ovn = await openZone()
        const held = await given(ovn, before.map(port))
        const now = await given(ovn, [...after, ...before].map(port))
        for (const [name, address] of held) expect(now.get(name)).toBe(address)
        expect(new Set(now.values()).size).toBe(now.size)
      }),
    ))

  test('that would be the same by the hardware addresses are not', async () => {
    const both = await given(await openZone(), [
      port(1),
      { ...port(1), name: 'other', macAddress: '52:54:00:00:a8:01' },
    ])
    expect(both.get('g1')).not.toBe(both.get('other'))
  })
})
