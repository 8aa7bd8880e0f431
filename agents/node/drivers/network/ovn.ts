/** The network of hosts that Open Virtual Network reaches: each interface of a guest is a tap in the integration
 *  bridge, under the name of its
 *  Instance. Which addresses it has, and who reaches it, OVN says; the host only plugs it in. Needs root. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { hasProgram, runProgram } from '../../run-program.ts'
import type { Traffic } from './traffic-log.ts'
import type { UserModeNetwork } from './user-mode.ts'

export interface OvnNetwork {
  readonly kind: 'ovn'
}

/** What joins a guest to others. */
export type GuestNetwork = OvnNetwork | UserModeNetwork
export const isOvn = (network: GuestNetwork): network is OvnNetwork => 'kind' in network

export const INTEGRATION_BRIDGE = 'br-int'
/** Names of interfaces have 15 bytes. */
const NAME_HEX = 11
/** Encapsulation takes its part of what the wire carries. */
export const OVN_MTU = 1_400

/** Name of the tap device, which Linux allows 15 characters. */
export const tapOf = (guest: string, index: number): string =>
  `svc${createHash('sha256').update(`${guest}/${index}`).digest('hex').slice(0, NAME_HEX)}`

/** `-netdev` and what the device leaves to the guest: the userspace datapath fills in no checksums. */
export const ovnArguments = (guest: string, index: number): string[] => [
  '-netdev',
  `tap,id=net${index},ifname=${tapOf(guest, index)},script=no,downscript=no`,
]
export const OVN_DEVICE = {
  csum: false,
  guest_csum: false,
  gso: false,
  guest_tso4: false,
  guest_tso6: false,
  guest_ufo: false,
  host_mtu: OVN_MTU,
} as const

const PROGRAMS = ['ovs-vsctl', 'ip', 'ethtool', 'unshare'] as const

/** Throws with the name of what is missing on the host. */
export async function mustHaveOvnPrograms(): Promise<void> {
  for (const program of PROGRAMS) if (!(await hasProgram(program))) throw new Error(`${program} is not installed`)
}

/** Plugs the guest in. Free when it is. */
export async function plugIn(guest: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const tap = tapOf(guest, index)
    if (!(await hasTap(tap))) await runProgram('ip', ['tuntap', 'add', tap, 'mode', 'tap'])
    await runProgram('ip', ['link', 'set', tap, 'mtu', String(OVN_MTU), 'up'])
    await runProgram('ovs-vsctl', [
      '--may-exist',
      'add-port',
      INTEGRATION_BRIDGE,
      tap,
      '--',
      'set',
      'interface',
      tap,
      `external_ids:iface-id=${guest}`,
    ])
  }
}

/** Takes the guest out. Free when it is. */
export async function unplug(guest: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const tap = tapOf(guest, index)
    await runProgram('ovs-vsctl', ['--if-exists', 'del-port', INTEGRATION_BRIDGE, tap])
    if (await hasTap(tap)) await runProgram('ip', ['link', 'delete', tap])
  }
}

const statistic = async (tap: string, name: string): Promise<number | undefined> => {
  const text = await readFile(`/sys/class/net/${tap}/statistics/${name}`, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : Number(text)
}
const hasTap = async (tap: string): Promise<boolean> => (await statistic(tap, 'rx_bytes')) !== undefined

/** What the guest has moved since it was plugged in: what the host sends into a tap is what the guest receives. */
export async function tapTraffic(guest: string, index: number): Promise<Traffic> {
  const [received, transmitted] = await Promise.all(
    ['tx_bytes', 'rx_bytes'].map((name) => statistic(tapOf(guest, index), name)),
  )
  return { receivedBytes: received ?? 0, transmittedBytes: transmitted ?? 0 }
}
