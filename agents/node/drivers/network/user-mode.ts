/** The network of hosts without a network for guests. Each guest has its own network inside its QEMU, which translates
 *  addresses towards the outside. No rights are needed. Guests do not reach each other, their public addresses do not
 *  work, and single ports are forwarded from the host instead. What a guest sends goes through the gate
 *  (`gate/main.ts`), which keeps it from the host itself. Pure, except for the script that it writes. */
import { METADATA_ADDRESS } from '../../../../domain/network/metadata-service.ts'
import type { Forward } from '../hypervisor/hypervisor.ts'
import { FRAME_BYTES_KEPT } from './traffic-log.ts'

export interface UserModeNetwork {
  /** Whether guests may open connections to the outside. */
  readonly isOutboundAllowed: boolean
  /** How guests are joined to the metadata service; undefined when they are not. */
  readonly metadata?: { readonly portFile: string; readonly secretOf: (guest: string) => string } | undefined
}

/** The inner network, which guests get by DHCP. It contains the metadata service's address, so that QEMU itself answers
 *  for it. No request to it leaves the host, where another cloud's metadata service may listen. */
const INSIDE = 'net=169.254.0.0/16,host=169.254.0.2,dns=169.254.0.3,dhcpstart=169.254.0.15'
const PIPE_FILE = 'metadata-pipe'
/** Port at which the metadata service listens; the agent writes it when it attaches to the guest. */
export const PORT_FILE = 'metadata.port'
const slotFile = (slot: number | string): string => `metadata.slot${slot}`
/** Limit of concurrent connections of one guest to the metadata service; each costs the host a few processes. */
const PIPES_MAXIMUM = 8

/** QEMU's names for the directions of a network backend: the backend receives what the guest transmits. */
const QUEUES = { transmitted: 'rx', received: 'tx' } as const
type Direction = keyof typeof QUEUES
const DIRECTIONS: readonly Direction[] = ['transmitted', 'received']
/** As in the schema of Instance. */
export const INTERFACES_MAXIMUM = 8

/** Limit of the length of names in requests to the gate. */
export const GUEST_NAME_BYTES_MAXIMUM = 4_096

/** Names of files in the guest's folder. */
export const trafficFiles = (index: number, direction: Direction) => ({
  file: `net${index}.${direction}.pcap`,
  countFile: `net${index}.${direction}.json`,
})
/** Sockets of QEMU in the guest's folder: one for frames that leave the guest, one for frames that the gate has
 *  allowed. */
export const gateFiles = (index: number) => ({ leaving: `net${index}.leaving`, passed: `net${index}.passed` })
/** The socket at which the gate of the guests in the folder listens. */
export const gateSocket = (guestsFolder: string): string => `${guestsFolder}.gate`
/** The QEMU object that takes back the frames that the gate has allowed, for `object-add` while the guest runs. QEMU
 *  passes what a guest sends from the last object to the first. */
export const passedObject = (index: number) => ({
  'qom-type': 'filter-redirector',
  id: `passed${index}`,
  netdev: `net${index}`,
  queue: QUEUES.transmitted,
  indev: `gate-${gateFiles(index).passed}`,
  position: `id=leaving${index}`,
  insert: 'before',
})
export const USER_MODE_FILES: readonly string[] = [
  PIPE_FILE,
  PORT_FILE,
  ...Array.from({ length: INTERFACES_MAXIMUM }, (_, index) => Object.values(gateFiles(index))).flat(),
  ...Array.from({ length: INTERFACES_MAXIMUM }, (_, index) =>
    DIRECTIONS.flatMap((direction) => Object.values(trafficFiles(index, direction))),
  ).flat(),
]

/** Files in the guest's folder that QEMU and its child processes write but may not create. */
export const writtenFiles = (interfaces: number): readonly string[] => [
  ...Array.from({ length: PIPES_MAXIMUM }, (_, index) => slotFile(index + 1)),
  ...Array.from({ length: interfaces }, (_, index) =>
    DIRECTIONS.map((direction) => trafficFiles(index, direction).file),
  ).flat(),
]

/** `-netdev` and the objects that record its frames, for the interface of this number. */
export function userModeArguments(network: UserModeNetwork, index: number, forwards: readonly Forward[]): string[] {
  const options = [
    `user,id=net${index}`,
    INSIDE,
    ...(network.isOutboundAllowed ? [] : ['restrict=on']),
    ...(network.metadata === undefined ? [] : [`guestfwd=tcp:${METADATA_ADDRESS}:80-cmd:/bin/bash ${PIPE_FILE}`]),
    ...forwards.map(({ host, hostPort, guestPort }) => `hostfwd=tcp:${host}:${hostPort}-:${guestPort}`),
  ]
  return [
    '-netdev',
    options.join(','),
    ...DIRECTIONS.flatMap((direction) => [
      '-object',
      [
        `filter-dump,id=${direction}${index},netdev=net${index},queue=${QUEUES[direction]}`,
        `file=${trafficFiles(index, direction).file},maxlen=${FRAME_BYTES_KEPT}`,
      ].join(','),
    ]),
    ...(network.isOutboundAllowed ? gateArguments(index) : []),
  ]
}

/** QEMU passes what a guest sends from the last object to the first: a frame leaves to the gate, comes back, and is
 *  counted. */
function gateArguments(index: number): string[] {
  const { leaving, passed } = gateFiles(index)
  const socket = (id: string, path: string) => ['-chardev', `socket,id=${id},path=${path},server=on,wait=off`]
  const redirect = (id: string, way: string) => [
    '-object',
    `filter-redirector,id=${id},netdev=net${index},queue=${QUEUES.transmitted},${way}`,
  ]
  return [
    ...socket(`gate-${passed}`, passed),
    ...socket(`gate-${leaving}`, leaving),
    ...redirect(`passed${index}`, `indev=gate-${passed}`),
    ...redirect(`leaving${index}`, `outdev=gate-${leaving}`),
  ]
}

/** The program that QEMU runs for each of the guest's connections to the metadata service. Its standard input and
 *  output are the connection. */
export const pipeFile = (guest: string, { secretOf }: NonNullable<UserModeNetwork['metadata']>) => ({
  name: PIPE_FILE,
  text: `exec 2>/dev/null
for slot in {1..${PIPES_MAXIMUM}}; do
  exec 9>"${slotFile('$slot')}"
  flock -n 9 || continue
  read -r port < ${PORT_FILE} && exec 3<>"/dev/tcp/127.0.0.1/$port" || exit
  echo ${quoted(secretOf(guest))} >&3
  cat <&0 >&3 &
  cat <&3
  kill $!
  exit
done
`,
})

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
