/** The network of hosts that Open Virtual Network reaches: each interface of a guest is a tap that is joined to the
 *  integration bridge under the name of its port. Which addresses it has, and who reaches it, OVN says; the host
 *  only plugs it in, behind a guard (`ovn-guard.ts`). Needs root, or namespaces of the agent's own. */
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
  /** Folder of the namespaces that guests and their interfaces are in; the agent's own when absent. */
  readonly namespace?: string | undefined
}

/** An interface as the host plugs it in. */
export interface PluggedInterface {
  /** Of the guest, from 0. */
  readonly index: number
  readonly portName: string
}

/** What joins a guest to others. */
export type GuestNetwork = OvnNetwork | UserModeNetwork
export const isOvn = (network: GuestNetwork): network is OvnNetwork => 'kind' in network

/** Names of interfaces have 15 bytes. */
const NAME_HEX = 11
/** Encapsulation takes its part of what the wire carries. */
export const OVN_MTU = 1_400

/** Name of the tap device, which Linux allows 15 characters. */
export const tapOf = (guest: string, index: number): string =>
  `svc${createHash('sha256').update(`${guest}/${index}`).digest('hex').slice(0, NAME_HEX)}`

/** The network backend, as command line and QMP take it, and what the device leaves to the guest: the userspace
 *  datapath fills in no checksums. */
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

/** Throws with the name of what is missing on the host. */
export async function mustHaveOvnPrograms(): Promise<void> {
  for (const program of PROGRAMS) if (!(await hasProgram(program))) throw new Error(`${program} is not installed`)
}

/** Plugs the guest in, whose process runs as the user; as the agent's when absent. Free when it is. */
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

/** Nothing leads to the interface any more, and from it nowhere; the guest still has it. */
export const cutOff = (guest: string, index: number): Promise<void> => leaveGuarded(tapOf(guest, index))

/** In its user namespace an ordinary user is 0. */
const ownerOf = (user: number | undefined): string[] =>
  user === undefined && isRoot() ? [] : ['user', String(user ?? 0)]

/** Takes the guest out. Free when it is. */
export async function unplug(network: OvnNetwork, guest: string, indexes: readonly number[]): Promise<void> {
  for (const index of indexes) {
    const tap = tapOf(guest, index)
    await leaveGuarded(tap)
    if (await hasTap(network, tap)) await runInside(network.namespace)('ip', ['link', 'delete', tap])
  }
}

const DEVICES_FILE = '/proc/self/net/dev'
/** Columns of the file after the name: bytes received by the host are the first, sent ones the ninth. */
const TRANSMITTED_COLUMN = 8

/** What the host has received from the tap and sent into it; undefined when there is none. */
async function bytesOf({ namespace }: OvnNetwork, tap: string): Promise<readonly [number, number] | undefined> {
  const text = await (namespace === undefined
    ? readFile(DEVICES_FILE, 'utf8')
    : runInside(namespace)('cat', [DEVICES_FILE]))
  const line = text.split('\n').find((each) => each.trimStart().startsWith(`${tap}:`))
  const columns = line?.split(':')[1]?.trim().split(/\s+/).map(Number)
  return columns && [columns[0] ?? 0, columns[TRANSMITTED_COLUMN] ?? 0]
}
const hasTap = async (network: OvnNetwork, tap: string): Promise<boolean> => (await bytesOf(network, tap)) !== undefined

/** What the guest has moved since it was plugged in: what the host sends into a tap is what the guest receives. */
export async function tapTraffic(network: OvnNetwork, guest: string, index: number): Promise<Traffic> {
  const [transmittedBytes = 0, receivedBytes = 0] = (await bytesOf(network, tapOf(guest, index))) ?? []
  return { receivedBytes, transmittedBytes }
}
