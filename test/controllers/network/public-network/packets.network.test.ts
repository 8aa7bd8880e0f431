/** The public network of a zone on a real OVN: guests of different hosts reach each other and the network outside, and
 *  use no address but theirs. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { linkLocalOf } from '../../../../controllers/network/ovn/names.ts'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { connectOvsdb, type OvsdbConnection } from '../../../../controllers/network/ovn/ovsdb.ts'
import type { PublicNetwork, PublicPort } from '../../../../controllers/network/public-network/topology.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { nodeBinary } from '../../../../kit/sys/process.ts'
import { openOvnWorld, type OvnWorld } from '../ovn/ovn-world.ts'
import { bringWhole } from './whole-network.ts'
import { PYTHON } from '../../../python.ts'

let world: OvnWorld
let ovn: Ovn
let northbound: OvsdbConnection

const SUBNET = { prefix: 24, gateway: '203.0.113.1', cidr: '203.0.113.0/24' }
const port = (number: number, changes: Partial<PublicPort> = {}): PublicPort => ({
  name: `g${number}`,
  macAddress: `52:54:00:00:00:0${number}`,
  ipv4: { address: `203.0.113.${number + 1}`, ...SUBNET },
  ipv6Prefixes: [`2001:db8:1:${number}::/64`],
  nodes: [`h${number}`],
  ...changes,
})
const network: PublicNetwork = {
  zone: 'z1',
  subnets: [],
  gatewayNodes: ['h1', 'h2'],
  outside: {
    physicalNetwork: 'outside',
    addresses: ['198.51.100.2/24', '2001:db8:ffff::2/64'],
    gateways: ['198.51.100.1', '2001:db8:ffff::1'],
  },
}
const OWNER = { zone: 'z1', owner: 'PublicNetwork/z1' }
const bring = (...ports: readonly PublicPort[]) => bringWhole(ovn, network, ports)

beforeAll(async () => {
  world = await openOvnWorld()
  ovn = openOvn({ northbound: world.remote, southbound: world.southbound, clock, log })
  northbound = connectOvsdb(world.remote, { clock })
  await bring(port(1), port(2))
  for (const [number, host] of [
    [1, 'h1'],
    [2, 'h2'],
  ] as const) {
    await world.addGuest(`g${number}`, host, `52:54:00:00:00:0${number}`)
    // As a guest's network-config says it; the route comes with router advertisements.
    await world.run(`g${number}`, 'ip', 'address', 'add', `203.0.113.${number + 1}/24`, 'dev', 'eth0')
    await world.run(`g${number}`, 'ip', 'route', 'add', 'default', 'via', '203.0.113.1')
    await world.run(`g${number}`, 'ip', 'address', 'add', `2001:db8:1:${number}::1/64`, 'dev', 'eth0', 'nodad')
  }
})
afterAll(async () => {
  ovn?.close()
  northbound?.close()
  await world?.close()
})

/** Asks by DHCPv6 for an address, as an image does that reads no metadata; prints what it is offered and given. */
const ASK_DHCPV6 = `
import socket, struct, sys
asker = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); asker.settimeout(2)
asker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
asker.bind(('::', 546, 0, socket.if_nametoindex('eth0')))
option = lambda code, data: struct.pack('!HH', code, len(data)) + data
def parse(data):
    found = {}
    while data:
        code, length = struct.unpack('!HH', data[:4])
        found[code], data = data[4:4 + length], data[4 + length:]
    return found
client = option(1, bytes.fromhex('00030001') + bytes.fromhex(sys.argv[1].replace(':', '')))
wanted = option(3, struct.pack('!III', 1, 0, 0))
def ask(kind, *more):
    asker.sendto(bytes([kind, 1, 2, 3]) + client + b''.join(more), ('ff02::1:2', 547, 0, socket.if_nametoindex('eth0')))
    return parse(asker.recv(1500)[4:])
address = lambda said: socket.inet_ntop(socket.AF_INET6, parse(said[3][12:])[5][:16])
offer = ask(1, wanted)
given = ask(3, option(2, offer[2]), option(3, offer[3]))
print(address(offer), address(given))
`

const ping = (from: string, ...words: readonly string[]): Promise<boolean> =>
  world.run(from, 'ping', '-c', '1', '-W', '1', ...words).then(
    () => true,
    () => false,
  )
const reaches = (from: string, to: string) =>
  expect.poll(() => ping(from, to), { interval: 200, message: `${from} reaches ${to}` }).toBe(true)

test('guests of different hosts reach each other, by both protocols', async () => {
  await reaches('g1', '203.0.113.3')
  await reaches('g2', '203.0.113.2')
  await reaches('g1', '2001:db8:1:2::1')
  await reaches('g2', '2001:db8:1:1::1')
})

test('and the network outside, which reaches them', async () => {
  for (const guest of ['g1', 'g2']) {
    await reaches(guest, '198.51.100.1')
    await reaches(guest, '2001:db8:ffff::1')
  }
  for (const address of ['203.0.113.2', '203.0.113.3', '2001:db8:1:1::1', '2001:db8:1:2::1'])
    await reaches('world', address)
})

test('a guest gets its IPv6 address by DHCPv6, as router advertisements say', async () => {
  for (const number of [1, 2]) {
    const ask = () =>
      world.run(`g${number}`, PYTHON, '-c', ASK_DHCPV6, `52:54:00:00:00:0${number}`).then(
        (said) => said.trim(),
        () => 'nothing',
      )
    await expect.poll(ask, { interval: 500 }).toBe(`2001:db8:1:${number}::1 2001:db8:1:${number}::1`)
  }
})

test('a machine that only asks by DHCPv6 answers at the IPv6 address that it is shown with', async () => {
  await bring(port(1), port(2), port(3, { nodes: ['h1'] }))
  await world.addGuest('g3', 'h1', '52:54:00:00:00:03')
  const shown = '2001:db8:1:3::1'
  const ask = () =>
    world.run('g3', PYTHON, '-c', ASK_DHCPV6, '52:54:00:00:00:03').then(
      (said) => said.trim().split(' ')[1],
      () => undefined,
    )
  await expect.poll(ask, { interval: 500 }).toBe(shown)
  expect(await ping('g2', shown)).toBe(false)
  // As a client of DHCPv6 does: the address alone, without a prefix. The route comes with router advertisements.
  await world.run('g3', 'ip', 'address', 'add', `${shown}/128`, 'dev', 'eth0', 'nodad')
  for (const from of ['g1', 'g2', 'world']) await reaches(from, shown)
})

test('every address of a prefix is routed to its guest', async () => {
  await world.run('g1', 'ip', 'address', 'add', '2001:db8:1:1:a:b:c:d/128', 'dev', 'eth0', 'nodad')
  await reaches('world', '2001:db8:1:1:a:b:c:d')
})

test('a guest cannot use the address of another, nor one of nobody', async () => {
  await world.run('g1', 'ip', 'address', 'add', '203.0.113.99/32', 'dev', 'eth0')
  await world.run('g1', 'ip', 'address', 'add', '2001:db8:1:2::99/128', 'dev', 'eth0', 'nodad')
  expect(await ping('g1', '-I', '203.0.113.99', '203.0.113.1')).toBe(false)
  expect(await ping('g1', '-I', '2001:db8:1:2::99', '2001:db8:ffff::1')).toBe(false)
  expect(await ping('g1', '203.0.113.1')).toBe(true)
})

test('a guest cannot use the link-local address of another, nor one of nobody', async () => {
  const other = `${linkLocalOf('52:54:00:00:00:02')}%eth0`
  await reaches('g1', other)
  await world.run('g1', 'ip', 'address', 'add', 'fe80::dead/128', 'dev', 'eth0', 'nodad', 'preferred_lft', '0')
  const answers = await Promise.all(Array.from({ length: 3 }, () => ping('g1', '-I', 'fe80::dead%eth0', other)))
  await world.run('g1', 'ip', 'address', 'delete', 'fe80::dead/128', 'dev', 'eth0')
  expect(answers).not.toContain(true)
  await reaches('g1', other)
})

const LISTEN = `
import select, socket
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
four.bind(('', 68))
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.bind(('::', 546))
while True:
    for ready in select.select([four, six], [], [])[0]:
        print(ready.recv(64).decode(), flush=True)
`
/** Arguments: the ports that it sends from, for IPv4 and IPv6, and the text. */
const ANSWER = `
import socket, sys
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
four.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
four.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0')
four.bind(('', int(sys.argv[1])))
four.sendto((sys.argv[3] + ' by IPv4').encode(), ('255.255.255.255', 68))
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.bind(('::', int(sys.argv[2])))
six.sendto((sys.argv[3] + ' by IPv6').encode(), ('ff02::1', 546, 0, socket.if_nametoindex('eth0')))
`

test('a guest cannot be the DHCP server of others, by either protocol', async () => {
  await world.run('g1', 'ethtool', '-K', 'eth0', 'tx', 'off') // nothing on this wire fills in checksums
  const received = new Set<string>()
  const listener = world.start('g2', PYTHON, '-c', LISTEN)
  listener.stdout?.setEncoding('utf8').on('data', (text: string) => {
    for (const line of text.trim().split('\n')) received.add(line)
  })
  await expect
    .poll(
      async () => {
        await world.run('g1', PYTHON, '-c', ANSWER, '67', '547', 'server')
        await world.run('g1', PYTHON, '-c', ANSWER, '1067', '1547', 'another')
        return [...received].filter((text) => text.startsWith('another')).sort()
      },
      { interval: 300 },
    )
    .toEqual(['another by IPv4', 'another by IPv6'])
  for (let time = 0; time < 5; time++) await world.run('g1', PYTHON, '-c', ANSWER, '67', '547', 'server')
  await world.run('g1', PYTHON, '-c', ANSWER, '1067', '1547', 'last')
  await expect.poll(() => [...received].filter((text) => text.startsWith('last')).length).toBe(2)
  listener.kill('SIGKILL')
  expect([...received].filter((text) => text.startsWith('server'))).toEqual([])
})

/** Prints the types of the ICMPv6 messages of neighbour discovery and of pings, and who sent them. */
const HEAR = `
import socket
raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
while True:
    message, source = raw.recvfrom(2048)
    print(message[0], source[0].split('%')[0], flush=True)
`
/** Sends frames as a guest's own kernel would never: the arguments are its hardware address, that of the receiver, the
 *  link-local address of both, and the types of the messages. Behind a header of options, too. */
const FORGE = `
import socket, struct, sys
own, other = [bytes.fromhex(word.replace(':', '')) for word in sys.argv[1:3]]
source, target = [socket.inet_pton(socket.AF_INET6, word) for word in sys.argv[3:5]]
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(('eth0', 0))
def checksum(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
for kind in sys.argv[5:]:
    for to, mac in ((target, other), (socket.inet_pton(socket.AF_INET6, 'ff02::1'), bytes.fromhex('333300000001'))):
        for options in (b'', bytes([58, 0, 1, 4, 0, 0, 0, 0])):
            body = struct.pack('!BBHBBHII', int(kind), 0, 0, 64, 0, 1800, 0, 0)
            if int(kind) == 137:
                body += target + target
            pseudo = source + to + struct.pack('!II', len(body), 58)
            body = body[:2] + struct.pack('!H', checksum(pseudo + body)) + body[4:]
            first = 60 if options else 58
            packet = struct.pack('!IHBB', 6 << 28, len(options + body), first, 255) + source + to + options + body
            wire.send(mac + own + b'\\x86\\xdd' + packet)
`

test('a guest can be no router for others: its advertisements and redirects reach nobody', async () => {
  const [one, two] = ['52:54:00:00:00:01', '52:54:00:00:00:02'] as const
  const [router, redirect, echo] = ['134', '137', '128'] as const
  const heard = new Set<string>()
  const listener = world.start('g2', PYTHON, '-c', HEAR)
  let text = ''
  listener.stdout?.setEncoding('utf8').on('data', (more: string) => {
    text += more
    for (const line of text.split('\n').slice(0, -1)) heard.add(line)
    text = text.slice(text.lastIndexOf('\n') + 1)
  })
  const own = linkLocalOf(one)
  const send = (...types: readonly string[]) =>
    world.run('g1', PYTHON, '-c', FORGE, one, two, own, linkLocalOf(two), ...types)
  const fromOne = () => [...heard].filter((line) => line.endsWith(` ${own}`)).map((line) => line.split(' ')[0])
  const areHeard = (what: string) =>
    expect
      .poll(() => send(router, redirect, echo).then(fromOne), {
        interval: 300,
        message: what,
      })
      .toContain(echo)
  await areHeard('what a guest may send passes')
  for (let time = 0; time < 5; time++) await send(router, redirect, echo)
  expect(fromOne()).not.toContain(router)
  expect(fromOne()).not.toContain(redirect)

  // Open vSwitch forgets what it drops: then nothing passes until the agent has written it again.
  const onHost = (...words: readonly string[]) => world.run('h1', 'env', `OVS_RUNDIR=${world.folder}/h1`, ...words)
  await onHost('ovs-ofctl', 'del-flows', 'svcguard')
  // A guest that went meanwhile has left its way, without a device: others get their flows all the same.
  const left = { device: 'aa-gone', inner: `svp${createHash('sha256').update('aa-gone').digest('hex').slice(0, 11)}` }
  for (const name of [left.device, left.inner]) await onHost('ovs-vsctl', '--no-wait', 'add-port', 'svcguard', name)
  expect(await ping('g1', '203.0.113.1')).toBe(false)
  const keeper = world.start('h1', nodeBinary(), join(import.meta.dirname, '../ovn/guard.ts'), 'keep')
  await reaches('g1', '203.0.113.1')
  heard.clear()
  await areHeard('what a guest may send passes again')
  expect(fromOne()).not.toContain(router)
  keeper.kill('SIGKILL')
  listener.kill('SIGKILL')
})

test('a new prefix is routed to the guest beside the old one, until that is removed', async () => {
  await world.run('g1', 'ip', 'address', 'add', '2001:db8:1:ff::1/64', 'dev', 'eth0', 'nodad')
  await bring(port(1, { ipv6Prefixes: ['2001:db8:1:ff::/64', '2001:db8:1:1::/64'] }), port(2))
  await reaches('world', '2001:db8:1:ff::1')
  await reaches('world', '2001:db8:1:1::1')
  await bring(port(1, { ipv6Prefixes: ['2001:db8:1:ff::/64'] }), port(2))
  await expect.poll(() => ping('world', '2001:db8:1:1::1')).toBe(false)
  await reaches('world', '2001:db8:1:ff::1')
})

test(
  'what is so already takes no transaction, and a guest that goes ' + 'leaves nothing; what is not ours stays',
  async () => {
    await northbound.transact('OVN_Northbound', [
      { op: 'insert', table: 'Logical_Switch', row: { name: 'somebody-elses' } },
    ])
    const { sequence } = await bring(port(1), port(2))
    expect(await bring(port(1), port(2))).toEqual({ sequence })
    await bring(port(1))
    const [ports, routes, switches] = await northbound.transact(
      'OVN_Northbound',
      ['Logical_Switch_Port', 'Logical_Router_Static_Route', 'Logical_Switch'].map((table) => ({
        op: 'select',
        table,
        where: [],
      })),
    )
    expect(ports?.rows?.map((row) => row['name'])).not.toContain('g2')
    expect(routes?.rows?.map((row) => row['ip_prefix'])).not.toContain('2001:db8:1:2::/64')
    expect(switches?.rows?.map((row) => row['name'])).toContain('somebody-elses')
    await bring()
    await ovn.apply({ ...OWNER, rows: [] })
    const left = await northbound.transact(
      'OVN_Northbound',
      ['Logical_Switch', 'Logical_Router', 'DHCP_Options', 'Logical_Switch_Port'].map((table) => ({
        op: 'select',
        table,
        where: [],
      })),
    )
    expect(left.map((answer) => answer.rows?.length)).toEqual([1, 0, 0, 0])
  },
)
