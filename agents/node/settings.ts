/** Settings of the node agent. */
import { z } from 'zod'
import { Flag, logLevel, Port } from '../../kit/sys/settings.ts'
import { NETWORK_OBSTACLE_CHARACTERS } from '../../resources/instance/index.ts'
import { parseHostPort } from './serve/archive-relay.ts'

const PortRange = z
  .string()
  .regex(/^\d{1,5}-\d{1,5}$/)
  .transform((text) => {
    const [first = 0, last = 0] = text.split('-').map(Number)
    return { first, last }
  })
  .refine(({ first, last }) => first > 0 && first <= last && last <= 65_535, 'two ports, the lower one first')
/** Places by zone. */
const BackupSources = z
  .union([
    z.record(z.string(), z.string()),
    z
      .string()
      .regex(/^([a-z0-9-]+=[^,]+(,[a-z0-9-]+=[^,]+)*)?$/, 'must look like zone-a=PLACE,zone-b=PLACE')
      .transform((text) =>
        Object.fromEntries(
          text
            .split(',')
            .filter((pair) => pair !== '')
            .map((pair): [string, string] => {
              const at = pair.indexOf('=')
              return [pair.slice(0, at), pair.slice(at + 1)]
            }),
        ),
      ),
  ])
  .default({})
/** Ids that systemd and shadow assign to nobody. */
const GUEST_USERS = '1879048192-2147352575'
const USER_ID_MAXIMUM = 2 ** 32 - 2
const UserRange = z
  .string()
  .regex(/^(none|\d{1,10}-\d{1,10})$/)
  .transform((text) => {
    const [first = 0, last = 0] = text.split('-').map(Number)
    return text === 'none' ? undefined : { first, last }
  })
  .refine(
    (range) => range === undefined || (range.first > 0 && range.first <= range.last && range.last <= USER_ID_MAXIMUM),
    'two ids of users, the lower one first, or none',
  )
const BANDWIDTH_MEBIBYTES_PER_SECOND_MAXIMUM = 16 * 1024
const Bandwidth = z.coerce.number<number | string>().int().min(1).max(BANDWIDTH_MEBIBYTES_PER_SECOND_MAXIMUM)

export const NodeAgentSettings = z.strictObject({
  nodeName: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
    .max(58)
    .describe('Name of the node.'),
  kubeconfig: z.string().min(1).describe('Kubeconfig file of the Kubernetes API.'),
  data: z.string().min(1).describe('Folder for disks and records. No other process uses it.'),
  hypervisor: z
    .enum(['auto', 'qemu', 'simulated'])
    .default('auto')
    .describe('What runs guests; `auto` takes QEMU where it is installed.'),
  host: z.string().min(1).default('127.0.0.1').describe('Address that the API server and other nodes reach.'),
  port: Port.default(0).describe('Port for consoles and usage; 0 takes a free one.'),
  imageCache: z
    .string()
    .min(1)
    .optional()
    .describe('Folder of guest images, which nodes may share. Without it, `images` in the data folder.'),
  powerCycle: z.string().max(16).optional().describe('Counts how often a simulated machine was switched on.'),
  sharedVolumes: z
    .string()
    .min(1)
    .default('none')
    .describe('Folder on storage that the nodes of the zone share, or `none`.'),
  cephPool: z.string().min(1).optional().describe('Pool of a Ceph cluster that the nodes of the zone share.'),
  cephUser: z.string().min(1).default('svccloud').describe('User of the Ceph cluster.'),
  cephConfiguration: z
    .string()
    .min(1)
    .default('/etc/ceph/ceph.conf')
    .describe("The Ceph cluster's configuration file."),
  cephKeyring: z
    .string()
    .min(1)
    .optional()
    .describe("File with that user's key. Without it, /etc/ceph/ceph.client.USER.keyring."),
  migrationHost: z
    .string()
    .min(1)
    .optional()
    .describe('Address to which other nodes send guests that move here. Without it, `host`.'),
  migrationPorts: PortRange.optional().describe('Ports for guests that move here: FIRST-LAST.'),
  migrationBandwidth: Bandwidth.optional().describe('MiB per second for one move at most.'),
  backupStore: z
    .string()
    .min(1)
    .default('none')
    .describe('Where backups go: a folder, `object-storage`, a bucket of a vault, or `none`.'),
  backupSources: BackupSources.describe('Backup stores of other zones, to restore from: ZONE=PLACE, with commas.'),
  backupBandwidth: Bandwidth.default(100).describe('MiB per second for backups at most.'),
  archiveAddress: z
    .string()
    .refine((text) => parseHostPort(text) !== undefined, 'must be HOST:PORT')
    .optional()
    .describe('Where archives of databases are sent: HOST:PORT.'),
  guestNetwork: z
    .enum(['ovn', 'outbound', 'isolated'])
    .default('outbound')
    .describe('Network of guests: OVN, outbound connections only, or none.'),
  guestNetworkObstacle: z
    .string()
    .max(NETWORK_OBSTACLE_CHARACTERS)
    .optional()
    .describe('Why guests have no network by OVN, for people.'),
  guestNamespace: z.string().min(1).optional().describe('Network namespace that guests run in (a path).'),
  guestNamespaceHost: z
    .string()
    .min(1)
    .optional()
    .describe('Address of the node in that namespace. Without it, `migrationHost`.'),
  guestUsers: UserRange.prefault(GUEST_USERS).describe(
    'User ids of guests when the agent runs as root: FIRST-LAST, or `none`.',
  ),
  stopGuests: Flag.default(false).describe('Power guests off when the agent stops.'),
  metricsHost: z.string().min(1).default('127.0.0.1').describe('Address that metrics and probes are served on.'),
  metricsPort: Port.default(0).describe('Port of metrics and probes; 0 takes a free one.'),
  metricsTokenFile: z
    .string()
    .min(1)
    .optional()
    .describe('File with the bearer token that metrics require. Needed unless they are on the loopback.'),
  logLevel,
})
export type NodeAgentSettings = z.output<typeof NodeAgentSettings>
