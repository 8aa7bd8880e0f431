/** Decides which frames may leave a guest with user-mode networking. Pure. QEMU opens a connection of the host for
 *  every connection of its guest, even to the host's own loopback. Without this filter a guest would reach whatever
 *  listens there. Unknown frames are dropped. */
import { isIPv4 } from 'node:net'

/** Addresses in the inner network besides the guest, from `user-mode.ts` and QEMU's defaults. */
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
  /** Starts with the header of the protocol. */
  readonly payload: Buffer
}

/** Returns whether the Ethernet frame may continue to QEMU. */
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
  // More fragments follow, or this is not the first one: the ports may be missing.
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
  // Excludes this host, its loopback, groups, and reserved addresses.
  return first !== 0 && first !== 127 && first < 224 && !isLocal(address)
}

function mayLeaveByIPv6(packet: Buffer, isLocal: IsLocal): boolean {
  if (packet.length < 40 || (packet[0] ?? 0) >> 4 !== 6) return false
  const address = packet.toString('hex', 24, 40)
  // After other extension headers, protocol and ports are not looked for, so such a packet matches no rule that needs
  // them.
  const inner: Packet = { protocol: packet[6] ?? 0, payload: packet.subarray(40) }
  if (address.startsWith('fec00000000000')) {
    if (address === INSIDE_HOST_6) return isAnswer(inner) || inner.protocol === ICMPV6
    return address === INSIDE_DNS_6 && (isDns(inner) || inner.protocol === ICMPV6)
  }
  if (/^fe[89ab]/.test(address)) return inner.protocol === ICMPV6
  if (address.startsWith('ff')) return inner.protocol === ICMPV6 || isTo(inner, UDP, PORTS.dhcpv6)
  // Loopback, unspecified, and IPv4-mapped addresses. Addresses with the translation prefix belong to other hosts.
  const isReserved = address.startsWith('00') && !address.startsWith('0064ff9b')
  return !isReserved && !isLocal(address)
}

const isTo = (packet: Packet | undefined, protocol: number, port: number): boolean =>
  packet?.protocol === protocol && packet.payload.length >= 8 && packet.payload.readUInt16BE(2) === port

const isDns = (packet: Packet | undefined): boolean => isTo(packet, UDP, PORTS.dns) || isTo(packet, TCP, PORTS.dns)

/** Whether the packet belongs to a connection that the host opened to the guest through a forwarded port. The first
 *  packet of a connection that the guest opens never matches. */
const isAnswer = (packet: Packet | undefined): boolean =>
  packet?.protocol === TCP && packet.payload.length >= 20 && ((packet.payload[13] ?? 0) & (SYN | ACK)) !== SYN

/** The address in the form that `mayLeave` compares: IPv4 in dots, IPv6 as 32 hex digits. */
export function comparable(address: string): string {
  if (isIPv4(address)) return address
  const [head = '', tail = ''] = (address.split('%')[0] ?? '').split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail)]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return [...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join('')
}
