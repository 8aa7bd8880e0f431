/** The network of hosts in an Open Virtual Network. Each interface of a guest is a tap that is joined to the
 *  integration bridge under the name of its port. OVN decides its addresses and who reaches it. The host only plugs it
 *  in, behind a guard (`ovn-guard.ts`). Needs root, or separate namespaces for the agent. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isRoot } from '../../../../kit/sys/process.ts'
import { hasProgram } from '../../run-program.ts'
import { runInside } from './namespace.ts'
import { joinGuarded, leaveGuarded } from './ovn-guard.ts'
import type { Traffic } from './traffic-log.ts'
import type { UserModeNetwork } from './user-mode.ts'

export interface OvnNetwork {
  readonly kind: 'ovn'
  /** Folder of the namespaces of guests and their interfaces; the agent's own when absent. */
  readonly namespace?: string | undefined
}

/** An interface as the host plugs it in. */
export interface PluggedInterface {
  /** Number of the interface in the guest, from 0. */
  readonly index: number
  readonly portName: string
}

/** How a guest is connected to others. */
export type GuestNetwork = OvnNetwork | UserModeNetwork
export const isOvn = (network: GuestNetwork): network is OvnNetwork => 'kind' in network

/** Names of interfaces have at most 15 bytes. */
const NAME_HEX = 11
/** Smaller than the MTU of the wire, because encapsulation needs space. */
export const OVN_MTU = 1_400

/** Name of the tap device, which Linux allows 15 characters. */
export const tapOf = (guest: string, index: number): string =>
  `svc${createHash('sha256').update(`${guest}/${index}`).digest('hex').slice(0, NAME_HEX)}`

/** The network backend, for the command line and QMP, and the offloads of the device. The userspace datapath computes
 *  no checksums, so the guest must. */
export const ovnBackend = (guest: string, index: number) => ({
  type: 'tap',
  id: `net${index}`,
  ifname: tapOf(guest, index),
  script: 'no',
  downscript: 'no',
})
export const OVN_DEVICE = {
  csum: false,
  guest_csum: false,
  gso: false,
  guest_tso4: false,
  guest_tso6: false,
  guest_ufo: false,
  host_mtu: OVN_MTU,
} as const

const PROGRAMS = ['ovs-vsctl', 'ovs-ofctl', 'ovs-appctl', 'ip', 'ethtool', 'unshare'] as const

/** Throws with the name of a program that is missing on the host. */
export async function mustHaveOvnPrograms(): Promise<void> {
  for (const program of PROGRAMS) if (!(await hasProgram(program))) throw new Error(`${program} is not installed`)
}

/** Connects the guest's interfaces for a process of this user, or of the agent's user when absent. Does nothing when
 *  they are connected. */
export async function plugIn(
  network: OvnNetwork,
  guest: string,
  interfaces: readonly PluggedInterface[],
  user?: number,
): Promise<void> {
  const run = runInside(network.namespace)
  for (const { index, portName } of interfaces) {
    const tap = tapOf(guest, index)
    if (!(await hasTap(network, tap))) await run('ip', ['tuntap', 'add', tap, 'mode', 'tap', ...ownerOf(user)])
    await run('ip', ['link', 'set', tap, 'mtu', String(OVN_MTU), 'up'])
    await joinGuarded(tap, portName)
  }
}

/** Disconnects the interface in both directions; the guest still has it. */
export const cutOff = (guest: string, index: number): Promise<void> => leaveGuarded(tapOf(guest, index))

/** An ordinary user is user 0 in its user namespace. */
const ownerOf = (user: number | undefined): string[] =>
  user === undefined && isRoot() ? [] : ['user', String(user ?? 0)]

/** Removes the guest's interfaces. Does nothing when they are removed. */
export async function unplug(network: OvnNetwork, guest: string, indexes: readonly number[]): Promise<void> {
  for (const index of indexes) {
    const tap = tapOf(guest, index)
    await leaveGuarded(tap)
    if (await hasTap(network, tap)) await runInside(network.namespace)('ip', ['link', 'delete', tap])
  }
}

const DEVICES_FILE = '/proc/self/net/dev'
/** Columns of the file after the name: bytes received by the host are in the first, sent bytes in the ninth. */
const TRANSMITTED_COLUMN = 8

/** Bytes that the host has received from the tap and sent to it; undefined when the tap does not exist. */
async function bytesOf({ namespace }: OvnNetwork, tap: string): Promise<readonly [number, number] | undefined> {
  const text = await (namespace === undefined
    ? readFile(DEVICES_FILE, 'utf8')
    : runInside(namespace)('cat', [DEVICES_FILE]))
  const line = text.split('\n').find((each) => each.trimStart().startsWith(`${tap}:`))
  const columns = line?.split(':')[1]?.trim().split(/\s+/).map(Number)
  return columns && [columns[0] ?? 0, columns[TRANSMITTED_COLUMN] ?? 0]
}
const hasTap = async (network: OvnNetwork, tap: string): Promise<boolean> => (await bytesOf(network, tap)) !== undefined

/** Bytes of the interface since it was plugged in. The guest receives what the host sends to the tap. */
export async function tapTraffic(network: OvnNetwork, guest: string, index: number): Promise<Traffic> {
  const [transmittedBytes = 0, receivedBytes = 0] = (await bytesOf(network, tapOf(guest, index))) ?? []
  return { receivedBytes, transmittedBytes }
}
