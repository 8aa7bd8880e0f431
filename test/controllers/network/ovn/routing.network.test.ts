/** Where packets of a customer's router go, what guests learn of their networks, and how large what passes may be: by
 *  packets. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wayOf } from '../../../models/routing-model.ts'
import { numberBetween, systemRandom } from '../../../../kit/sys/random.ts'
import { GUESTS, ipv6Of, macOf, NAT, NETWORKS, openTenants, PATIENCE, type Tenants } from './tenants.ts'

const seed = Number(
  process.env['SVCCLOUD_TEST_SEED'] ?? Math.floor(numberBetween(systemRandom, { least: 0, most: 2 ** 31 })),
)
const HOPS = ['a2', 'a3'] as const
const OUTSIDE = '198.51.100.1'
let tenants: Tenants

beforeAll(async () => {
  tenants = await openTenants()
  const { run } = tenants.world
  await run('a1', 'ip', '-6', 'route', 'replace', 'default', 'via', 'fd00:a::1')
  await run('a2', 'ip', '-6', 'route', 'replace', 'default', 'via', 'fd00:a::1')
  await run('a3', 'ip', '-6', 'route', 'replace', 'default', 'via', 'fd00:c::1')
  for (const place of [...HOPS, 'world'] as const) await tenants.tell(place, 'hear')
})
afterAll(() => tenants?.close())

type Place = Parameters<Tenants['tell']>[0]
const reaches = (from: Place, address: string) =>
  expect.poll(() => tenants.tell(from, 'connect', { address, port: 1000 }), {
    ...PATIENCE,
    message: `${from} reaches ${address}`,
  })

describe('guests get them', () => {
  test('their IPv6 address and their servers of names by DHCPv6', async () => {
    await expect
      .poll(() => tenants.tell('a1', 'lease6', { mac: macOf('a1') }), PATIENCE)
      .toMatchObject({ kind: 7, address: ipv6Of('a1'), 23: '20010db8000000000000000000000053' })
  })

  test('by their router that DHCPv6 has their addresses, and what the wire carries; never a way outside', async () => {
    await expect
      .poll(() => tenants.tell('a1', 'advertisement'), PATIENCE)
      .toMatchObject({
        flags: expect.any(Number) as number,
        from: expect.stringMatching(/^fe80:/) as string,
        mtu: 1400,
        prefixes: [{ prefix: 'fd00:a::/64' }],
      })
  })

  test('addresses of their own network, even if others have the same range', async () => {
    expect(await tenants.tell('b1', 'lease6', { mac: macOf('b1') })).toMatchObject({ address: ipv6Of('b1') })
    expect(await tenants.tell('b1', 'lease', { mac: macOf('b1') })).toMatchObject({ address: '10.0.0.2' })
  })
})

describe('static routes', () => {
  test('reach networks behind a server, and back', async () => {
    await tenants.world.run('a3', 'ip', 'address', 'add', '10.9.0.5/32', 'dev', 'lo')
    await tenants.world.run('a3', 'ip', 'address', 'add', 'fd09::5/128', 'dev', 'lo')
    await tenants.routes([
      { destination: '10.9.0.0/16', nextHop: GUESTS.a3.ipv4 },
      { destination: 'fd09::/64', nextHop: ipv6Of('a3') },
    ])
    await reaches('a1', '10.9.0.5').toBe('a3 sees 10.0.0.2')
    await reaches('a1', 'fd09::5').toBe(`a3 sees ${ipv6Of('a1')}`)
    expect(await tenants.tell('b1', 'connect', { address: '10.9.0.5', port: 1000 })).toBeNull()
  })

  test('let a server speak for what is behind it within the networks, and not outside', async () => {
    const from = '10.9.0.5'
    const connect = (address: string) => tenants.tell('a3', 'connect', { address, port: 1000, source: from })
    await expect.poll(() => connect('10.0.0.2'), PATIENCE).toBe(`a1 sees ${from}`)
    await tenants.tell('world', 'frames')
    expect(await connect(OUTSIDE)).toBeNull()
    await reaches('a3', OUTSIDE).toBe(`world sees ${NAT.a}`)
    expect(String(await tenants.tell('world', 'frames'))).not.toContain('0a090005')
  })

  test('that are removed let nobody use foreign source addresses', async () => {
    await tenants.routes([])
    await reaches('a3', '10.0.0.2').toBe('a1 sees 10.0.1.2')
    expect(await tenants.tell('a3', 'connect', { address: '10.0.0.2', port: 1000, source: '10.9.0.5' })).toBeNull()
  })

  test(`lead where their model does (seed ${seed})`, async () => {
    const hops = { ipv4: HOPS.map((hop) => GUESTS[hop].ipv4), ipv6: HOPS.map(ipv6Of) }
    const destinations = {
      ipv4: [
        '10.0.0.0/16',
        '10.9.0.0/16',
        '10.9.0.0/24',
        '10.9.0.64/26',
        '10.9.1.0/24',
        '10.0.1.128/25',
        '172.16.0.0/12',
      ],
      ipv6: ['fd09::/48', 'fd09::/64', 'fd09:0:0:1::/64', 'fd0a::/16', 'fd00:c::8000:0:0:0/65', '::/0'],
    }
    const routes = (family: 'ipv4' | 'ipv6') =>
      fc.uniqueArray(
        fc.record({
          destination: fc.constantFrom(...destinations[family]),
          nextHop: fc.constantFrom(...hops[family]),
        }),
        { selector: ({ destination }) => destination, maxLength: 5 },
      )
    const rounds = fc.sample(fc.tuple(routes('ipv4'), routes('ipv6')), { seed, numRuns: 5 })
    for (const [ipv4, ipv6] of rounds) await compare([...ipv4, ...ipv6])
  })
})

const DESTINATIONS = [
  '10.9.0.1',
  '10.9.0.70',
  '10.9.1.1',
  '10.9.2.2',
  '10.0.1.2',
  '10.0.1.200',
  '10.0.7.7',
  '172.16.1.1',
  OUTSIDE,
  'fd09::1',
  'fd09:0:0:1::1',
  'fd09:0:0:2::1',
  'fd0a::1',
  'fd00:c::2',
  'fd00:c::8000:0:0:1',
  'fd0b::1',
]
let source = 20_000

/** Sends something to each destination, and compares who gets it. */
async function compare(staticRoutes: readonly { readonly destination: string; readonly nextHop: string }[]) {
  await tenants.routes(staticRoutes)
  const router = {
    networks: (['a', 'other'] as const).flatMap((id) => [
      { id, cidr: NETWORKS[id].ipv4Cidr },
      { id, cidr: NETWORKS[id].ipv6Prefix },
    ]),
    staticRoutes,
    natEnabled: true,
  }
  const getters = DESTINATIONS.map((address) => {
    const way = wayOf(router, address)
    const to = way?.kind === 'host' ? way.nextHop : address
    return way?.kind === 'outside'
      ? 'world'
      : way === undefined
        ? undefined
        : HOPS.find((hop) => [GUESTS[hop].ipv4, ipv6Of(hop)].includes(to))
  })
  const seen = new Map<string, Place>()
  const ports = DESTINATIONS.map(() => source++)
  const isWhole = async () => {
    for (const [index, address] of DESTINATIONS.entries())
      await tenants.tell('a1', 'flow', { protocol: 'udp', address, source: ports[index], port: 2000 })
    for (const place of [...HOPS, 'world'] as const)
      for (const mark of (await tenants.tell(place, 'arrived')) as readonly string[]) {
        const [, , port = ''] = mark.split(' ')
        if (ports.includes(Number(port))) seen.set(port, place)
      }
    return DESTINATIONS.map((address, index) => [address, seen.get(String(ports[index]))])
  }
  await expect
    .poll(isWhole, { ...PATIENCE, message: `seed ${seed}: ${JSON.stringify(staticRoutes)}` })
    .toEqual(DESTINATIONS.map((address, index) => [address, getters[index]]))
}

describe('what is too large', () => {
  const FLOATING = '203.0.113.140'

  test('is reported to senders outside, and other packets pass completely', async () => {
    await tenants.float('f', FLOATING, {
      kind: 'private',
      routerId: 'a',
      routerAddress: NAT.a,
      address: GUESTS.a1.ipv4,
    })
    const asks = (size: number) =>
      expect.poll(() => tenants.tell('world', 'path', { address: FLOATING, size }), PATIENCE)
    await asks(1372).toBe('answered')
    await asks(1472).toBe(1400)
  })

  test('is taken apart by guests, and passes to another host', async () => {
    const datagram = (address: string) => tenants.tell('a1', 'datagram', { address, port: 1000, size: 9_000 })
    await expect.poll(() => datagram('10.0.0.3'), PATIENCE).toBe(true)
    await expect.poll(() => datagram(GUESTS.a3.ipv4), PATIENCE).toBe(true)
    await expect.poll(() => datagram(ipv6Of('a2')), PATIENCE).toBe(true)
  })
})

test('what looks like a tunnel between hosts comes nowhere from inside a guest', async () => {
  const GENEVE = 6081
  for (const address of ['192.0.2.1', '192.0.2.2'])
    await tenants.tell('a1', 'flow', { protocol: 'udp', address, source: 30_000, port: GENEVE })
  await reaches('a1', GUESTS.a2.ipv4).toBe('a2 sees 10.0.0.2')
  expect(await tenants.tell('a2', 'arrived')).not.toContain(`udp ${NAT.a} 30000`)
})
