/** Hosts that are lost, and hosts that claim what is not theirs: the way outside is another host's as soon as the
 *  network is informed, open connections go on, and nobody else has a server's port. Gaps are printed. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { interfaceRows } from '../../../../controllers/network/ovn/interface.ts'
import { routerRows } from '../../../../controllers/network/ovn/router.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { printLine } from '../../../../kit/sys/process.ts'
import type { HostName } from './ovn-world.ts'
import { HOSTS } from './ovn-world.ts'
import {
  GUESTS,
  interfaceFacts,
  macOf,
  NAT,
  openTenants,
  PATIENCE,
  routerFacts,
  type Tenants,
  ZONE,
} from './tenants.ts'
import { watchPort } from './watched-port.ts'

const OUTSIDE = '198.51.100.1'
let tenants: Tenants

beforeAll(async () => {
  tenants = await openTenants()
})
afterAll(() => tenants?.close())

interface Pulse {
  readonly count: number
  readonly longest: number
}
type Place = Parameters<Tenants['tell']>[0]
const reaches = (from: Place, address: string) =>
  expect.poll(() => tenants.tell(from, 'connect', { address, port: 1000 }), {
    ...PATIENCE,
    message: `${from} reaches ${address}`,
  })
/** As wire.py answers. */
const pulseOf = async (from: Place, name: string) => (await tenants.tell(from, 'pulse', { name })) as Pulse

test('the gateway of a router moves to another host, and connections through it survive', async () => {
  const chassis = routerRows(routerFacts('a')).flatMap(({ columns: { options } }) =>
    options !== undefined && typeof options === 'object' && 'chassis' in options ? [String(options['chassis'])] : [],
  )[0]
  const lost = HOSTS.find((host) => host === chassis) as HostName // the router is on one
  const left = HOSTS.filter((host) => host !== lost)
  const guest = lost === 'h1' ? 'a2' : 'a1'
  await reaches(guest, OUTSIDE).toBe(`world sees ${NAT.a}`)
  await tenants.tell(guest, 'stream', { name: 'open', address: OUTSIDE, port: 1000 })
  await expect.poll(async () => (await pulseOf(guest, 'open')).count, PATIENCE).toBeGreaterThan(10)

  await tenants.world.cut(lost)
  expect(await tenants.tell(guest, 'connect', { address: OUTSIDE, port: 1000 })).toBeNull()
  const before = (await pulseOf(guest, 'open')).count
  const at = clock.monotonicMilliseconds()
  await tenants.gateways(...left)
  await reaches(guest, OUTSIDE).toBe(`world sees ${NAT.a}`)
  const again = clock.monotonicMilliseconds() - at
  await expect.poll(async () => (await pulseOf(guest, 'open')).count, PATIENCE).toBeGreaterThan(before + 10)
  const { longest } = await pulseOf(guest, 'open')
  printLine(
    `${lost} lost: ${Math.round(again)} ms from telling the network to the first new connection outside; ` +
      `an open one paused for ${longest.toFixed(1)} s, with the time until the network was told`,
  )
  await tenants.world.mend(lost)
  await tenants.gateways(...HOSTS)
  for (const each of ['a1', 'a2', 'b1', 'b2'] as const)
    await reaches(each, OUTSIDE).toMatch(/^world sees 203\.0\.113\.13[01]$/)
})

const speaks = (place: string) =>
  tenants.world.run(place, 'ping', '-c', '2', '-W', '1', GUESTS.a2.ipv4).then(
    () => true,
    () => false,
  )

test('a host that claims a port of another gets nothing of it, and can say nothing as it', async () => {
  await reaches('a2', GUESTS.a1.ipv4).toBe('a1 sees 10.0.0.3')
  await tenants.world.addGuest('rogue', 'h2', macOf('a1'), 'a1')
  const { run } = tenants.world
  await run('rogue', 'ip', 'address', 'add', '10.0.0.2/24', 'dev', 'eth0')
  expect(await speaks('rogue')).toBe(false)
  for (const from of ['a2', 'a3'] as const) await reaches(from, GUESTS.a1.ipv4).toBe(`a1 sees ${GUESTS[from].ipv4}`)
})

test('a server that was recovered elsewhere stays there when its lost host is back', async () => {
  const { world, ovn } = tenants
  const watched = await watchPort(world.southbound, 'a1')
  const bring = (host: HostName) =>
    ovn.apply({ zone: ZONE, owner: 'Server/a1', rows: interfaceRows(interfaceFacts('a1', [host])) })
  const has = (chassis: HostName) =>
    expect.poll(() => watched.states().at(-1), PATIENCE).toEqual({ chassis, others: [] })
  try {
    await has('h1')
    await world.cut('h1')
    // Its guest still runs there. The one on the other host is what the test before has left.
    await bring('h2')
    await has('h2')
    await expect.poll(() => speaks('rogue'), PATIENCE).toBe(true)
    await world.mend('h1')
    // It says so when it has heard of what has happened meanwhile.
    await tenants.installed(await ovn.apply({ zone: ZONE, owner: 'Network/none', rows: [] }))
    expect([await speaks('a1'), await speaks('rogue')]).toEqual([false, true])
    expect(watched.chassis()).toEqual(['h1', 'h2'])
    expect(watched.states().flatMap(({ others }) => others)).toEqual([])
  } finally {
    watched.close()
  }
})
