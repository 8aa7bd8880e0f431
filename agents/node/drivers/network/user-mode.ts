/** The network of hosts without one for guests: each guest has a network of its own inside its QEMU, with the outside
 *  behind a translation of
 *  addresses. No rights are needed. Guests do not reach each other, their public addresses lead nowhere, and single
 *  ports are forwarded from
 *  the host instead. Pure, but for the script that it writes. */
import { METADATA_ADDRESS } from '../../../../domain/metadata-service.ts'
import type { Forward } from '../hypervisor/hypervisor.ts'
import { FRAME_BYTES_KEPT } from './traffic-log.ts'

export interface UserModeNetwork {
  /** Whether guests may open connections to the outside, and so also to services of the host. */
  readonly isOutboundAllowed: boolean
  /** How guests are joined to the metadata service; undefined when they are not. */
  readonly metadata?: { readonly portFile: string; readonly secretOf: (guest: string) => string } | undefined
}

/** The network inside, which guests get by DHCP. The metadata service's address is in it, so that QEMU itself answers
 *  for that and nothing
 *  that is asked of it ever leaves the host, where another cloud's metadata service may listen. */
const INSIDE = 'net=169.254.0.0/16,host=169.254.0.2,dns=169.254.0.3,dhcpstart=169.254.0.15'
const PIPE_FILE = 'metadata-pipe'
/** Connections of one guest to the metadata service at the same time; each costs the host a few processes. */
const PIPES_MAXIMUM = 8

/** As QEMU names the directions of a network backend: it receives what the guest transmits. */
const QUEUES = { transmitted: 'rx', received: 'tx' } as const
type Direction = keyof typeof QUEUES
const DIRECTIONS: readonly Direction[] = ['transmitted', 'received']
/** As the schema of Instance has it. */
const INTERFACES_MAXIMUM = 8

/** In the guest's folder. */
export const trafficFiles = (index: number, direction: Direction) => ({
  file: `net${index}.${direction}.pcap`,
  countFile: `net${index}.${direction}.json`,
})
export const USER_MODE_FILES: readonly string[] = [
  PIPE_FILE,
  ...Array.from({ length: INTERFACES_MAXIMUM }, (_, index) =>
    DIRECTIONS.flatMap((direction) => Object.values(trafficFiles(index, direction))),
  ).flat(),
]

/** `-netdev` and what counts its frames, for the interface of this number. */
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
  ]
}

/** The program that QEMU runs for each of the guest's connections to the metadata service, with the connection as
 *  standard input and output. */
export const pipeFile = (guest: string, { portFile, secretOf }: NonNullable<UserModeNetwork['metadata']>) => ({
  name: PIPE_FILE,
  text: `exec 2>/dev/null
for slot in {1..${PIPES_MAXIMUM}}; do
  exec 9>"metadata.slot$slot"
  flock -n 9 || continue
  read -r port < ${quoted(portFile)} && exec 3<>"/dev/tcp/127.0.0.1/$port" || exit
  echo ${quoted(secretOf(guest))} >&3
  cat <&0 >&3 &
  cat <&3
  kill $!
  exit
done
`,
})

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`
