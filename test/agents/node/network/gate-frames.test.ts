import { describe, expect, test } from 'vitest'
import { comparable, mayLeave } from '../../../../agents/node/drivers/network/gate/frames.ts'

const OWN = new Set(['192.0.2.7', comparable('2001:db8::7')])
const isLocal = (address: string) => OWN.has(address)
const ETHERNET = Buffer.alloc(12)
const SYN = 0x02
const ACK = 0x10

const ports = (destination: number) => {
  const payload = Buffer.alloc(20)
  payload.writeUInt16BE(40_000, 0)
  payload.writeUInt16BE(destination, 2)
  return payload
}
const tcp = (destination: number, flags = SYN) => {
  const payload = ports(destination)
  payload[13] = flags
  return { protocol: 6, payload }
}
const udp = (destination: number) => ({ protocol: 17, payload: ports(destination) })
const ping = { protocol: 1, payload: Buffer.from([8, 0, 0, 0, 0, 0, 0, 0]) }
type Inner = typeof ping

function byIPv4(to: string, { protocol, payload }: Inner, { fragment = 0, options = 0 } = {}): Buffer {
  const header = Buffer.alloc(20 + options)
  header[0] = 0x40 | (header.length / 4)
  header[9] = protocol
  header.writeUInt16BE(fragment, 6)
  Buffer.from(to.split('.').map(Number)).copy(header, 16)
  return Buffer.concat([ETHERNET, Buffer.from([0x08, 0x00]), header, payload])
}
function byIPv6(to: string, { protocol, payload }: Inner): Buffer {
  const header = Buffer.alloc(40)
  header[0] = 0x60
  header[6] = protocol
  Buffer.from(comparable(to), 'hex').copy(header, 24)
  return Buffer.concat([ETHERNET, Buffer.from([0x86, 0xdd]), header, payload])
}

const MORE_FRAGMENTS = 0x2000
const pingV6 = { ...ping, protocol: 58 }

describe('a guest may send', () => {
  test.each<readonly [string, Buffer]>([
    ['what it asks of who has an address', Buffer.concat([ETHERNET, Buffer.from([0x08, 0x06]), Buffer.alloc(28)])],
    ['to others', byIPv4('198.51.100.1', tcp(443))],
    ['to others in fragments', byIPv4('198.51.100.1', udp(9), { fragment: MORE_FRAGMENTS })],
    ['to others on its network', byIPv4('192.0.2.8', tcp(22))],
    ['for an address', byIPv4('255.255.255.255', udp(67))],
    ['for its address again', byIPv4('169.254.0.2', udp(67))],
    ['for names', byIPv4('169.254.0.3', udp(53))],
    ['for names, by a stream', byIPv4('169.254.0.3', tcp(53))],
    ['to the metadata service', byIPv4('169.254.169.254', tcp(80))],
    ['an answer to who has connected to a forwarded port', byIPv4('169.254.0.2', tcp(40_000, SYN | ACK))],
    ['more of such an answer', byIPv4('169.254.0.2', tcp(40_000, ACK))],
    ['pings', byIPv4('169.254.0.2', ping)],
    ['to others by IPv6', byIPv6('2001:db8::8', tcp(443))],
    ['to others that have IPv4 only', byIPv6('64:ff9b::c633:6401', tcp(443))],
    ['for names by IPv6', byIPv6('fec0::3', udp(53))],
    ['for routers', byIPv6('ff02::2', pingV6)],
    ['for its neighbours', byIPv6('fe80::2', pingV6)],
  ])('%s', (_what, frame) => expect(mayLeave(frame, isLocal)).toBe(true))
})

describe('a guest may not send', () => {
  test.each<readonly [string, Buffer]>([
    ['to the loopback of the host, as QEMU calls it', byIPv4('169.254.0.2', tcp(5432))],
    ['there with other flags beside the first', byIPv4('169.254.0.2', tcp(5432, SYN | 0x08 | 0x20))],
    ['there behind options', byIPv4('169.254.0.2', tcp(5432), { options: 12 })],
    ['there in fragments', byIPv4('169.254.0.2', tcp(5432, ACK), { fragment: MORE_FRAGMENTS })],
    ['the rest of a fragment', byIPv4('169.254.0.2', tcp(5432, ACK), { fragment: 1 })],
    ['datagrams there', byIPv4('169.254.0.2', udp(9))],
    ['to another address of that network, which QEMU takes for the same', byIPv4('169.254.77.1', tcp(5432))],
    ['to another port of the name server', byIPv4('169.254.0.3', tcp(5432))],
    ['to another port of the metadata service', byIPv4('169.254.169.254', tcp(5432))],
    ['datagrams to the metadata service', byIPv4('169.254.169.254', udp(80))],
    ['to the loopback of the host by its own name', byIPv4('127.0.0.1', tcp(5432))],
    ['to any of it', byIPv4('127.8.9.10', udp(9))],
    ['to no address, which Linux takes for the loopback', byIPv4('0.0.0.0', tcp(5432))],
    ['to an address of the host', byIPv4('192.0.2.7', tcp(22))],
    ['to groups', byIPv4('224.0.0.251', udp(5353))],
    ['to everybody, but for an address', byIPv4('255.255.255.255', udp(9))],
    ['to the loopback of the host by IPv6, as QEMU calls it', byIPv6('fec0::2', tcp(5432))],
    ['to another address of that network by IPv6', byIPv6('fec0::99', tcp(5432))],
    ['there behind another header', byIPv6('fec0::2', { protocol: 60, payload: ports(5432) })],
    ['to the loopback by IPv6', byIPv6('::1', tcp(5432))],
    ['to no address by IPv6', byIPv6('::', tcp(5432))],
    ['to the loopback as IPv6 writes IPv4', byIPv6('::ffff:7f00:1', tcp(5432))],
    ['to an address of the host by IPv6', byIPv6('2001:db8::7', tcp(22))],
    ['connections to link-local addresses', byIPv6('fe80::2', tcp(22))],
    ['datagrams to groups by IPv6', byIPv6('ff02::fb', udp(5353))],
    ['what is too short to be read', byIPv4('198.51.100.1', tcp(443)).subarray(0, 30)],
    ['IPv6 that is too short', byIPv6('2001:db8::8', tcp(443)).subarray(0, 50)],
    ['nothing', Buffer.alloc(0)],
    ['what calls itself IPv4 and is not', Buffer.concat([ETHERNET, Buffer.from([0x08, 0x00]), Buffer.alloc(60)])],
    ['frames of another kind', Buffer.concat([ETHERNET, Buffer.from([0x88, 0xf8]), Buffer.alloc(60)])],
    ['frames with a tag', Buffer.concat([ETHERNET, Buffer.from([0x81, 0x00, 0, 1, 0x08, 0]), Buffer.alloc(60)])],
  ])('%s', (_what, frame) => expect(mayLeave(frame, isLocal)).toBe(false))
})

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '00000000000000000000000000000001'],
  ['fe80::1%eth0', 'fe800000000000000000000000000001'],
  ['2001:db8::7', '20010db8000000000000000000000007'],
  ['1:2:3:4:5:6:7:8', '00010002000300040005000600070008'],
])('%s is compared as %s', (address, text) => expect(comparable(address)).toBe(text))
