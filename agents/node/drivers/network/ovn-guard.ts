/** What stands between a guest and the integration bridge: a bridge of the host's own that drops what no guest may say.
 *  OVN lets router advertisements and redirects of anybody pass before it looks at any rule, and with them one guest
 *  would be the router of all others. Each guest's device is joined to a port of the integration bridge by flows of its
 *  own, so that guests meet in the integration bridge only. Open vSwitch forgets flows when it is started anew: guests
 *  are cut off then, until `keepGuard` has written them again. Needs root. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Logger } from '../../../../kit/sys/log.ts'
import { Outages } from '../../../../kit/sys/outages.ts'
import { ProgramFailed, runProgram } from '../../run-program.ts'

export const INTEGRATION_BRIDGE = 'br-int'
const GUARD_BRIDGE = 'svcguard'
/** Names of interfaces have 15 bytes. */
const NAME_HEX = 11

/** The two ends of the way from the guard to the integration bridge. */
const endsOf = (device: string) => {
  const mark = createHash('sha256').update(device).digest('hex').slice(0, NAME_HEX)
  return { inner: `svp${mark}`, outer: `svq${mark}` }
}

/** Of a guest: it is no router (RFC 4861: advertisement 134, redirect 137) and no DHCP server. Whoever takes part in
 *  neighbour discovery sends with a hop limit of 255 and never in fragments (RFC 6980). */
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

/** Joins the device of the host to the port of OVN. Free when it is; takes a device that is in the integration bridge
 *  itself out of there. */
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

/** Free when it is not joined. */
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

/** Names in the guard; none where it was never made. */
async function guardedPorts(): Promise<readonly string[]> {
  const bridges = (await vsctl('list-br')).split('\n')
  return bridges.includes(GUARD_BRIDGE) ? (await vsctl('list-ports', GUARD_BRIDGE)).split('\n') : []
}

/** What forbids comes before what lets pass. A number that another port had may still have flows. The first part of a
 *  datagram shows its ports to the rules of OVN from then on, as Open vSwitch does not by itself. */
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

/** A port whose device went with its namespace, or with a host that was started anew: the database still has it, the
 *  bridge has neither it nor flows of it. */
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

/** Devices are what is joined to a way of its own. */
async function restoreFlows(): Promise<void> {
  const ports = new Set(await guardedPorts())
  const devices = [...ports].filter((port) => port !== '' && ports.has(endsOf(port).inner))
  if (devices.length === 0) return
  const known = await ofctl('--names', 'dump-flows', GUARD_BRIDGE)
  for (const device of devices)
    if (!known.includes(`in_port=${endsOf(device).inner} `) && !known.includes(`in_port="${endsOf(device).inner}"`))
      await writeFlows(device).catch((error: unknown) => {
        if (!isUnknownPort(error)) throw error // it came or went meanwhile, and others need theirs
      })
}
