/** One node's part of the network: Open vSwitch and OVN's controller in a namespace that is connected to the namespace
 *  between the nodes. */
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { defined } from '../../domain/defined.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { PHYSICAL_NETWORK } from './address-plan.ts'
import { type Central, ownFiles, prepareOvsdb } from './central.ts'
import { type Daemon, type DaemonOptions, tied } from '../kit/daemon.ts'
import { schemaFile } from './programs.ts'
import { openSpace, pointTo, type Space } from './space.ts'

export interface HostPlace {
  /** Name of its chassis. */
  readonly name: string
  readonly number: number
  readonly addresses: { readonly host: string; readonly tunnel: string; readonly prefix: number }
  /** Folder of its Open vSwitch. */
  readonly folder: string
  /** Folder of its guests. */
  readonly guests: string
  readonly central: Central
  /** Folders of schemas. */
  readonly shared: readonly string[]
  /** The namespace between the nodes. */
  readonly middle: Space
  readonly launch: (options: DaemonOptions) => Daemon
  readonly clock: Clock
}

/** Link to the folder of the node's namespaces, for its agent. */
export const namespaceLink = (folder: string): string => join(folder, 'namespace')
const DATABASE_SECONDS = 30
const ENDS = ['tunnels0', 'outside0', 'host0'] as const
const BRIDGE = 'datapath_type=netdev'

export async function startHost(place: HostPlace): Promise<Space> {
  const { name, folder, guests, central, launch, clock } = place
  for (const each of [folder, guests]) await mkdir(each, { recursive: true, mode: 0o700 })
  const space = await openSpace({ folder, guests: await realpath(guests), beside: place.middle }, clock)
  await wire(place, space)
  await pointTo(namespaceLink(folder), space.folder)
  const own = { OVS_RUNDIR: folder, OVN_RUNDIR: folder }
  const socket = join(folder, 'db.sock')
  const database = join(folder, 'conf.db')
  await prepareOvsdb(database, schemaFile(place.shared, 'openvswitch/vswitch.ovsschema'))
  const vsctl = (...words: readonly string[]) =>
    space.run(
      ['ovs-vsctl', `--timeout=${DATABASE_SECONDS}`, `--db=unix:${socket}`, ...words]
        .map((word) => `'${word}'`)
        .join(' '),
    )
  const start = (daemon: string, command: readonly string[], whenStarted?: () => Promise<void>) =>
    launch({
      name: `${daemon} of ${name}`,
      folder,
      command: space.command(tied(command)),
      environment: own,
      ...defined({ whenStarted }),
    })
  await start(
    'ovsdb',
    ['ovsdb-server', ...ownFiles(folder, 'db'), `--remote=punix:${socket}`, database],
    async () => void (await vsctl('--retry', '--no-wait', 'init')),
  ).isReady
  // Kernel interfaces of Open vSwitch disappear when it exits, so they are configured after each of its starts.
  await start('vswitchd', ['ovs-vswitchd', ...ownFiles(folder, 'ovs-vswitchd'), `unix:${socket}`], async () => {
    await vsctl(
      '--may-exist',
      'add-br',
      'br-int',
      '--',
      'set',
      'bridge',
      'br-int',
      BRIDGE,
      'fail-mode=secure',
      '--',
      ...bridge('br-phy', 'tunnels0'),
      ...bridge('br-out', 'outside0'),
      'set',
      'open',
      '.',
      `external_ids:system-id=${name}`,
      `external_ids:ovn-remote=${central.southbound}`,
      'external_ids:ovn-encap-type=geneve',
      `external_ids:ovn-encap-ip=${place.addresses.tunnel}`,
      `external_ids:ovn-bridge-mappings=${PHYSICAL_NETWORK}:br-out`,
    )
    await space.run(
      // Open vSwitch creates existing bridges some time after its start.
      'for try in $(seq 100); do ip link show br-phy > /dev/null 2>&1 && break; sleep 0.1; done',
      `ip address replace ${place.addresses.tunnel}/${place.addresses.prefix} dev br-phy`,
      'ip link set br-phy up',
      'ethtool -K br-phy tx off',
    )
  }).isReady
  start('controller', ['ovn-controller', ...ownFiles(folder, 'controller'), `unix:${socket}`])
  return space
}

const bridge = (name: string, port: string): readonly string[] => [
  '--may-exist',
  'add-br',
  name,
  '--',
  'set',
  'bridge',
  name,
  BRIDGE,
  '--',
  '--may-exist',
  'add-port',
  name,
  port,
  '--',
]

/** Creates wires to the others: for tunnels, for the outside, and for moves of guests. Wires are deleted with their
 *  other ends in the namespace between the nodes, but the kernel takes its time. So wires of an earlier cloud are
 *  deleted here first, in case guests have kept the namespace. Rejects with the error of a program. */
export async function wire(
  { middle, number, addresses }: Pick<HostPlace, 'middle' | 'number' | 'addresses'>,
  space: Space,
): Promise<void> {
  await space.run(...ENDS.map((end) => `ip link delete ${end} 2> /dev/null || true`))
  for (const [inner, other, master] of [
    ['tunnels0', `t${number}`, 'tunnels'],
    ['outside0', `o${number}`, 'outside'],
    ['host0', `h${number}`, 'tunnels'],
  ] as const)
    await middle.run(
      `ip link add ${other} type veth peer name ${inner} netns ${space.pid}`,
      `ethtool -K ${other} tx off`,
      `ip link set ${other} master ${master} up`,
    )
  await space.run(
    'ip link set lo up',
    ...ENDS.flatMap((end) => [`ethtool -K ${end} tx off`, `ip link set ${end} up`]),
    `ip address add ${addresses.host}/${addresses.prefix} dev host0`,
  )
}
