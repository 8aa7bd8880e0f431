/** Private networks, routers, firewalls and floating IPs, by packets: for each what passes, and what must not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { linkLocalOf } from '../../../../controllers/network/ovn/names.ts'
import { networkRows } from '../../../../controllers/network/ovn/private-network.ts'
import { routerRows } from '../../../../controllers/network/ovn/router.ts'
import { type Firewall, NO_FIREWALL } from '../../../../domain/server/firewall.ts'
import { CENTRAL } from './ovn-world.ts'
import {
  type GuestName,
  GUESTS,
  ipv6Of,
  macOf,
  NAMES,
  NAT,
  networkFacts,
  openTenants,
  PATIENCE,
  PUBLIC,
  type Pulse,
  routerFacts,
  type Tenants,
  ZONE,
} from './tenants.ts'
import { PYTHON } from '../../../python.ts'

let tenants: Tenants

beforeAll(async () => {
  tenants = await openTenants()
})
afterAll(() => tenants?.close())

type Place = Parameters<Tenants['tell']>[0]
const PORT = 1000
/** What whoever answers at the address says: who it is, and whom it sees. */
const answers = (from: Place, address: string, port = PORT) => tenants.tell(from, 'connect', { address, port })
const reaches = (from: Place, address: string, port = PORT) =>
  expect.poll(() => answers(from, address, port), { ...PATIENCE, message: `${from} reaches ${address}` })
const never = async (from: Place, address: string, port = PORT) => {
  for (let time = 0; time < 2; time++) expect(await answers(from, address, port)).toBeNull()
}

const word = (value: number) => value.toString(16).padStart(4, '0')
const privately = (guest: 'a1' | 'a2' | 'b1') => ({
  kind: 'private' as const,
  routerId: guest === 'b1' ? 'b' : 'a',
  routerAddress: NAT[guest === 'b1' ? 'b' : 'a'],
  address: GUESTS[guest].ipv4,
})

describe('a private network', () => {
  test('joins guests of different hosts, by both protocols', async () => {
    await reaches('a1', '10.0.0.3').toBe('a2 sees 10.0.0.2')
    await reaches('a1', ipv6Of('a2')).toBe(`a2 sees ${ipv6Of('a1')}`)
    await reaches('a2', '10.0.0.2').toBe('a1 sees 10.0.0.3')
  })

  test('is its own: another tenant has the same range beside it', async () => {
    await reaches('b1', '10.0.0.3').toBe('b2 sees 10.0.0.2')
    await reaches('b1', ipv6Of('b2')).toBe(`b2 sees ${ipv6Of('b1')}`)
    await never('b1', GUESTS.a3.ipv4)
  })

  test('sends guests their addresses, names and routes', async () => {
    await expect
      .poll(() => tenants.tell('a1', 'lease', { mac: macOf('a1') }), PATIENCE)
      .toMatchObject({
        address: '10.0.0.2',
        6: 'c0000235', // 192.0.2.53, as its customer says
        26: '0578', // 1400
        15: Buffer.from('internal').toString('hex'),
      })
  })

  test('answers for the names of its guests, and of no others', async () => {
    const asks = (from: GuestName, name: string, kind = 1) =>
      expect.poll(() => tenants.tell(from, 'resolve', { server: '10.0.0.1', name, kind }), PATIENCE)
    await asks('a2', 'web-1').toEqual(['10.0.0.2'])
    await asks('a2', 'web-1.internal', 28).toEqual([ipv6Of('a1')])
    await asks('a1', 'a2.internal').toEqual(['10.0.0.3'])
    await asks('a1', 'b2').toBe('refused')
    // Whomever they ask: by the server that the customer names as well.
    await expect
      .poll(() => tenants.tell('a2', 'resolve', { server: '192.0.2.53', name: 'web-1' }), PATIENCE)
      .toEqual(['10.0.0.2'])
  })

  test('without a router answers for names just so, and refuses others at once', async () => {
    const { ovn } = tenants
    const without = { ...networkFacts('b'), router: undefined }
    await ovn.apply({ zone: ZONE, owner: 'Router/b', rows: [] })
    await ovn.apply({ zone: ZONE, owner: 'Network/b', rows: networkRows(without) })
    const asks = (name: string) =>
      expect.poll(() => tenants.tell('b2', 'resolve', { server: '10.0.0.1', name }), PATIENCE)
    await asks('web-1').toEqual(['10.0.0.2'])
    await asks('example.com').toBe('refused')
    expect(await tenants.tell('b2', 'advertisement')).toMatchObject({ prefixes: [{ prefix: 'fd00:a::/64' }] })
    // Names are answered anew before the flows of the router are removed.
    await reaches('b2', '198.51.100.1').toBeNull()
    await never('b2', '198.51.100.1')
    await ovn.apply({ zone: ZONE, owner: 'Network/b', rows: networkRows(networkFacts('b')) })
    await ovn.apply({ zone: ZONE, owner: 'Router/b', rows: routerRows(routerFacts('b')) })
    await reaches('b2', '198.51.100.1').toBe(`world sees ${NAT.b}`)
  })
})

describe('a router', () => {
  test('leads from one of its networks to the other, by both protocols, and to no other', async () => {
    await reaches('a1', GUESTS.a3.ipv4).toBe('a3 sees 10.0.0.2')
    await tenants.world.run('a1', 'ip', '-6', 'route', 'replace', 'fd00:c::/64', 'via', 'fd00:a::1')
    await tenants.world.run('a3', 'ip', '-6', 'route', 'replace', 'fd00:a::/64', 'via', 'fd00:c::1')
    await reaches('a1', ipv6Of('a3')).toBe(`a3 sees ${ipv6Of('a1')}`)
  })

  test('leads outside behind its own address, and nobody from there inside', async () => {
    await reaches('a1', '198.51.100.1').toBe(`world sees ${NAT.a}`)
    await reaches('a3', '198.51.100.1').toBe(`world sees ${NAT.a}`)
    await reaches('b2', '198.51.100.1').toBe(`world sees ${NAT.b}`)
    await tenants.world.run('world', 'ip', 'route', 'replace', '10.0.0.0/16', 'via', '198.51.100.2')
    await never('world', '10.0.0.3')
    await never('world', NAT.a)
  })
})

describe('a guest', () => {
  const hexOf = (address: string) =>
    address.includes(':')
      ? address
          .split('::')
          .map((half) =>
            half
              .split(':')
              .filter(Boolean)
              .map((word) => word.padStart(4, '0'))
              .join(''),
          )
          .reduce((start, end) => start + end.padStart(32 - start.length, '0'))
      : address
          .split('.')
          .map((byte) => Number(byte).toString(16).padStart(2, '0'))
          .join('')
  const mac = (text: string) => text.replaceAll(':', '')
  const FOREIGN = '52:54:00:00:00:77'
  const sum = (hex: string) => {
    let total = 0
    for (let at = 0; at < hex.length; at += 4) total += Number.parseInt(hex.slice(at, at + 4).padEnd(4, '0'), 16)
    while (total > 0xffff) total = (total & 0xffff) + (total >> 16)
    return (~total & 0xffff).toString(16).padStart(4, '0')
  }
  const udp = (mark: string, from = 5000) => `${word(from)}${word(5001)}${word(8 + mark.length / 2)}0000${mark}`
  const ipv4 = (from: string, to: string, body: string) => {
    const head = (check: string) => `4500${word(20 + body.length / 2)}000000004011${check}${hexOf(from)}${hexOf(to)}`
    return head(sum(head('0000'))) + body
  }
  const ipv6 = (from: string, to: string, body: string) => {
    const length = word(body.length / 2)
    const check = sum(`${hexOf(from)}${hexOf(to)}0000${length}00000011${body}`)
    return `60000000${length}1140${hexOf(from)}${hexOf(to)}${body.slice(0, 12)}${check}${body.slice(16)}`
  }
  /** A message of neighbour discovery with a link-layer address; the mark is a nonce (RFC 3971). */
  const discovery = (type: string, said: string, hardware: string, mark: string) => {
    const ends = `${hexOf(linkLocalOf(own))}${hexOf(linkLocalOf(other))}`
    const body = `${said}${type === NEIGHBOUR ? '02' : '01'}01${mac(hardware)}0e01${mark.slice(0, 12)}`
    const length = word(4 + body.length / 2)
    const check = sum(`${ends}0000${length}0000003a${type}000000${body}`)
    return to('86dd', `60000000${length}3aff${ends}${type}00${check}${body}`)
  }
  const [NEIGHBOUR, ROUTER] = ['88', '86'] as const
  const neighbour = (address: string, hardware: string, mark: string) =>
    discovery(NEIGHBOUR, `60000000${hexOf(address)}`, hardware, mark)
  const arp = (operation: number, who: string, address: string, mark: string) =>
    `000108000604000${operation}${mac(who)}${hexOf(address)}${mark.slice(0, 12)}${hexOf('10.0.0.3')}`
  const [own, other] = [macOf('a1'), macOf('a2')]
  const to = (type: string, body: string, from: string = own) => `${mac(other)}${mac(from)}${type}${body}`

  /** One that passes goes before and after each: what did not come was not lost. */
  const arrives = async (frame: (mark: string) => string): Promise<boolean> => {
    const marks = ['aa', 'bb', 'cc'].map(
      (start) =>
        start +
        Math.floor(Math.random() * 2 ** 40)
          .toString(16)
          .padStart(12, '0'),
    )
    const [before = '', mark = '', after = ''] = marks
    const legal = (text: string) => to('0800', ipv4('10.0.0.2', '10.0.0.3', udp(text)))
    for (const text of [legal(before), frame(mark), frame(mark), legal(after)])
      await tenants.tell('a1', 'frame', { text })
    let seen = ''
    await expect
      .poll(async () => (seen += String(await tenants.tell('a2', 'frames'))), { interval: 50 })
      .toContain(after)
    expect(seen).toContain(before)
    return seen.includes(mark.slice(0, 12))
  }

  test('reaches nothing of hosts, and no database, with any packet', async () => {
    const { run } = tenants.world
    const places = [
      [CENTRAL, 6642],
      ['192.0.2.1', PORT],
      ['192.0.2.2', PORT],
    ] as const
    const opened = async (from: string) =>
      JSON.parse(await run(from, PYTHON, '-c', CONNECT, ...places.flatMap((to) => to.map(String)))) as unknown
    const guests = ['a1', 'a3', 'p1'] as const
    const nothing = async () => {
      for (const each of await Promise.all(guests.map(opened))) expect(each).toEqual([false, false, false])
    }
    expect(await opened('fabric')).toEqual([true, true, true])
    await nothing()
    const everywhere = (...commands: readonly string[]) =>
      Promise.all(guests.map((guest) => run(guest, 'sh', '-ec', commands.join('\n'))))
    await everywhere('ip route replace 192.0.2.0/24 dev eth0 scope link')
    const links = ['br-phy', 'br-int'].map((name) => run('h1', 'cat', `/sys/class/net/${name}/address`))
    for (const link of [...(await Promise.all(links)), 'ff:ff:ff:ff:ff:ff']) {
      await everywhere(...places.map(([address]) => `ip neighbour replace ${address} lladdr ${link.trim()} dev eth0`))
      await nothing()
    }
    await everywhere('ip route delete 192.0.2.0/24 dev eth0')
  })

  test('cannot use the addresses of others, of hardware, IPv4, IPv6, link-local or in what asks for them', async () => {
    await tenants.tell('a2', 'hear')
    const passing = {
      ipv4: (mark: string) => to('0800', ipv4('10.0.0.2', '10.0.0.3', udp(mark))),
      ipv6: (mark: string) => to('86dd', ipv6(ipv6Of('a1'), ipv6Of('a2'), udp(mark))),
      'link-local': (mark: string) => to('86dd', ipv6(linkLocalOf(own), linkLocalOf(other), udp(mark))),
      arp: (mark: string) => to('0806', arp(2, own, '10.0.0.2', mark)),
      neighbour: (mark: string) => neighbour(ipv6Of('a1'), own, mark),
    }
    const dropped = {
      'the hardware address of nobody': (mark: string) => to('0800', ipv4('10.0.0.2', '10.0.0.3', udp(mark)), FOREIGN),
      'the hardware address of another': (mark: string) =>
        to('0800', ipv4('10.0.0.2', '10.0.0.3', udp(mark)), macOf('b1')),
      'the IPv4 address of another': (mark: string) => to('0800', ipv4('10.0.0.9', '10.0.0.3', udp(mark))),
      'the address of the router': (mark: string) => to('0800', ipv4('10.0.0.1', '10.0.0.3', udp(mark))),
      'an IPv6 address of nobody': (mark: string) => to('86dd', ipv6('fd00:a::9', ipv6Of('a2'), udp(mark))),
      'an IPv6 address outside the network': (mark: string) => to('86dd', ipv6('2001:db8::9', ipv6Of('a2'), udp(mark))),
      'a link-local address of nobody': (mark: string) => to('86dd', ipv6('fe80::9', linkLocalOf(other), udp(mark))),
      'the address of the router in ARP': (mark: string) => to('0806', arp(2, own, '10.0.0.1', mark)),
      'hardware of another in ARP': (mark: string) => to('0806', arp(2, FOREIGN, '10.0.0.2', mark)),
      'the address of another in neighbour discovery': (mark: string) => neighbour(ipv6Of('b2'), own, mark),
      'the address of the router in neighbour discovery': (mark: string) => neighbour('fd00:a::1', own, mark),
      'hardware of another in neighbour discovery': (mark: string) => neighbour(ipv6Of('a1'), FOREIGN, mark),
      "a router's advertisement": (mark: string) => discovery(ROUTER, '400007080000000000000000', own, mark),
      'a tag of a VLAN': (mark: string) => to('81000005', `0800${ipv4('10.0.0.2', '10.0.0.3', udp(mark))}`),
      'the port of a DHCP server': (mark: string) => to('0800', ipv4('10.0.0.2', '10.0.0.3', udp(mark, 67))),
      'the port of a DHCPv6 server': (mark: string) => to('86dd', ipv6(ipv6Of('a1'), ipv6Of('a2'), udp(mark, 547))),
    }
    for (const [what, frame] of Object.entries(passing)) expect(await arrives(frame), `${what} passes`).toBe(true)
    for (const [what, frame] of Object.entries(dropped)) expect(await arrives(frame), `${what} is dropped`).toBe(false)
  })
})

const OPEN: Firewall = { ...NO_FIREWALL, enabled: true, defaultInbound: 'accept' }
const CLOSED: Firewall = { ...NO_FIREWALL, enabled: true }
const rule = (changes: Partial<Firewall['rules'][number]>): Firewall['rules'][number] => ({
  direction: 'in',
  action: 'accept',
  family: 'any',
  protocol: 'any',
  remoteCidrs: [],
  comment: '',
  ...changes,
})

describe('a firewall', () => {
  test('lets pass what its rules say, by both protocols, and what the server asked for', async () => {
    await tenants.firewall('a1', {
      ...CLOSED,
      rules: [rule({ protocol: 'tcp', portStart: 1000, portEnd: 1000 })],
    })
    await reaches('a2', '10.0.0.2').toBe('a1 sees 10.0.0.3')
    await reaches('a2', ipv6Of('a1')).toBe(`a1 sees ${ipv6Of('a2')}`)
    await never('a2', '10.0.0.2', 2000)
    await never('a2', ipv6Of('a1'), 2000)
    await reaches('a1', '10.0.0.3', 2000).toBe('a2 sees 10.0.0.2')
    await tenants.world.run('a2', 'ip', 'neighbour', 'flush', 'all')
    await reaches('a2', '10.0.0.2').toBe('a1 sees 10.0.0.3')
  })

  test('of the first rule that fits', async () => {
    const port = { protocol: 'tcp', portStart: 1000, portEnd: 1000 } as const
    await tenants.firewall('a1', {
      ...CLOSED,
      rules: [rule({ ...port, action: 'drop', remoteCidrs: ['10.0.0.3/32'] }), rule(port)],
    })
    await never('a2', '10.0.0.2')
    await reaches('a3', '10.0.0.2').toBe('a1 sees 10.0.1.2')
  })

  test('keeps what a server cannot do without: addresses, names, neighbours', async () => {
    await tenants.firewall('a1', { ...CLOSED, defaultOutbound: 'drop' })
    await tenants.world.run('a1', 'ip', 'neighbour', 'flush', 'all')
    expect(await tenants.tell('a1', 'lease', { mac: macOf('a1') })).toMatchObject({ address: '10.0.0.2' })
    expect(await answers('a1', '10.0.0.3')).toBeNull()
    await tenants.firewall('a1', { ...CLOSED, defaultOutbound: 'accept' })
    await reaches('a1', '10.0.0.3').toBe('a2 sees 10.0.0.2')
  })

  test('lets no answer pass that nobody has asked for, as those of names seem to be', async () => {
    await tenants.firewall('a1', CLOSED)
    await tenants.tell('a1', 'hear')
    const ADDRESS = '203.0.113.141'
    await tenants.float('names', ADDRESS, privately('a1'))
    const sends = async (source: number): Promise<readonly boolean[]> => {
      const flow = { protocol: 'udp', port: 2000, source, size: 12 }
      for (const [from, address] of [
        ['a2', '10.0.0.2'],
        ['world', ADDRESS],
      ] as const) {
        await tenants.tell(from, 'flow', { ...flow, address })
        await tenants.tell(from, 'flow', { ...flow, address })
      }
      await answers('a2', '10.0.0.2') // time enough
      const seen = String(await tenants.tell('a1', 'frames'))
      return ['0a000003', 'c6336401'].map((address) => seen.includes(`${address}0a000002${word(source)}07d0`))
    }
    expect(await sends(53)).toEqual([false, false])
    await tenants.firewall('a1', OPEN)
    await expect.poll(() => sends(54), PATIENCE).toEqual([true, true])
    await tenants.float('names', ADDRESS, undefined)
  })

  test('applies to open connections: those that it forbids end, and others continue', async () => {
    await tenants.firewall('a1', OPEN)
    for (const [name, port] of [
      ['kept', 1000],
      ['ended', 2000],
    ] as const)
      expect(await tenants.tell('a2', 'hold', { name, address: '10.0.0.2', port })).toContain('a1 sees')
    const says = (name: string) => tenants.tell('a2', 'say', { name, text: `${name} says` })
    expect([await says('kept'), await says('ended')]).toEqual([true, true])
    await tenants.firewall('a1', { ...CLOSED, rules: [rule({ protocol: 'tcp', portStart: 1000 })] })
    expect([await says('kept'), await says('ended')]).toEqual([true, null])
    await tenants.firewall('a1', OPEN)
    expect(await says('kept')).toBe(true)
  })

  test('ends what was open before it was switched on, though the server is the first to say more', async () => {
    await tenants.firewalls(NAMES.map((guest) => [guest, NO_FIREWALL] as const))
    await tenants.tell('a1', 'drip', { name: 'told', port: 3001 })
    await tenants.tell('a2', 'stream', { name: 'heard', address: '10.0.0.2', port: 3001, pause: 3600, isSilent: true })
    const heard = async () => (await tenants.tell('a2', 'pulse', { name: 'heard' })) as Pulse // as wire.py answers
    await expect.poll(async () => (await heard()).count, PATIENCE).toBeGreaterThan(20)
    await tenants.firewall('a1', CLOSED)
    await expect.poll(async () => (await heard()).silent, PATIENCE).toBeGreaterThan(3)
  })

  test('has no rules when it is off', async () => {
    await tenants.firewall('a1', CLOSED)
    await never('a2', '10.0.0.2')
    await tenants.firewall('a1', NO_FIREWALL)
    await reaches('a2', '10.0.0.2').toBe('a1 sees 10.0.0.3')
  })
})

describe('a floating IP', () => {
  const ADDRESS = '203.0.113.140'
  test('points to an interface, which the outside sees by it', async () => {
    await never('world', ADDRESS)
    await tenants.float('f', ADDRESS, privately('a1'))
    await reaches('world', ADDRESS).toBe('a1 sees 198.51.100.1')
    await reaches('a1', '198.51.100.1').toBe(`world sees ${ADDRESS}`)
    await reaches('a2', '198.51.100.1').toBe(`world sees ${NAT.a}`)
    await reaches('b1', ADDRESS).toBe(`a1 sees ${NAT.b}`)
    await reaches('p1', ADDRESS).toBe(`a1 sees ${PUBLIC.ipv4}`)
  })

  test('moves to another server, of another tenant too, and leaves the one before', async () => {
    await tenants.float('f', ADDRESS, privately('a2'))
    await reaches('world', ADDRESS).toBe('a2 sees 198.51.100.1')
    await reaches('a1', '198.51.100.1').toBe(`world sees ${NAT.a}`)
    await tenants.float('f', ADDRESS, privately('b1'))
    await reaches('world', ADDRESS).toBe('b1 sees 198.51.100.1')
  })

  test("points to a server's public address, which it keeps", async () => {
    await reaches('world', PUBLIC.ipv4).toBe('p1 sees 198.51.100.1')
    await tenants.float('f', ADDRESS, { kind: 'public', serverAddress: PUBLIC.ipv4, nextHop: '198.51.100.1' })
    await reaches('world', ADDRESS).toBe('p1 sees 198.51.100.1')
    await reaches('p1', '198.51.100.1').toBe(`world sees ${PUBLIC.ipv4}`)
  })

  test('is reached from inside the zone as well: by servers behind routers, and by its own', async () => {
    const ROUTER = '198.51.100.2'
    for (const place of ['a1', 'b2', 'p1'] as const) await reaches(place, ADDRESS).toBe(`p1 sees ${ROUTER}`)
    await reaches('a1', PUBLIC.ipv4).toBe(`p1 sees ${NAT.a}`)
    await reaches('p1', '198.51.100.1').toBe(`world sees ${PUBLIC.ipv4}`)
  })

  test('is under the firewall of its target', async () => {
    await tenants.float('f', ADDRESS, privately('a1'))
    await reaches('world', ADDRESS).toBe('a1 sees 198.51.100.1')
    await tenants.firewall('a1', {
      ...CLOSED,
      rules: [rule({ remoteCidrs: ['198.51.100.0/24'], portStart: 1000, protocol: 'tcp' })],
    })
    await reaches('world', ADDRESS).toBe('a1 sees 198.51.100.1')
    await never('world', ADDRESS, 2000)
    await tenants.firewall('a1', NO_FIREWALL)
  })

  test('reaches nothing when it is unassigned', async () => {
    await tenants.float('f', ADDRESS, undefined)
    await never('world', ADDRESS)
    await never('a1', ADDRESS)
    await reaches('world', PUBLIC.ipv4).toBe('p1 sees 198.51.100.1')
  })
})

/** Which of the pairs of address and port, one after the other, take a connection. */
const CONNECT = `import json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def connects(address, port):
    try:
        socket.create_connection((address, int(port)), 1).close()
        return True
    except OSError:
        return False
with ThreadPoolExecutor() as pool:
    print(json.dumps(list(pool.map(connects, sys.argv[1::2], sys.argv[2::2]))))`
