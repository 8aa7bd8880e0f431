/** The guard between guests and the integration bridge: a separate bridge of the host that drops what guests must not
 *  send. OVN passes router advertisements and redirects of anybody before it evaluates any rule, so one guest could
 *  become the router of all others. Separate flows join each guest's device to its own port of the integration bridge,
 *  so that guests meet only there. Open vSwitch loses the flows when it restarts. Guests are then cut off until
 *  `keepGuard` has written the flows again. Needs root. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { ProgramFailed, runProgram } from '../../run-program.ts'

export const INTEGRATION_BRIDGE = 'br-int'
const GUARD_BRIDGE = 'svcguard'
/** Names of interfaces have at most 15 bytes. */
const NAME_HEX = 11

/** The two ends of the patch from the guard to the integration bridge. */
const endsOf = (device: string) => {
  const mark = createHash('sha256').update(device).digest('hex').slice(0, NAME_HEX)
  return { inner: `svp${mark}`, outer: `svq${mark}` }
}

/** A guest must not be a router (RFC 4861: advertisement 134, redirect 137) or a DHCP server. Neighbour discovery uses
 *  a hop limit of 255 and never fragments (RFC 6980). */
const FORBIDDEN = [
  'icmp6,icmp_type=134',
  'icmp6,icmp_type=137',
  'icmp6,nw_ttl=255,nw_frag=yes',
  'udp,tp_src=67',
  'udp6,tp_src=547',
] as const

const flowsOf = (device: string, inner: string): readonly string[] => [
  ...FORBIDDEN.map((match) => `priority=200,in_port=${device},${match},actions=drop`),
  `priority=100,in_port=${device},actions=output:${inner}`,
  `priority=100,in_port=${inner},actions=output:${device}`,
]

const vsctl = (...words: readonly string[]) => runProgram('ovs-vsctl', words)
const ofctl = (...words: readonly string[]) => runProgram('ovs-ofctl', words)

/** Joins the host's device to the OVN port. Does nothing when it is joined. Removes the device from the integration
 *  bridge if it is there. */
export async function joinGuarded(device: string, logicalPort: string): Promise<void> {
  const { inner, outer } = endsOf(device)
  const datapath = (await vsctl('get', 'bridge', INTEGRATION_BRIDGE, 'datapath_type')).trim()
  const patch = (name: string, peer: string) => ['set', 'interface', name, 'type=patch', `options:peer=${peer}`]
  await vsctl(
    '--may-exist',
    'add-br',
    GUARD_BRIDGE,
    '--',
    'set',
    'bridge',
    GUARD_BRIDGE,
    `datapath_type=${datapath}`,
    'fail-mode=secure',
    '--',
    '--if-exists',
    'del-port',
    INTEGRATION_BRIDGE,
    device,
    '--',
    '--may-exist',
    'add-port',
    GUARD_BRIDGE,
    device,
    '--',
    '--may-exist',
    'add-port',
    GUARD_BRIDGE,
    inner,
    '--',
    ...patch(inner, outer),
    '--',
    '--may-exist',
    'add-port',
    INTEGRATION_BRIDGE,
    outer,
    '--',
    ...patch(outer, inner),
    `external_ids:iface-id=${logicalPort}`,
  )
  await writeFlows(device)
}

/** Does nothing when it is not joined. */
export async function leaveGuarded(device: string): Promise<void> {
  const { inner, outer } = endsOf(device)
  if ((await guardedPorts()).includes(device)) await forgetFlows(device)
  await vsctl(
    '--if-exists',
    'del-port',
    INTEGRATION_BRIDGE,
    outer,
    '--',
    '--if-exists',
    'del-port',
    inner,
    '--',
    '--if-exists',
    'del-port',
    device,
  )
}

/** Names of the ports in the guard; none when the bridge does not exist. */
async function guardedPorts(): Promise<readonly string[]> {
  const bridges = (await vsctl('list-br')).split('\n')
  return bridges.includes(GUARD_BRIDGE) ? (await vsctl('list-ports', GUARD_BRIDGE)).split('\n') : []
}

/** Forbidding flows have a higher priority than allowing ones. Flows of an earlier port with the same number are
 *  deleted first. `set-frags` makes the ports of a datagram's first fragment visible to OVN's rules, which is not the
 *  default. */
async function writeFlows(device: string): Promise<void> {
  await ofctl('set-frags', INTEGRATION_BRIDGE, 'nx-match')
  await forgetFlows(device)
  for (const flow of flowsOf(device, endsOf(device).inner)) await ofctl('add-flow', GUARD_BRIDGE, flow)
}

async function forgetFlows(device: string): Promise<void> {
  for (const port of [device, endsOf(device).inner])
    await ofctl('del-flows', GUARD_BRIDGE, `in_port=${port}`).catch((error: unknown) => {
      if (!isUnknownPort(error)) throw error
    })
}

/** Matches a port whose device was deleted with its namespace or at a reboot of the host. The database still has the
 *  port; the bridge has neither the port nor its flows. */
const isUnknownPort = (error: unknown): boolean =>
  error instanceof ProgramFailed && error.message.includes('invalid or unknown port')

const LOOK_MILLISECONDS = 2_000

/** Writes the flows again whenever Open vSwitch has lost them, until the signal aborts. */
export async function keepGuard({ clock, log }: { readonly clock: Clock; readonly log: Logger }, signal: AbortSignal) {
  const outages = new Outages({ log, clock }, 'guests are cut off from their network')
  while (!signal.aborted) {
    await outages.attempt(restoreFlows)
    await clock.sleep(LOOK_MILLISECONDS, signal)
  }
}

/** A device is a port that has its own patch port. */
async function restoreFlows(): Promise<void> {
  const ports = new Set(await guardedPorts())
  const devices = [...ports].filter((port) => port !== '' && ports.has(endsOf(port).inner))
  if (devices.length === 0) return
  const known = await ofctl('--names', 'dump-flows', GUARD_BRIDGE)
  for (const device of devices)
    if (!known.includes(`in_port=${endsOf(device).inner} `) && !known.includes(`in_port="${endsOf(device).inner}"`))
      await writeFlows(device).catch((error: unknown) => {
        if (!isUnknownPort(error)) throw error // it changed meanwhile, and the other devices need their flows
      })
}
