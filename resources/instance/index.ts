/** Instance and Volume: what one node must run and hold. They are in the node's namespace (`node-<name>`), so the
 *  node's agent needs access to nothing else. Controllers write spec and metadata; the agent writes only status. */
import { z } from 'zod'
import { PREFIXES_OF_SERVER_MAXIMUM } from '../../domain/public-pool/rules.ts'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../domain/storage/rules.ts'
import { resource } from '../kit/define.ts'
import { ObjectStorageZone, SshHostKeys, StoredLabels } from '../kit/shapes.ts'
import { IsRemoved, MigrationSecretName, OperationId, Origin, Serving } from './parts.ts'
import {
  AddressText,
  CidrText,
  Cores,
  MemoryMebibytes,
  ObjectName,
  OBSERVED,
  Port,
  PublicKeys,
  StoredDiskGibibytes,
  StoredTitle,
} from '../kit/fields.ts'
import { AGE, STATE } from '../kit/columns.ts'

export * from './image.ts'

const Reference = z.strictObject({
  namespace: ObjectName.describe('Namespace of its account.'),
  name: ObjectName.describe('Its name.'),
  uid: z.string().max(64).describe('Its uid, which is unique.'),
})
const Attempt = z.int().min(1).max(100)
const MirroredVolumes = z
  .array(ObjectName)
  .max(32)
  .describe('Volumes to copy from the sender while the guest runs; the others are shared.')
const HypervisorName = z
  .enum(['qemu-kvm', 'qemu-tcg', 'simulated'])
  .describe('Hypervisor: QEMU with or without hardware acceleration, or a simulation.')

/** Networking of a guest. */
const InterfaceAddress = z.strictObject({
  address: AddressText.describe('The address.'),
  prefix: z.int().min(0).max(128).describe('Length of the network prefix in bits.'),
  gateway: AddressText.describe('Default gateway.'),
})

/** More than the maximum of a server besides the first one. */
const INTERFACE_SLOTS = 7
const PortName = z.string().max(63).describe("Port of the zone's network that the host connects it to.")

const NetworkInterface = z.strictObject({
  portName: PortName.optional().describe(
    "Port of the zone's network that the host connects it to; the port with the name of this Instance when absent.",
  ),
  slot: z
    .int()
    .min(1)
    .max(INTERFACE_SLOTS)
    .optional()
    .describe('Slot in the guest of a hot-pluggable interface; never the public one.'),
  macAddress: z.string().max(17).describe('Its MAC address, as in 52:54:00:12:34:56.'),
  kind: z.enum(['public', 'private']).describe('Whether it is on the Internet or in a private network.'),
  ipv4: InterfaceAddress.optional().describe('Its IPv4 address.'),
  ipv6: InterfaceAddress.optional().describe('Its IPv6 address: the first one of its prefix.'),
  routedPrefixes: z
    .array(CidrText)
    .max(PREFIXES_OF_SERVER_MAXIMUM)
    .optional()
    .describe(
      'IPv6 prefixes forwarded to the guest: the prefix of its address, and previous ones that it may still use.',
    ),
})

const StopRequest = z.strictObject({
  id: OperationId,
  type: z.enum(['soft', 'hard']).describe('soft presses the power button, hard cuts the power.'),
  timeoutSeconds: z.int().min(1).max(600).describe('Seconds that a soft stop may take.'),
  timeoutAction: z.enum(['fail', 'hard']).describe('Action when it takes longer.'),
})

const Receive = z.strictObject({
  id: OperationId,
  attempt: Attempt.describe('A higher number starts again and discards data received in the previous attempt.'),
  mirroredVolumes: MirroredVolumes,
  secretName: MigrationSecretName,
})

const Send = z.strictObject({
  id: OperationId,
  attempt: Attempt.describe('A higher number starts again.'),
  host: ObjectName.describe('Host on which the receiver listens.'),
  port: Port.describe('Port for memory and device state.'),
  diskPort: Port.optional().describe('Port for the copies of mirrored volumes.'),
  mirroredVolumes: MirroredVolumes,
  secretName: MigrationSecretName,
  downtimeLimitMilliseconds: z.int().min(1).max(60_000).describe('Maximum pause of the guest.'),
  isThrottled: z.boolean().describe('Whether the guest may be slowed down so that the transfer completes.'),
  timeoutSeconds: z.int().min(1).max(86_400).describe('Seconds after which the attempt fails.'),
  isCancelled: z
    .boolean()
    .describe('Whether the transfer is cancelled: the guest continues here unless it was handed over already.'),
})

const GuestMetadata = z.strictObject({
  isEnabled: z.boolean().describe('Whether the metadata service gives the guest the other values.'),
  id: ObjectName.describe('Id of the server.'),
  title: StoredTitle.describe('Title of the server.'),
  zone: z.string().max(63).describe('Zone of the server.'),
  region: z.string().max(63).describe('Region of the zone.'),
  plan: z.string().max(63).describe('Plan of the server.'),
  publicKeys: PublicKeys.describe('SSH keys of its default user, in OpenSSH format.'),
  labels: StoredLabels.describe('Labels of the server.'),
  userDataSecretName: ObjectName.optional().describe(
    "Secret of this node's namespace whose key userData holds the user data.",
  ),
})

const Transfer = z.strictObject({
  id: OperationId,
  attempt: Attempt.describe('Attempt of spec.receive or spec.send that this refers to.'),
  role: z.enum(['receive', 'send']).describe('Whether this node sends or receives.'),
  phase: z
    .enum(['preparing', 'transferring', 'completed', 'failed'])
    .describe(
      'Receiver: preparing until it listens; transferring while it waits and receives; completed when the guest ' +
        'runs here; failed when the attempt ended otherwise. Sender: failed when the guest continues here; ' +
        'completed when it does not, because it was handed over or ended during the transfer. Only the receiver ' +
        'knows whether the guest arrived. A receiver that still waits after its sender has completed has lost ' +
        'what was sent.',
    ),
  host: ObjectName.optional().describe('Host on which the receiver listens.'),
  port: z.int().optional().describe('Port for memory and device state.'),
  diskPort: z.int().optional().describe('Port for the copies of mirrored volumes.'),
  iteration: z.int().min(0).describe('Number of passes over the memory.'),
  transferredBytes: z.int().min(0).describe('Bytes sent.'),
  totalBytes: z.int().min(0).describe('Bytes to send; 0 when the hypervisor does not report it.'),
  dirtyBytesPerSecond: z.int().min(0).describe('Bytes of memory that the guest changes per second.'),
  downtimeMilliseconds: z.int().min(0).describe('Pause of the guest; 0 until completed.'),
  detail: z.string().max(1024).describe('Human-readable reason for the failure; may be empty.'),
  reportedAt: z.string().max(64).describe('Time of the observation, RFC 3339.'),
})

export const Instance = resource({
  kind: 'Instance',
  plural: 'instances',
  shortNames: ['inst'],
  scope: 'Namespaced',
  description:
    'A guest that this node must run. The platform creates it from a Server and uses the uid of the Server as its ' +
    'name.',
  spec: z
    .strictObject({
      server: Reference.describe('Server of the guest.'),
      hostname: z.string().max(63).describe('Host name of the guest.'),
      power: z.enum(['running', 'stopped']).describe('Desired power state of the guest.'),
      incarnation: z
        .int()
        .min(0)
        .describe(
          'The agent starts each incarnation once: it never restarts a guest that ended without a higher number.',
        ),
      stop: StopRequest.optional().describe(
        'How to stop a running guest when power is stopped or the incarnation increases.',
      ),
      cores: Cores.describe('Virtual cores.'),
      memoryMebibytes: MemoryMebibytes.describe('Memory in MiB.'),
      disks: z
        .array(
          z.strictObject({
            volume: ObjectName.describe("Volume in this node's namespace."),
            serial: z.string().max(20).describe('Serial number of the disk in the guest.'),
            slot: z
              .int()
              .min(1)
              .max(DATA_STORAGES_PER_SERVER_MAXIMUM)
              .optional()
              .describe('Slot in the guest of a hot-pluggable disk; never the first disk.'),
          }),
        )
        .min(1)
        .max(32)
        .describe('Disks in order; the guest boots from the first one.'),
      forcedVolumes: z
        .array(ObjectName)
        .max(32)
        .optional()
        .describe('Volumes to remove from the guest even when it does not release them.'),
      interfaces: z
        .array(NetworkInterface)
        .max(INTERFACE_SLOTS + 1)
        .describe('Network interfaces in order.'),
      template: z.string().max(63).describe('Template of the boot disk; empty for a disk with its own boot loader.'),
      receive: Receive.optional().describe(
        'The incarnation arrives from another node instead of being started: the node waits for it and never ' +
          'boots it itself.',
      ),
      send: Send.optional().describe('The running guest moves to another node.'),
      metadata: GuestMetadata.describe('Values that the metadata service returns to the guest.'),
    })
    .describe('Desired state of the guest. Written by the platform.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z
        .enum(['waiting', 'starting', 'running', 'stopping', 'stopped', 'error', 'receiving', 'handed_over'])
        .describe(
          'State of the guest. receiving: waits for a guest that another node sends. handed_over: was sent ' +
            'completely, is paused here and must not continue.',
        ),
      detail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      incarnation: z
        .int()
        .min(0)
        .describe('Incarnation that state refers to: the newest started one; 0 before the first.'),
      startedAt: z.string().max(64).optional().describe('Time when the incarnation was started, RFC 3339.'),
      endedAt: z.string().max(64).optional().describe('Time when it ended, RFC 3339.'),
      endReason: z
        .enum(['requested', 'guest_shutdown', 'crashed'])
        .optional()
        .describe(
          'Reason for its end: on request, by the guest itself, or neither (also when the host restarted or the ' +
            'agent was not running).',
        ),
      stop: z
        .strictObject({
          id: OperationId,
          outcome: z.enum(['stopped', 'timed_out']).describe('Outcome of the stop request.'),
        })
        .optional()
        .describe('Last completed stop request.'),
      transfer: Transfer.optional().describe('Progress of the last attempt of spec.receive or spec.send.'),
      isRemoved: IsRemoved,
      isDiskFull: z
        .boolean()
        .optional()
        .describe(
          'The guest is paused because a disk of it found no space on the host. It goes on when there is room.',
        ),
      volumes: z.array(ObjectName).max(32).optional().describe('Volumes of the guest; none while there is no guest.'),
      unheldVolumes: z
        .array(ObjectName)
        .max(32)
        .optional()
        .describe('Volumes that only its host has open, without a device in the guest.'),
      interfaces: z
        .array(PortName)
        .max(INTERFACE_SLOTS + 1)
        .optional()
        .describe("Ports of the guest's network interfaces; none while there is no guest."),
      hypervisor: HypervisorName.optional(),
      forwards: z
        .array(
          z.strictObject({
            guestPort: z.int().describe('Port in the guest.'),
            host: ObjectName.describe('Address of the host that is forwarded to it.'),
            hostPort: z.int().describe('Port of the host that is forwarded to it.'),
          }),
        )
        .max(16)
        .optional()
        .describe('Host ports forwarded to guest ports when the guest has no separate address (user-mode networking).'),
      sshHostKeys: SshHostKeys.optional().describe(
        'Public host keys of its SSH server, as printed on its console since its start.',
      ),
    })
    .describe('Observed state of the guest. Written by the agent of the node.'),
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' },
    { name: 'Power', type: 'string', jsonPath: '.spec.power' },
    STATE,
    { name: 'Incarnation', type: 'integer', jsonPath: '.status.incarnation' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.status.hypervisor', priority: 1 },
    { name: 'SSH', type: 'string', jsonPath: '.status.forwards[?(@.guestPort==22)].hostPort', priority: 1 },
    { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    AGE,
  ],
  fixed: ['server'],
})
export type InstanceSpec = z.infer<typeof Instance.spec>
export type InstanceStatus = z.infer<typeof Instance.status>

/** More than an account may have. */
const VOLUME_SNAPSHOTS_MAXIMUM = 512
const SnapshotName = z
  .string()
  .max(63)
  .describe('uid of the Snapshot, or of the Storage that is created as a copy of this one.')

/** More than can be lost in sequence before a server settles. */
export const LOST_HOSTS_MAXIMUM = 8

export const Volume = resource({
  kind: 'Volume',
  plural: 'volumes',
  shortNames: ['vol'],
  scope: 'Namespaced',
  description:
    'A disk that this node must hold. The platform creates it from a Storage and uses the uid of the Storage as ' +
    'its name.',
  spec: z
    .strictObject({
      storage: Reference.describe('Storage whose data it holds.'),
      sizeGibibytes: StoredDiskGibibytes.describe('Size in GiB; it may grow.'),
      source: z
        .strictObject({
          kind: z
            .enum(['template', 'image', 'snapshot', 'backup', 'mirror', 'copy'])
            .describe(
              'template: its image. image: a copy of the Image on this node. snapshot: a copy of a snapshot of ' +
                'another volume. backup: data that a BackupJob reads from its store. mirror: empty, because the ' +
                'data arrives with the running guest. copy: all data of another node as in copyFrom, before the ' +
                'volume is ready.',
            ),
          name: ObjectName.describe(
            'Name of the template, the Image, the Snapshot, the Backup, or the operation that moves the data.',
          ),
          volume: ObjectName.optional().describe('For a snapshot: its volume.'),
          pool: z
            .string()
            .max(63)
            .optional()
            .describe("For a snapshot: its shared storage; this node's disks when absent."),
          accountId: z
            .string()
            .max(63)
            .optional()
            .describe('For a backup: the account whose part of the store is read.'),
          secretName: ObjectName.optional().describe(
            "For a backup: Secret in this node's namespace with the account's key.",
          ),
          objectStorageZone: ObjectStorageZone,
        })
        .optional()
        .describe('Initial content of the disk; empty when absent.'),
      copyFrom: z
        .strictObject({
          id: OperationId,
          host: ObjectName.describe('Host that serves the disk.'),
          port: Port.describe('Port of that host.'),
          secretName: MigrationSecretName,
        })
        .optional()
        .describe('Source of kind copy, as soon as the other node serves the disk.'),
      serve: z
        .strictObject({ id: OperationId, secretName: MigrationSecretName })
        .optional()
        .describe('Other node that may read the disk while no guest has it open; status.serving has the address.'),
      origin: Origin.optional().describe(
        'For data from another node: the template that it was created from, as in status.origin there. The ' +
          'guest boots the kernel of that version.',
      ),
      // The location of the data can be set only once: a later edit would lose the data.
      pool: z
        .string()
        .max(63)
        .optional()
        .describe("Shared storage that all nodes with the pool see as one; the host's disks when absent."),
      isRetained: z
        .boolean()
        .optional()
        .describe('Whether to keep the data when this object is deleted, because another node holds the volume now.'),
      isCurrent: z
        .boolean()
        .optional()
        .describe(
          'For data that a move brought: the move has ended here, or the storage is deleted, so that the deletion of ' +
            'this object may remove data that were in use. Without it the host keeps them.',
        ),
      takesOverFrom: z
        .array(
          z.strictObject({
            node: z.string().max(63).describe('The lost host.'),
            bootId: z.string().max(64).describe('Boot of the lost host that is proven to run nothing.'),
          }),
        )
        .max(LOST_HOSTS_MAXIMUM)
        .optional()
        .describe(
          'For shared storage: hosts proven to run nothing, so this host takes over from them. Any other host ' +
            'that has the disk keeps it.',
        ),
      arrivingFor: ObjectName.optional().describe(
        'For data that both nodes of a move see: the operation of the move, until the server is on this node.',
      ),
      snapshots: z
        .array(
          z.strictObject({
            name: SnapshotName,
            shall: z
              .enum(['be', 'go'])
              .describe('be: take the snapshot unless it exists. go: remove it. Other snapshots stay unchanged.'),
          }),
        )
        .max(VOLUME_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('Requested snapshots of the disk.'),
    })
    .describe('Desired state of the disk. Written by the platform.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z
        .enum(['creating', 'ready', 'error', 'lost'])
        .describe(
          'Whether guests may open the disk. lost: it existed and is missing now, or the valid data is on ' +
            'another host; no other disk replaces it.',
        ),
      detail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      sizeGibibytes: z.int().optional().describe('Actual size of the disk in GiB.'),
      origin: Origin.optional().describe('Template version that the data was created from.'),
      serving: Serving.optional().describe('Address at which the disk is served for spec.serve.'),
      snapshots: z
        .array(
          z.strictObject({
            name: SnapshotName,
            sizeGibibytes: z.int().describe('Size of the disk at that point, in GiB.'),
            isFrozen: z.boolean().describe('Whether the file systems of the guest were frozen.'),
            usedBytes: z.int().min(0).optional().describe('Space used by it alone, if the host knows.'),
          }),
        )
        .max(VOLUME_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('Snapshots in the disk.'),
      lostSnapshots: z
        .array(SnapshotName)
        .max(VOLUME_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('Snapshots of spec.snapshots that were in the disk and are missing now; they are not taken again.'),
      isRemoved: IsRemoved,
    })
    .describe("Observed state of the node's data. Written by its agent."),
  columns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.sizeGibibytes' },
    STATE,
    { name: 'Source', type: 'string', jsonPath: '.spec.source.name' },
    AGE,
  ],
  fixed: ['storage', 'pool'],
})
export type VolumeSpec = z.infer<typeof Volume.spec>
export type VolumeStatus = z.infer<typeof Volume.status>

const Holding = z.int().min(0)
const Held = z
  .strictObject({
    guests: Holding.describe('Guests, running or ended.'),
    volumes: Holding.describe("Disks on the host's storage, and in pools that it uses."),
    images: Holding.describe('Custom images, including unfinished ones.'),
    unclaimed: Holding.describe('Items of all these kinds that no object has named for ten minutes or longer.'),
    quarantined: Holding.optional().describe('Deleted disks that are kept for a while.'),
  })
  .describe('Number of items on the host, whether or not an object names them.')

/** Maximum that a report names; the count includes all. */
export const UNCLAIMED_NAMED_MAXIMUM = 500

/** Half a sentence. */
export const NETWORK_OBSTACLE_CHARACTERS = 512

export const NodeReport = resource({
  kind: 'NodeReport',
  plural: 'nodereports',
  shortNames: ['nr'],
  scope: 'Namespaced',
  description:
    'Report of a node about itself: one object named `node` in its namespace, written by its agent. The agent ' +
    'reports that it is alive by renewing the Lease `heartbeat`.',
  spec: z
    .strictObject({
      agentVersion: z.string().max(63).describe('Version of the agent.'),
      bootId: z.string().max(64).describe('Changes with every boot of the host.'),
      logicalCpus: z.int().describe('Logical processors of the host.'),
      memoryMebibytes: z.int().describe('Memory of the host in MiB.'),
      storageGibibytes: z.int().describe('Disk capacity in GiB.'),
      hypervisor: HypervisorName,
      features: z.array(z.string().max(63)).max(32).describe('Capabilities of the host besides running guests.'),
      pools: z.array(z.string().max(63)).max(16).optional().describe('Shared storage mounted on the host.'),
      templates: z
        .array(z.string().max(63))
        .max(64)
        .optional()
        .describe('Templates with an image on the host. Servers of other templates wait for the image.'),
      managedImageVersion: z
        .string()
        .max(63)
        .optional()
        .describe('Version of the image for managed machines on this host; absent without it.'),
      databaseImageVersion: z
        .string()
        .max(63)
        .optional()
        .describe('Version of the image for database machines on this host; absent without it.'),
      guestCount: z
        .int()
        .min(0)
        .optional()
        .describe('Number of guests alive at the time of the report; 0 when the host has just started.'),
      networkObstacle: z
        .string()
        .max(NETWORK_OBSTACLE_CHARACTERS)
        .optional()
        .describe('Human-readable reason why the host has no network for servers; absent when it has one.'),
      migrationHost: ObjectName.optional().describe('Address of this host for incoming migrations.'),
      endpoint: z
        .strictObject({
          url: ObjectName.describe('Address of the HTTPS listener.'),
          certificateFingerprint: z.string().max(64).describe('SHA-256 of its certificate in hex.'),
        })
        .optional()
        .describe('Listener through which the platform reaches consoles.'),
    })
    .describe('Observed state of the node. Written by its agent.'),
  status: z
    .strictObject({
      held: Held.optional(),
      heldAt: z.string().max(64).optional().describe('Time of the last scan of the host, RFC 3339.'),
      unclaimed: z
        .array(
          z.strictObject({
            kind: z.enum(['Instance', 'Volume', 'Image']).describe('Kind of the missing object.'),
            name: ObjectName.describe('Expected name of the object.'),
            since: z.string().max(64).describe('Time of the first such observation, RFC 3339.'),
            isCurrent: z
              .boolean()
              .optional()
              .describe('For a Volume: its data were in use on this host, so they may be the newest.'),
          }),
        )
        .max(UNCLAIMED_NAMED_MAXIMUM)
        .optional()
        .describe(
          'Items on the host that no object has named for ten minutes or longer. Nothing removes them automatically.',
        ),
      unnamed: z
        .array(
          z.strictObject({
            name: ObjectName.describe('Expected name of its Instance.'),
            server: z
              .strictObject({
                namespace: z.string().max(63).describe('Namespace of its account.'),
                name: ObjectName.describe('Id of the server.'),
              })
              .optional()
              .describe('Its server; absent when the host does not know it.'),
            cores: z.int().min(0).describe('Number of virtual cores.'),
            memoryMebibytes: z.int().min(0).describe('Its memory in MiB.'),
            storageGibibytes: z.int().min(0).describe('Sizes of its disks in GiB.'),
          }),
        )
        .max(UNCLAIMED_NAMED_MAXIMUM)
        .optional()
        .describe(
          'Guests on the host that no Instance names, from the first observation on. Their capacity is not reused.',
        ),
    })
    .describe('Observed content of the node. Written by its agent.'),
  columns: [
    { name: 'Version', type: 'string', jsonPath: '.spec.agentVersion' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.spec.hypervisor' },
    { name: 'Guests', type: 'integer', jsonPath: '.status.held.guests' },
    { name: 'Volumes', type: 'integer', jsonPath: '.status.held.volumes' },
    { name: 'Unclaimed', type: 'integer', jsonPath: '.status.held.unclaimed' },
    AGE,
  ],
})
export type NodeReportStatus = z.infer<typeof NodeReport.status>
export type NodeReportSpec = z.infer<typeof NodeReport.spec>

export const Observation = resource({
  kind: 'Observation',
  plural: 'observations',
  shortNames: ['obs'],
  scope: 'Namespaced',
  description:
    'A request to this node to check whether another node with missing heartbeats still answers. Its name is the ' +
    'name of that node. The platform creates and removes it; the agent answers it.',
  spec: z
    .strictObject({
      endpoint: z
        .strictObject({
          url: ObjectName.describe('HTTPS address of the listener.'),
          certificateFingerprint: z
            .string()
            .max(64)
            .describe('SHA-256 of its certificate in lower-case hex; no other certificate is accepted.'),
        })
        .describe("Listener of the other node's agent."),
      requestedAt: z.string().max(64).describe('Identifies the request; a later one is checked again.'),
    })
    .describe('Requested check. Written by the platform.'),
  status: z
    .strictObject({
      ...OBSERVED,
      requestedAt: z.string().max(64).describe('Request that this answers.'),
      answer: z
        .enum(['agent', 'host', 'nothing'])
        .describe(
          'agent: the agent answers with its certificate. host: something else on the host answers. nothing: no ' +
            'answer.',
        ),
      detail: z.string().max(1024).describe('Human-readable findings.'),
    })
    .describe('Findings of this node. Written by its agent.'),
  columns: [
    { name: 'Endpoint', type: 'string', jsonPath: '.spec.endpoint.url' },
    { name: 'Answer', type: 'string', jsonPath: '.status.answer' },
    AGE,
  ],
})
export type ObservationSpec = z.infer<typeof Observation.spec>
export type ObservationStatus = z.infer<typeof Observation.status>

const Count = z.int().min(0)
/** Header of a request for usage: a controller of an earlier release does not send it, and refuses what it does not
 *  know. */
export const USAGE_FIELDS_HEADER = 'svccloud-usage-fields'
export const USAGE_FIELDS = 'load'
/** Counters of a guest since its process started, as its node's agent reports them at /v1/usage. */
export const GuestUsage = z.strictObject({
  instance: z.string(),
  /** The counters started with this start of the process; another start has another epoch. */
  epoch: z.string(),
  counters: z.strictObject({
    networkReceivedBytes: Count,
    networkTransmittedBytes: Count,
    diskReadBytes: Count,
    diskWrittenBytes: Count,
    diskReadOperations: Count,
    diskWriteOperations: Count,
  }),
  /** Only for a caller that asks for it. Null: not measured. */
  load: z.strictObject({ cpuMilliseconds: Count.nullable(), memoryUsedBytes: Count.nullable() }).optional(),
})
export type GuestUsage = z.infer<typeof GuestUsage>

export const NODE_REPORT_NAME = 'node'
export const HEARTBEAT_LEASE_NAME = 'heartbeat'
/** Secret in the node's namespace whose key `token` the API server sends to the agent's listener. */
export const AGENT_ACCESS_SECRET_NAME = 'agent-access'
/** Keeps an Instance or a Volume until its status reports that the node has removed everything of it. Controllers add
 *  and remove it: agents have no permission to. */
export const AGENT_FINALIZER = 'svccloud.dev/agent'
const NODE_NAMESPACE_START = 'node-'
/** Namespace with the objects that one node must run and hold, and with the reports of its agent. */
export const nodeNamespace = (nodeName: string): string => `${NODE_NAMESPACE_START}${nodeName}`
/** The node of a namespace; undefined when it is not a node's. */
export const nodeOfNamespace = (namespace: string): string | undefined =>
  namespace.startsWith(NODE_NAMESPACE_START) ? namespace.slice(NODE_NAMESPACE_START.length) : undefined
/** The node that an object in its namespace is for. */
export const nodeOf = ({
  metadata: { namespace = '' },
}: {
  readonly metadata: { readonly namespace?: string }
}): string => nodeOfNamespace(namespace) ?? ''
