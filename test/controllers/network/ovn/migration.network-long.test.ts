/** A real guest that moves from host to host and back, with connections open in every direction through its network,
 *  the NAT of its router and a floating IP, behind a closed firewall. They go on, and nobody but the host that the
 *  network knows ever has the guest's port. Gaps are printed. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Guest } from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { firewallRows } from '../../../../controllers/network/ovn/firewall.ts'
import { interfaceRows } from '../../../../controllers/network/ovn/interface.ts'
import { NO_FIREWALL } from '../../../../domain/server/firewall.ts'
import { printLine } from '../../../../kit/sys/process.ts'
import { type GuestHost, openGuestHost } from './ovn-guests.ts'
import type { HostName } from './ovn-world.ts'
import { HOSTS } from './ovn-world.ts'
import { NAT, openTenants, PATIENCE, type Pulse, type Tenants, ZONE } from './tenants.ts'
import { type WatchedPort, watchPort } from './watched-port.ts'

const NAME = 'moving'
const MAC = '52:54:00:00:00:20'
const OWN = '10.0.0.32'
const FLOATING = '203.0.113.150'
const OUTSIDE = '198.51.100.1'
const NEIGHBOUR = { name: 'a2', address: '10.0.0.3' } as const
/** Of the guest, where it repeats its input. */
const PORT = 2000
/** Outside, where something is said and nothing waited for. */
const REST_PORT = 3001
const RESTING = 'resting'

let tenants: Tenants
let watched: WatchedPort
const disks = new Set<string>()
const hosts = new Map<HostName, GuestHost>()
const on = (host: HostName): GuestHost => {
  const known = hosts.get(host)
  if (known === undefined) throw new Error(`${host} is not there`)
  return known
}
const wire = { macAddress: MAC, kind: 'private' as const, ipv4: { address: OWN, prefix: 24, gateway: '10.0.0.1' } }

/** Its port may be on these hosts, and what comes in is what it asked for, or is for its one open port. */
async function place(...nodes: readonly HostName[]): Promise<void> {
  const facts = { zone: ZONE, id: NAME, networkId: 'a', macAddress: MAC, ipv4: OWN, ipv6: 'fd00:a::32', hostname: NAME }
  const open = {
    direction: 'in',
    action: 'accept',
    family: 'any',
    protocol: 'tcp',
    remoteCidrs: [],
    comment: '',
  } as const
  const firewall = { ...NO_FIREWALL, enabled: true, rules: [{ ...open, portStart: PORT, portEnd: PORT }] }
  await tenants.ovn.apply({
    zone: ZONE,
    owner: `Server/${NAME}`,
    rows: [...interfaceRows({ ...facts, nodes }), ...firewallRows(NAME, { ...firewall, ports: [NAME] })],
  })
}

beforeAll(async () => {
  tenants = await openTenants()
  await place('h1')
  watched = await watchPort(tenants.world.southbound, NAME)
  for (const host of HOSTS) hosts.set(host, await openGuestHost(tenants.world, host, ZONE))
})
afterAll(async () => {
  watched?.close()
  for (const host of hosts.values()) await host.close()
  await tenants?.close()
})

/** Connections by name: who notes what comes over each, and under which name. */
const STREAMS = {
  'to a neighbour': [NEIGHBOUR.name, OWN],
  'from a neighbour': [NEIGHBOUR.name, 'in'],
  'outside by NAT': ['world', NAT.a],
  'in by a floating IP': ['world', 'floating'],
} as const
type StreamName = keyof typeof STREAMS
const STREAM_NAMES = Object.keys(STREAMS) as readonly StreamName[] // they are its keys
const pulseOf = async (stream: StreamName) => {
  const [place, name] = STREAMS[stream]
  return (await tenants.tell(place, 'pulse', { name })) as Pulse // as wire.py answers
}
const pulses = () => Promise.all(STREAM_NAMES.map(async (stream) => [stream, await pulseOf(stream)] as const))

const restingCount = async () => ((await tenants.tell('world', 'pulse', { name: RESTING })) as Pulse).count

const isState = (host: HostName, state: Guest['state']) =>
  expect
    .poll(async () => ((await on(host).order('inspect', NAME, {})) as Guest | null)?.state, {
      timeout: 90_000,
      interval: 50,
      message: `the guest on ${host}`,
    })
    .toBe(state)

test('a guest opens connections, and others to it', async () => {
  const { disk } = (await on('h1').order('start', NAME, { interface: wire })) as { readonly disk: string } // it says so
  disks.add(disk)
  const shell = (command: string) => on('h1').shell(NAME, command)
  await expect.poll(() => shell('ip -4 -o addr show dev eth0'), PATIENCE).toContain(OWN)
  // A connection begun before the hosts know the whole way would never be answered, and is not begun again.
  for (const [address, answer] of [
    [NEIGHBOUR.address, `${NEIGHBOUR.name} sees ${OWN}`],
    [OUTSIDE, `world sees ${NAT.a}`],
  ] as const)
    await expect.poll(() => shell(`nc -w 2 ${address} 1000 </dev/null`), PATIENCE).toContain(answer)
  const talk = (address: string) => `(while usleep 20000; do echo x; done) | nc ${address} 1000 >/dev/null & true`
  await shell(talk(NEIGHBOUR.address))
  await shell(talk(OUTSIDE))
  await shell(`nc -ll -p ${PORT} -e cat & true`)
  await tenants.tell('world', 'drip', { name: RESTING, port: REST_PORT })
  await shell(`touch said; tail -f said | nc ${OUTSIDE} ${REST_PORT} >/dev/null & true`)
  await expect.poll(restingCount, PATIENCE).toBeGreaterThan(20)
  await tenants.tell('world', 'rest', { name: RESTING, isResting: true })
  await expect
    .poll(
      () => tenants.tell(NEIGHBOUR.name, 'stream', { name: 'in', address: OWN, port: PORT, isSilent: true }),
      PATIENCE,
    )
    .toBe(true)
  const begun = async (...streams: readonly StreamName[]) => {
    for (const stream of streams)
      await expect.poll(async () => (await pulseOf(stream)).count, { ...PATIENCE, message: stream }).toBeGreaterThan(20)
  }
  await begun('to a neighbour', 'from a neighbour', 'outside by NAT')
  // From now on it is seen outside by the floating IP; what was begun before stays as it is.
  await tenants.float('f', FLOATING, { kind: 'private', routerId: 'a', routerAddress: NAT.a, address: OWN })
  await tenants.tell('world', 'stream', { name: 'floating', address: FLOATING, port: PORT, isSilent: true })
  await begun(...STREAM_NAMES)
})

test.each([
  ['h1', 'h2'],
  ['h2', 'h1'],
] as const)('and takes them along from %s to %s', async (from, to) => {
  for (const place of ['world', NEIGHBOUR.name] as const) await tenants.tell(place, 'forget_pulses')
  watched.forget()
  const reception = { id: `op-${from}`, attempt: 1, mirroredDisks: [], key: 'a1'.repeat(32) }
  await place(from, to)
  const [disk = ''] = disks
  const awaited = (await on(to).order('receive', NAME, { interface: wire, disk, reception })) as Guest // it says so
  await on(from).order('send', NAME, {
    sending: {
      ...reception,
      host: awaited.transfer?.host ?? '',
      port: awaited.transfer?.port ?? 0,
      downtimeLimitMilliseconds: 2_000,
      isThrottled: true,
      timeoutSeconds: 60,
    },
  })
  await isState(from, 'handed_over')
  await isState(to, 'running')
  const handedOver = new Map((await pulses()).map(([stream, { count }]) => [stream, count]))
  await on(from).order('forget', NAME, {})
  await place(to)
  for (const stream of STREAM_NAMES)
    await expect
      .poll(async () => (await pulseOf(stream)).count, { ...PATIENCE, message: `${stream} goes on` })
      .toBeGreaterThan((handedOver.get(stream) ?? 0) + 20)
  for (const [stream, { longest }] of await pulses())
    printLine(`${from} to ${to}: a connection ${stream} paused for ${Math.round(longest * 1_000)} ms at most`)

  await expect.poll(() => watched.states().at(-1), PATIENCE).toEqual({ chassis: to, others: [] })
  expect(watched.chassis()).toEqual([from, to])
  expect(
    watched
      .states()
      .flatMap(({ others }) => others)
      .filter((host) => host !== to),
  ).toEqual([])
})

test('one over which the guest has sent nothing since continues as soon as it does', async () => {
  const before = await restingCount()
  await tenants.tell('world', 'rest', { name: RESTING, isResting: false })
  await on('h1').shell(NAME, 'echo x >> said')
  await expect.poll(restingCount, PATIENCE).toBeGreaterThan(before + 20)
})
