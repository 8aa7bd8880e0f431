/** Which frames of a guest with user-mode networking may leave it: pure. QEMU opens a connection of the host for every
 *  one of its guest, also to the host's own loopback: without this a guest would reach whatever listens there. What is
 *  not known is dropped. */
import { isIPv4 } from 'node:net'

/** What the network inside has beside its guest, as `user-mode.ts` and QEMU's defaults have it. */
export const INSIDE_HOST = '169.254.0.2'
export const INSIDE_DNS = '169.254.0.3'
const INSIDE_HOST_6 = 'fec00000000000000000000000000002'
const INSIDE_DNS_6 = 'fec00000000000000000000000000003'
const METADATA = '169.254.169.254'

const ARP = 0x0806
const IPV4 = 0x0800
const IPV6 = 0x86dd
const TCP = 6
const UDP = 17
const ICMP = 1
const ICMPV6 = 58
const PORTS = { dns: 53, dhcp: 67, http: 80, dhcpv6: 547 } as const
const SYN = 0x02
const ACK = 0x10

/** Addresses of this machine, as `localAddresses` of `local-addresses.ts` writes them. */
export type IsLocal = (address: string) => boolean

interface Packet {
  readonly protocol: number
  /** Begins with the header of the protocol. */
  readonly payload: Buffer
}

/** Whether the Ethernet frame may go on to QEMU. */
export function mayLeave(frame: Buffer, isLocal: IsLocal): boolean {
  if (frame.length < 14) return false
  const type = frame.readUInt16BE(12)
  if (type === ARP) return true
  const packet = frame.subarray(14)
  return type === IPV4 ? mayLeaveByIPv4(packet, isLocal) : type === IPV6 && mayLeaveByIPv6(packet, isLocal)
}

function mayLeaveByIPv4(packet: Buffer, isLocal: IsLocal): boolean {
  const headerBytes = ((packet[0] ?? 0) & 0x0f) * 4
  if (packet.length < 20 || (packet[0] ?? 0) >> 4 !== 4 || headerBytes < 20 || packet.length < headerBytes) return false
  const [first = 0, second = 0] = packet.subarray(16)
  const address = packet.subarray(16, 20).join('.')
  // More fragments, or not the first: whose ports are not all here.
  const isFragment = (packet.readUInt16BE(6) & 0x3fff) !== 0
  const whole: Packet | undefined = isFragment
    ? undefined
    : { protocol: packet[9] ?? 0, payload: packet.subarray(headerBytes) }
  if (address === '255.255.255.255') return isTo(whole, UDP, PORTS.dhcp)
  if (first === 169 && second === 254) {
    if (address === INSIDE_HOST) return isAnswer(whole) || isTo(whole, UDP, PORTS.dhcp) || whole?.protocol === ICMP
    if (address === INSIDE_DNS) return isDns(whole) || whole?.protocol === ICMP
    return address === METADATA && isTo(whole, TCP, PORTS.http)
  }
  // This host, its loopback, groups, and what has no meaning.
  return first !== 0 && first !== 127 && first < 224 && !isLocal(address)
}

function mayLeaveByIPv6(packet: Buffer, isLocal: IsLocal): boolean {
  if (packet.length < 40 || (packet[0] ?? 0) >> 4 !== 6) return false
  const address = packet.toString('hex', 24, 40)
  // Behind other headers neither protocol nor ports are looked for: nothing of them is believed.
  const inner: Packet = { protocol: packet[6] ?? 0, payload: packet.subarray(40) }
  if (address.startsWith('fec00000000000')) {
    if (address === INSIDE_HOST_6) return isAnswer(inner) || inner.protocol === ICMPV6
    return address === INSIDE_DNS_6 && (isDns(inner) || inner.protocol === ICMPV6)
  }
  if (/^fe[89ab]/.test(address)) return inner.protocol === ICMPV6
  if (address.startsWith('ff')) return inner.protocol === ICMPV6 || isTo(inner, UDP, PORTS.dhcpv6)
  // Loopback, none, and IPv4 in the form of IPv6; the translated prefix leads to others.
  const isReserved = address.startsWith('00') && !address.startsWith('0064ff9b')
  return !isReserved && !isLocal(address)
}

const isTo = (packet: Packet | undefined, protocol: number, port: number): boolean =>
  packet?.protocol === protocol && packet.payload.length >= 8 && packet.payload.readUInt16BE(2) === port

const isDns = (packet: Packet | undefined): boolean => isTo(packet, UDP, PORTS.dns) || isTo(packet, TCP, PORTS.dns)

/** Of a connection that the host has opened to the guest, by a port that is forwarded: never the first of one that the
 *  guest opens. */
const isAnswer = (packet: Packet | undefined): boolean =>
  packet?.protocol === TCP && packet.payload.length >= 20 && ((packet.payload[13] ?? 0) & (SYN | ACK)) !== SYN

/** The address as `mayLeave` compares it: IPv4 in dots, IPv6 as 32 hex digits. */
export function comparable(address: string): string {
  if (isIPv4(address)) return address
  const [head = '', tail = ''] = (address.split('%')[0] ?? '').split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join('')
}
