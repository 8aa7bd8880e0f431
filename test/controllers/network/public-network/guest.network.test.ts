/** Real guests on two hosts in the public network of a zone, plugged in by the agent's driver as the controller's
 *  topology expects it: one with a public IPv4 address on each host, and beside the first one without. The last tests
 *  move a guest, and take one away. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { tapOf } from '../../../../agents/node/drivers/network/ovn.ts'
import type { Guest } from '../../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { networkOf } from '../../../../controllers/network/public-network/index.ts'
import { portOf } from '../../../../controllers/network/public-network/port.ts'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import type { InstanceSpec } from '../../../../resources/instance/index.ts'
import { type GuestHost, openGuestHost } from '../ovn/ovn-guests.ts'
import { type HostName, HOSTS, openOvnWorld, type OvnWorld } from '../ovn/ovn-world.ts'
import { bringWhole } from './whole-network.ts'

const ZONE_NAME = 'z1'
const GUESTS = {
  one: { host: 'h1', number: 1, hasIpv4: true },
  two: { host: 'h2', number: 2, hasIpv4: true },
  third: { host: 'h1', number: 3, hasIpv4: false },
} as const
type GuestName = keyof typeof GUESTS
const NAMES = Object.keys(GUESTS) as GuestName[] // they are its keys

const interfaceOf = (guest: GuestName): InstanceSpec['interfaces'][number] => {
  const { number, hasIpv4 } = GUESTS[guest]
  return {
    macAddress: `52:54:00:00:00:0${number}`,
    kind: 'public',
    ...(hasIpv4 ? { ipv4: { address: `203.0.113.${number + 1}`, prefix: 24, gateway: '203.0.113.1' } } : {}),
    ipv6: { address: `2001:db8:1:${number}::1`, prefix: 64, gateway: 'fe80::1' },
    routedPrefixes: [`2001:db8:1:${number}::/64`],
  }
}
const port = (guest: GuestName, ...on: readonly HostName[]) => portOf(guest, interfaceOf(guest), on)
const ZONE = {
  displayName: 'Z',
  region: 'r',
  isClosed: false,
  capabilities: [],
  publicNetwork: {
    physicalNetwork: 'outside',
    addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
    gateways: ['198.51.100.1', '2001:db8:ffff::1'],
  },
}

let world: OvnWorld
let ovn: Ovn
const hosts = new Map<HostName, GuestHost>()
const disks = new Map<GuestName, string>()
const on = (host: HostName): GuestHost => {
  const known = hosts.get(host)
  if (known === undefined) throw new Error(`${host} is not there`)
  return known
}
const bringPorts = (ports: readonly ReturnType<typeof port>[]) =>
  bringWhole(ovn, networkOf(ZONE_NAME, ZONE, { pools: [], gatewayNodes: HOSTS }), ports)

beforeAll(async () => {
  world = await openOvnWorld()
  ovn = openOvn({ northbound: world.remote, clock, log })
  await bringPorts(NAMES.map((guest) => port(guest, GUESTS[guest].host)))
  for (const host of HOSTS) hosts.set(host, await openGuestHost(world, host, ZONE_NAME))
  await Promise.all(
    NAMES.map(async (guest) => {
      const { disk } = (await on(GUESTS[guest].host).order('start', guest, { interface: interfaceOf(guest) })) as {
        readonly disk: string
      } // the host says so
      disks.set(guest, disk)
    }),
  )
})
afterAll(async () => {
  ovn?.close()
  for (const host of hosts.values()) await host.close()
  await world?.close()
})

const PATIENCE_MILLISECONDS = 90_000
const ping = (from: string, to: string) =>
  world.run(from, 'ping', '-c', '1', '-W', '1', to).then(
    () => true,
    () => false,
  )
const reaches = (from: string, to: string) =>
  expect
    .poll(() => ping(from, to), { timeout: PATIENCE_MILLISECONDS, interval: 300, message: `${from} reaches ${to}` })
    .toBe(true)

test('real guests of two hosts are reached from outside at the addresses of their servers', async () => {
  for (const address of ['203.0.113.2', '203.0.113.3', '2001:db8:1:1::1', '2001:db8:1:2::1', '2001:db8:1:3::1'])
    await reaches('world', address)
})

test('their traffic is counted', async () => {
  const counters = (await on('h1').order('counters', 'one', {})) as {
    readonly networkReceivedBytes: number
    readonly networkTransmittedBytes: number
  } // the host says so
  expect([counters.networkReceivedBytes > 0, counters.networkTransmittedBytes > 0]).toEqual([true, true])
})

describe('the metadata service', () => {
  const ask = (guest: GuestName, request: string, header = '') =>
    on(GUESTS[guest].host).shell(
      guest,
      `printf '${request} HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\n${header}\\r\\n' | nc -w 3 169.254.169.254 80`,
    )
  const bodyOf = (answer: string) => answer.split('\n\n')[1]?.trim() ?? ''
  const tokenOf = async (guest: GuestName) =>
    bodyOf(await ask(guest, 'PUT /metadata/v1/token', 'X-Metadata-Token-TTL: 60\\r\\n'))
  const read = (guest: GuestName, token: string) =>
    ask(guest, 'GET /metadata/v1.json', `X-Metadata-Token: ${token}\\r\\n`)

  test.each(NAMES)('returns guest %s its own data, and no other', async (guest) => {
    await expect
      .poll(() => ask(guest, 'GET /meta-data', 'User-Agent: Cloud-Init/test\\r\\n'), { timeout: PATIENCE_MILLISECONDS })
      .toContain(`local-hostname: ${guest}`)
    expect(JSON.parse(bodyOf(await read(guest, await tokenOf(guest))))).toMatchObject({
      hostname: guest,
      interfaces: [{ mac: interfaceOf(guest).macAddress }],
    })
    expect(await read(guest, '')).toContain(' 401 ')
  })

  test(
    'trusts nothing that a guest can say: neither a token, nor an ' + 'address, nor a hardware address of another',
    async () => {
      const token = await tokenOf('one')
      expect(await read('one', token)).toContain(' 200 ')
      expect(await read('third', token)).toContain(' 401 ')
      const wire = (words: string) => on('h1').shell('third', words)
      const held = (await wire("ip -4 -o addr show dev eth0 | awk '{print $4}'")).trim()
      expect(held).toMatch(/^169\.254\.\d+\.\d+\/16$/)
      await wire(
        `ip addr del ${held} dev eth0; ip addr add 203.0.113.2/24 dev eth0; ip route add 169.254.169.254 dev eth0; ` +
          'arping -q -U -c 2 -I eth0 203.0.113.2',
      )
      expect(await ask('third', 'GET /meta-data', 'User-Agent: Cloud-Init/test\\r\\n')).not.toContain('hostname')
      expect(await read('one', token)).toContain(' 200 ')
      await wire(
        `ip addr del 203.0.113.2/24 dev eth0; ip addr add ${held} dev eth0; ip link set eth0 down; ip link set ` +
          'eth0 address 52:54:00:00:00:01; ip link set eth0 up',
      )
      expect(await ask('third', 'GET /meta-data', 'User-Agent: Cloud-Init/test\\r\\n')).not.toContain('hostname')
      await wire(
        `ip link set eth0 down; ip link set eth0 address ${interfaceOf('third').macAddress}; ip link set eth0 up`,
      )
      await expect
        .poll(() => ask('third', 'GET /meta-data', 'User-Agent: Cloud-Init/test\\r\\n'), {
          timeout: PATIENCE_MILLISECONDS,
        })
        .toContain('local-hostname: third')
    },
  )

  test('lets its answers live for one hop only', async () => {
    for (const guest of NAMES)
      expect(await on(GUESTS[guest].host).shell(guest, 'ping -c 1 -W 3 169.254.169.254')).toContain('ttl=1 ')
  })

  test('is back when its namespace was killed, and leaves nothing of the one before', async () => {
    await on('h1').killNamespace()
    await expect
      .poll(() => ask('third', 'GET /meta-data', 'User-Agent: Cloud-Init/test\\r\\n'), {
        timeout: PATIENCE_MILLISECONDS,
      })
      .toContain('local-hostname: third')
    expect((await world.portsOf('h1')).filter((name) => name.startsWith('svcmetadata'))).toHaveLength(1)
  })

  test('is switched off and on while the guest runs', async () => {
    const token = await tokenOf('one')
    await on('h1').order('serve', 'one', { isEnabled: false })
    expect(await read('one', token)).toContain(' 404 ')
    await on('h1').order('serve', 'one', { isEnabled: true })
    expect(await read('one', token)).toContain(' 200 ')
  })
})

test(
  'a guest that moves is reached at its addresses on the other host,' + ' by the world and by who was its neighbour',
  async () => {
    const others = (['two', 'third'] as const).map((guest) => port(guest, GUESTS[guest].host))
    const reception = { id: 'op', attempt: 1, mirroredDisks: [], key: 'a1'.repeat(32) }
    const isState = (host: HostName, state: Guest['state']) =>
      expect
        .poll(async () => ((await on(host).order('inspect', 'one', {})) as Guest | null)?.state, {
          timeout: PATIENCE_MILLISECONDS,
          interval: 100,
          message: `the guest on ${host}`,
        })
        .toBe(state)
    await on('h1').shell(
      'one',
      '(count=0; while sleep 0.2; do count=$((count+1)); echo $count > /tmp/count; done) & true',
    )
    await bringPorts([...others, port('one', 'h1', 'h2')])
    const awaited = (await on('h2').order('receive', 'one', {
      interface: interfaceOf('one'),
      disk: disks.get('one') ?? '',
      reception,
    })) as Guest // the host says so
    await reaches('world', '203.0.113.2')
    await on('h1').order('send', 'one', {
      sending: {
        ...reception,
        host: awaited.transfer?.host ?? '',
        port: awaited.transfer?.port ?? 0,
        downtimeLimitMilliseconds: 2_000,
        isThrottled: true,
        timeoutSeconds: 60,
      },
    })
    await isState('h1', 'handed_over')
    await isState('h2', 'running')

    // Before the network learns that the move is over: the guest's own word, sent by its new host, is enough.
    await reaches('world', '203.0.113.2')
    await on('h1').order('forget', 'one', {})
    await bringPorts([...others, port('one', 'h2')])
    for (const address of ['203.0.113.2', '2001:db8:1:1::1']) await reaches('world', address)
    expect(await on('h1').shell('third', 'ping -6 -c 1 -W 5 2001:db8:1:1::1')).toContain(' 0% packet loss')
    expect(await on('h2').shell('two', 'ping -c 1 -W 5 203.0.113.2')).toContain(' 0% packet loss')

    const countOf = async () => Number((await on('h2').shell('one', 'cat /tmp/count')).trim())
    const count = await countOf()
    expect(count).toBeGreaterThan(0)
    await expect.poll(countOf, { timeout: PATIENCE_MILLISECONDS }).toBeGreaterThan(count)
    expect(await world.portsOf('h1')).not.toContain(tapOf('one', 0))
    expect(await world.portsOf('h2')).toContain(tapOf('one', 0))
    expect(
      await on('h2').shell(
        'one',
        `printf 'GET /meta-data HTTP/1.0\\r\\nHost: 169.254.169.254\\r\\nUser-Agent: Cloud-Init/test\\r\\n\\r\\n' ` +
          '| nc -w 3 169.254.169.254 80',
      ),
    ).toContain('local-hostname: one')
  },
)

test('a guest that goes is unplugged', async () => {
  const before = await world.portsOf('h1')
  expect(before).toContain(tapOf('third', 0))
  await on('h1').order('forget', 'third', {})
  const after = await world.portsOf('h1')
  expect(after).not.toContain(tapOf('third', 0))
  expect(after).toHaveLength(before.length - 3) // the tap, and both ends of its way to the integration bridge
  expect(await world.run('h1', 'ip', '-brief', 'link')).not.toContain(tapOf('third', 0))
})
