/** Instance and Volume: what one node must run and hold. They live in the node's namespace (`node-<name>`), so that the
 *  node's agent needs to see nothing else. Controllers write spec and metadata, the agent writes status and nothing
 *  else. */
import { z } from 'zod'
import { PREFIXES_OF_SERVER_MAXIMUM } from '../../domain/public-pool/rules.ts'
import { DATA_STORAGES_PER_SERVER_MAXIMUM } from '../../domain/storage/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import { Conditions, ObjectStorageZone, ObservedGeneration, SshHostKeys, StoredLabels } from '../kit/shapes.ts'
import { IsRemoved, MigrationSecretName, OperationId, Origin, Port } from './parts.ts'

export * from './image.ts'

const Reference = z.strictObject({
  namespace: z.string().max(253).describe('Namespace of its account.'),
  name: z.string().max(253).describe('Its name.'),
  uid: z.string().max(64).describe('Its uid, which no other ever has.'),
})
const Attempt = z.int().min(1).max(100)
const MirroredVolumes = z
  .array(z.string().max(253))
  .max(32)
  .describe('Volumes that are copied from the sender while the guest runs; the others are shared.')
const HypervisorName = z
  .enum(['qemu-kvm', 'qemu-tcg', 'simulated'])
  .describe('What runs guests: QEMU with hardware acceleration or without, or a simulation.')

/** What a guest is given to use. */
const InterfaceAddress = z.strictObject({
  address: z.string().max(45).describe('The address.'),
  prefix: z.int().min(0).max(128).describe('Length of its network prefix in bits.'),
  gateway: z.string().max(45).describe('Router for everything else.'),
})

/** More than a server may have besides the first one. */
const INTERFACE_SLOTS = 7
const PortName = z.string().max(63).describe("Port of the zone's network that the host joins it to.")

const NetworkInterface = z.strictObject({
  portName: PortName.optional().describe(
    "Port of the zone's network that the host joins it to; that of the name of this Instance when absent.",
  ),
  slot: z
    .int()
    .min(1)
    .max(INTERFACE_SLOTS)
    .optional()
    .describe('Where the guest has it, when it comes and goes while the guest runs; never the public one.'),
  macAddress: z.string().max(17).describe('Its MAC address, as in 52:54:00:12:34:56.'),
  kind: z.enum(['public', 'private']).describe('Whether it is in the Internet or in a private network.'),
  ipv4: InterfaceAddress.optional().describe('Its IPv4 address.'),
  ipv6: InterfaceAddress.optional().describe('Its IPv6 address: the first one of its prefix.'),
  routedPrefixes: z
    .array(z.string().max(49))
    .max(PREFIXES_OF_SERVER_MAXIMUM)
    .optional()
    .describe(
      'IPv6 prefixes that are forwarded to the guest: that of its address, and those that it had before and may ' +
        'still use.',
    ),
})

const StopRequest = z.strictObject({
  id: OperationId,
  type: z.enum(['soft', 'hard']).describe('soft presses the power button, hard cuts the power.'),
  timeoutSeconds: z.int().min(1).max(600).describe('How long a soft stop may take.'),
  timeoutAction: z.enum(['fail', 'hard']).describe('What follows when it takes longer.'),
})

const Receive = z.strictObject({
  id: OperationId,
  attempt: Attempt.describe('A higher one begins anew; what the attempt before had received is thrown away.'),
  mirroredVolumes: MirroredVolumes,
  secretName: MigrationSecretName,
})

const Send = z.strictObject({
  id: OperationId,
  attempt: Attempt.describe('A higher one begins anew.'),
  host: z.string().max(253).describe('Host on which the receiver listens.'),
  port: Port.describe('Port on which it takes memory and device state.'),
  diskPort: Port.optional().describe('Port on which it takes the copies of mirrored volumes.'),
  mirroredVolumes: MirroredVolumes,
  secretName: MigrationSecretName,
  downtimeLimitMilliseconds: z.int().min(1).max(60_000).describe('How long the guest may be paused at most.'),
  isThrottled: z.boolean().describe('Whether the guest may be slowed down so that the transfer ends.'),
  timeoutSeconds: z.int().min(1).max(86_400).describe('After which the attempt has failed.'),
  isCancelled: z
    .boolean()
    .describe('Whether the transfer is cancelled: the guest goes on here, unless it was handed over already.'),
})

const GuestMetadata = z.strictObject({
  isEnabled: z.boolean().describe('Whether the guest may read the rest from its metadata service.'),
  id: z.string().max(253).describe('Id of the server.'),
  title: z.string().max(255).describe('Title of the server.'),
  zone: z.string().max(63).describe('Zone of the server.'),
  region: z.string().max(63).describe('Region of the zone.'),
  plan: z.string().max(63).describe('Plan of the server.'),
  publicKeys: z.array(z.string().max(16_384)).max(100).describe('SSH keys of its default user, in OpenSSH format.'),
  labels: StoredLabels.describe('Labels of the server.'),
  userDataSecretName: z
    .string()
    .max(253)
    .optional()
    .describe("Secret of this node's namespace whose key userData holds the user data."),
})

const Transfer = z.strictObject({
  id: OperationId,
  attempt: Attempt.describe('The attempt of spec.receive or spec.send that this speaks of.'),
  role: z.enum(['receive', 'send']).describe('Which end this node is.'),
  phase: z
    .enum(['preparing', 'transferring', 'completed', 'failed'])
    .describe(
      'Of the receiver: preparing until it listens, transferring while it waits and takes, completed when the guest ' +
        'runs here, failed when the attempt is over without that. Of the sender: failed when the guest goes on here; ' +
        'completed when it does not, because it was handed over, or because it ended while it was sent: only the ' +
        'receiver knows whether it arrived. A receiver may go on waiting after its sender has completed: then what ' +
        'was sent is lost.',
    ),
  host: z.string().max(253).optional().describe('Host on which the receiver listens.'),
  port: z.int().optional().describe('Port on which it takes memory and device state.'),
  diskPort: z.int().optional().describe('Port on which it takes the copies of mirrored volumes.'),
  iteration: z.int().min(0).describe('How often memory was gone through.'),
  transferredBytes: z.int().min(0).describe('Bytes that were sent.'),
  totalBytes: z.int().min(0).describe('Bytes that are to be sent; 0 when the hypervisor does not say.'),
  dirtyBytesPerSecond: z.int().min(0).describe('Bytes of memory that the guest changes in a second.'),
  downtimeMilliseconds: z.int().min(0).describe('How long the guest stood still; 0 until completed.'),
  detail: z.string().max(1024).describe('Why it failed, for people; may be empty.'),
  reportedAt: z.string().max(64).describe('When this was observed, RFC 3339.'),
})

export const Instance = resource({
  kind: 'Instance',
  plural: 'instances',
  shortNames: ['inst'],
  scope: 'Namespaced',
  description:
    'A guest that this node must run. Made by the platform from a Server; its name is the uid of the Server.',
  spec: z
    .strictObject({
      server: Reference.describe('Server that it is the guest of. Cannot be changed.'),
      hostname: z.string().max(63).describe('Host name of the guest.'),
      power: z.enum(['running', 'stopped']).describe('Whether the guest is to run.'),
      incarnation: z
        .int()
        .min(0)
        .describe(
          'The agent starts each incarnation once: a guest that ended is never restarted without a higher number.',
        ),
      stop: StopRequest.optional().describe(
        'How a running guest is ended when power is stopped or the incarnation rises.',
      ),
      cores: z.int().min(1).max(512).describe('Virtual cores.'),
      memoryMebibytes: z.int().min(32).max(4_194_304).describe('Memory in MiB.'),
      disks: z
        .array(
          z.strictObject({
            volume: z.string().max(253).describe("Volume of this node's namespace."),
            serial: z.string().max(20).describe('Serial number by which the guest finds the disk.'),
            slot: z
              .int()
              .min(1)
              .max(DATA_STORAGES_PER_SERVER_MAXIMUM)
              .optional()
              .describe('Where the guest has it, when it comes and goes while the guest runs; never the first disk.'),
          }),
        )
        .min(1)
        .max(32)
        .describe('Disks in their order; the guest boots from the first one.'),
      forcedVolumes: z
        .array(z.string().max(253))
        .max(32)
        .optional()
        .describe('Volumes that are taken from the guest even when it does not release them.'),
      interfaces: z
        .array(NetworkInterface)
        .max(INTERFACE_SLOTS + 1)
        .describe('Network interfaces in their order.'),
      template: z
        .string()
        .max(63)
        .describe('Template that the boot disk was made from; empty for a disk that brings its own boot loader.'),
      receive: Receive.optional().describe(
        'The incarnation comes here from another node instead of being started: the node waits for it, and never ' +
          'boots it itself.',
      ),
      send: Send.optional().describe('The running guest goes to another node.'),
      metadata: GuestMetadata.describe('What the metadata service tells the guest.'),
    })
    .describe('What the node must run. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z
        .enum(['waiting', 'starting', 'running', 'stopping', 'stopped', 'error', 'receiving', 'handed_over'])
        .describe(
          'What the guest does. receiving waits for a guest that another node sends; handed_over was sent whole, ' +
            'is paused here and must not go on.',
        ),
      detail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      incarnation: z
        .int()
        .min(0)
        .describe('The incarnation that state speaks of: the newest that was started; 0 before the first.'),
      startedAt: z.string().max(64).optional().describe('When the incarnation was started, RFC 3339.'),
      endedAt: z.string().max(64).optional().describe('When it ended, RFC 3339.'),
      endReason: z
        .enum(['requested', 'guest_shutdown', 'crashed'])
        .optional()
        .describe(
          'Why it ended: because that was requested, by the guest itself, or neither (also when the host restarted ' +
            'or the agent was not there).',
        ),
      stop: z
        .strictObject({
          id: OperationId,
          outcome: z.enum(['stopped', 'timed_out']).describe('How it ended.'),
        })
        .optional()
        .describe('The last stop request that is over.'),
      transfer: Transfer.optional().describe('How far the last attempt of spec.receive or spec.send is.'),
      isRemoved: IsRemoved,
      volumes: z
        .array(z.string().max(253))
        .max(32)
        .optional()
        .describe('Volumes that the guest has; none while there is no guest.'),
      unheldVolumes: z
        .array(z.string().max(253))
        .max(32)
        .optional()
        .describe('Those of the volumes that only its host has open, without a device of the guest.'),
      interfaces: z
        .array(PortName)
        .max(INTERFACE_SLOTS + 1)
        .optional()
        .describe('Ports of the network interfaces that the guest has; none while there is no guest.'),
      hypervisor: HypervisorName.optional(),
      forwards: z
        .array(
          z.strictObject({
            guestPort: z.int().describe('Port of the guest.'),
            host: z.string().max(253).describe('Address of the host that leads there.'),
            hostPort: z.int().describe('Port of the host that leads there.'),
          }),
        )
        .max(16)
        .optional()
        .describe(
          'Ports of the host that are forwarded to ports of the guest, where the guest has no own address ' +
            '(user-mode networking).',
        ),
      sshHostKeys: SshHostKeys.optional().describe(
        'Public host keys of its SSH server, as the guest has printed them on its console since its start.',
      ),
    })
    .describe('What the guest does. Written by the agent of the node.'),
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' },
    { name: 'Power', type: 'string', jsonPath: '.spec.power' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Incarnation', type: 'integer', jsonPath: '.status.incarnation' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.status.hypervisor', priority: 1 },
    { name: 'SSH', type: 'string', jsonPath: '.status.forwards[?(@.guestPort==22)].hostPort', priority: 1 },
    { name: 'Detail', type: 'string', jsonPath: '.status.detail', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [fixed('server')],
})
export type InstanceSpec = z.infer<typeof Instance.spec>
export type InstanceStatus = z.infer<typeof Instance.status>

/** More than an account may have. */
const VOLUME_SNAPSHOTS_MAXIMUM = 512
const SnapshotName = z
  .string()
  .max(63)
  .describe('uid of the Snapshot, or of the Storage that is made as a copy of this one.')

/** More than can be lost one after the other before a server comes to rest. */
export const LOST_HOSTS_MAXIMUM = 8

export const Volume = resource({
  kind: 'Volume',
  plural: 'volumes',
  shortNames: ['vol'],
  scope: 'Namespaced',
  description:
    'A disk that this node must hold. Made by the platform from a Storage; its name is the uid of the Storage.',
  spec: z
    .strictObject({
      storage: Reference.describe('Storage that it holds the data of. Cannot be changed.'),
      sizeGibibytes: z.int().min(1).max(65_536).describe('Size in GiB; it may grow.'),
      source: z
        .strictObject({
          kind: z
            .enum(['template', 'image', 'snapshot', 'backup', 'mirror', 'copy'])
            .describe(
              'template: its image. image: a copy of the Image of this node. snapshot: a copy of a snapshot of ' +
                'another volume. backup: what a BackupJob reads from its store. mirror: empty, because the data ' +
                'comes with the running guest. copy: all of what another node holds, before the volume is ready, ' +
                'from where copyFrom says.',
            ),
          name: z
            .string()
            .max(253)
            .describe(
              'Name of the template, of the Image, of the Snapshot, of the Backup, or of the operation that moves ' +
                'the data.',
            ),
          volume: z.string().max(253).optional().describe('Of a snapshot: the volume that it was taken of.'),
          pool: z
            .string()
            .max(63)
            .optional()
            .describe("Of a snapshot: the shared storage that it is on; this node's own disks when absent."),
          accountId: z
            .string()
            .max(63)
            .optional()
            .describe('Of a backup: the account whose part of the store is read.'),
          secretName: z
            .string()
            .max(253)
            .optional()
            .describe("Of a backup: Secret of this node's namespace with the account's key."),
          objectStorageZone: ObjectStorageZone,
        })
        .optional()
        .describe('What the disk begins as; empty when absent.'),
      copyFrom: z
        .strictObject({
          id: OperationId,
          host: z.string().max(253).describe('Host that serves the disk.'),
          port: Port.describe('Port on which it does.'),
          secretName: MigrationSecretName,
        })
        .optional()
        .describe('Where a source of kind copy is read from, as soon as the other node serves the disk.'),
      serve: z
        .strictObject({ id: OperationId, secretName: MigrationSecretName })
        .optional()
        .describe('Another node may read the disk while no guest has it open; status.serving says where.'),
      origin: Origin.optional().describe(
        'Of data that another node held: the template that it began as, as status.origin says there. Guests boot the ' +
          'kernel of that version.',
      ),
      // Where the data is can be set only once: a later edit would lose sight of it.
      pool: z
        .string()
        .max(63)
        .optional()
        .describe(
          "Shared storage that all nodes with the pool see as one; the host's own disks when absent. " +
            'Cannot be changed.',
        ),
      isRetained: z
        .boolean()
        .optional()
        .describe('Whether the data stays when this object goes, because another node holds the volume now.'),
      takesOverFrom: z
        .array(
          z.strictObject({
            node: z.string().max(63).describe('The lost host.'),
            bootId: z.string().max(64).describe('The boot of it of which nothing runs.'),
          }),
        )
        .max(LOST_HOSTS_MAXIMUM)
        .optional()
        .describe(
          'Of shared storage: hosts that were proven to run nothing, so that this one takes over what they ' +
            'had. Any other host that has the disk keeps it.',
        ),
      arrivingFor: z
        .string()
        .max(253)
        .optional()
        .describe('Of data that both nodes of a move see: the operation of that move, until the server lives here.'),
      snapshots: z
        .array(
          z.strictObject({
            name: SnapshotName,
            shall: z
              .enum(['be', 'go'])
              .describe('be: it is taken, unless it is there. go: it is removed. Others stay as they are.'),
          }),
        )
        .max(VOLUME_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('What is to be done about snapshots of the disk.'),
    })
    .describe('What the node must hold. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z
        .enum(['creating', 'ready', 'error', 'lost'])
        .describe(
          'Whether guests may open the disk. lost: it was there once and is missing now, or what counts is on ' +
            'another host; no other disk is made in its place.',
        ),
      detail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      sizeGibibytes: z.int().optional().describe('Size in GiB that the disk has.'),
      origin: Origin.optional().describe('The version of a template that the data began as.'),
      serving: z
        .strictObject({
          id: OperationId,
          host: z.string().max(253).describe('Host on which it is read.'),
          port: Port.describe('Port on which it is read.'),
        })
        .optional()
        .describe('Where the disk is served for spec.serve.'),
      snapshots: z
        .array(
          z.strictObject({
            name: SnapshotName,
            sizeGibibytes: z.int().describe('Size of the disk at that point, in GiB.'),
            isFrozen: z.boolean().describe('Whether the file systems of the guest were frozen.'),
            usedBytes: z.int().min(0).optional().describe('Room that it alone takes, where the host knows.'),
          }),
        )
        .max(VOLUME_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('The snapshots that are in the disk.'),
      lostSnapshots: z
        .array(SnapshotName)
        .max(VOLUME_SNAPSHOTS_MAXIMUM)
        .optional()
        .describe('Snapshots of spec.snapshots that were in the disk and are missing now: they are not taken again.'),
      isRemoved: IsRemoved,
    })
    .describe('What the node holds. Written by its agent.'),
  columns: [
    { name: 'Size', type: 'integer', jsonPath: '.spec.sizeGibibytes' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Source', type: 'string', jsonPath: '.spec.source.name' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  rules: [fixed('storage'), fixed('pool')],
})
export type VolumeSpec = z.infer<typeof Volume.spec>
export type VolumeStatus = z.infer<typeof Volume.status>

const Holding = z.int().min(0)
const Held = z
  .strictObject({
    guests: Holding.describe('Guests, running or ended.'),
    volumes: Holding.describe("Disks on the host's own storage, and those of pools that it uses."),
    images: Holding.describe('Custom images, also unfinished ones.'),
    unclaimed: Holding.describe('Of all these: those that no object names for ten minutes or longer.'),
    quarantined: Holding.optional().describe('Disks that were ended and are kept for a while.'),
  })
  .describe('How much is on the host, whether or not an object names it.')

/** As many as a report names; the count has them all. */
export const UNCLAIMED_NAMED_MAXIMUM = 500

/** Half a sentence. */
export const NETWORK_OBSTACLE_CHARACTERS = 512

export const NodeReport = resource({
  kind: 'NodeReport',
  plural: 'nodereports',
  shortNames: ['nr'],
  scope: 'Namespaced',
  description:
    'What a node says of itself: one object named `node` in its namespace, written by its agent. Being alive is ' +
    'said by renewing the Lease `heartbeat`.',
  spec: z
    .strictObject({
      agentVersion: z.string().max(63).describe('Version of the agent.'),
      bootId: z.string().max(64).describe('Changes with every boot of the host.'),
      logicalCpus: z.int().describe('Logical processors of the host.'),
      memoryMebibytes: z.int().describe('Memory of the host in MiB.'),
      storageGibibytes: z.int().describe('Room for disks in GiB.'),
      hypervisor: HypervisorName,
      features: z.array(z.string().max(63)).max(32).describe('What the host offers beyond running guests.'),
      pools: z.array(z.string().max(63)).max(16).optional().describe('Shared storage that the host has mounted.'),
      templates: z
        .array(z.string().max(63))
        .max(64)
        .optional()
        .describe('Templates whose image is built on the host: servers of others wait until theirs is.'),
      managedImageVersion: z
        .string()
        .max(63)
        .optional()
        .describe('Version of the image that managed machines are made from on this host; absent without it.'),
      databaseImageVersion: z
        .string()
        .max(63)
        .optional()
        .describe('Version of the image that machines of databases are made from on this host; absent without it.'),
      guestCount: z
        .int()
        .min(0)
        .optional()
        .describe('Guests that were alive when this was written: none where the host has just started.'),
      networkObstacle: z
        .string()
        .max(NETWORK_OBSTACLE_CHARACTERS)
        .optional()
        .describe('Why the host has no network for servers, for people; absent where it has one.'),
      migrationHost: z.string().max(253).optional().describe('Where other hosts reach this one for guests that move.'),
      endpoint: z
        .strictObject({
          url: z.string().max(253).describe('Address of the HTTPS listener.'),
          certificateFingerprint: z.string().max(64).describe('SHA-256 of its certificate in hex.'),
        })
        .optional()
        .describe('Where the agent lets the platform reach consoles.'),
    })
    .describe('What the node is. Written by its agent.'),
  status: z
    .strictObject({
      held: Held.optional(),
      heldAt: z.string().max(64).optional().describe('When the host was looked at for that, RFC 3339.'),
      unclaimed: z
        .array(
          z.strictObject({
            kind: z.enum(['Instance', 'Volume', 'Image']).describe('The kind of object that is missing.'),
            name: z.string().max(253).describe('The name that the object would have.'),
            since: z.string().max(64).describe('When that was seen first, RFC 3339.'),
          }),
        )
        .max(UNCLAIMED_NAMED_MAXIMUM)
        .optional()
        .describe('What is on the host and no object names, for ten minutes or longer. Nobody removes it.'),
      unnamed: z
        .array(
          z.strictObject({
            name: z.string().max(253).describe('The name that its Instance would have.'),
            server: z
              .strictObject({
                namespace: z.string().max(63).describe('Namespace of its account.'),
                name: z.string().max(253).describe('Id of the server.'),
              })
              .optional()
              .describe('Its server; absent where the host does not know it.'),
            cores: z.int().min(0).describe('Virtual cores that it has.'),
            memoryMebibytes: z.int().min(0).describe('Its memory in MiB.'),
            storageGibibytes: z.int().min(0).describe('Sizes of its disks in GiB.'),
          }),
        )
        .max(UNCLAIMED_NAMED_MAXIMUM)
        .optional()
        .describe('Guests on the host that no Instance names, from the first look on: their room is not given again.'),
    })
    .describe('What the node holds. Written by its agent.'),
  columns: [
    { name: 'Version', type: 'string', jsonPath: '.spec.agentVersion' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.spec.hypervisor' },
    { name: 'Guests', type: 'integer', jsonPath: '.status.held.guests' },
    { name: 'Volumes', type: 'integer', jsonPath: '.status.held.volumes' },
    { name: 'Unclaimed', type: 'integer', jsonPath: '.status.held.unclaimed' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
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
    'A question to this node: does another one, whose heartbeat is missed, answer it? Its name is that of the ' +
    'other node. Asked and removed by the platform, answered by the agent.',
  spec: z
    .strictObject({
      endpoint: z
        .strictObject({
          url: z.string().max(253).describe('HTTPS address of the listener.'),
          certificateFingerprint: z
            .string()
            .max(64)
            .describe('SHA-256 of its certificate, in lower-case hex; nobody else is believed.'),
        })
        .describe('Where the agent of the other node listens.'),
      requestedAt: z.string().max(64).describe('Which request it is: a later one is looked into anew.'),
    })
    .describe('What to look at. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      requestedAt: z.string().max(64).describe('The request that is answered.'),
      answer: z
        .enum(['agent', 'host', 'nothing'])
        .describe(
          'agent when it answers as itself, host when something answers there that is not the agent, nothing ' +
            'without a sign of life.',
        ),
      detail: z.string().max(1024).describe('What was met, for people.'),
    })
    .describe('What this node found. Written by its agent.'),
  columns: [
    { name: 'Endpoint', type: 'string', jsonPath: '.spec.endpoint.url' },
    { name: 'Answer', type: 'string', jsonPath: '.status.answer' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type ObservationSpec = z.infer<typeof Observation.spec>
export type ObservationStatus = z.infer<typeof Observation.status>

const Count = z.int().min(0)
/** What a guest has moved since its process began, as its node's agent answers at /v1/usage. */
export const GuestUsage = z.strictObject({
  instance: z.string(),
  /** The counters began with this start of this process; another one has another epoch. */
  epoch: z.string(),
  counters: z.strictObject({
    networkReceivedBytes: Count,
    networkTransmittedBytes: Count,
    diskReadBytes: Count,
    diskWrittenBytes: Count,
    diskReadOperations: Count,
    diskWriteOperations: Count,
  }),
})
export type GuestUsage = z.infer<typeof GuestUsage>

export const NODE_REPORT_NAME = 'node'
export const HEARTBEAT_LEASE_NAME = 'heartbeat'
/** Secret in the node's namespace whose key `token` the API server sends to the agent's listener. */
export const AGENT_ACCESS_SECRET_NAME = 'agent-access'
/** Keeps an Instance or a Volume until its status says that nothing of it is left on the node. Controllers put it on
 *  and take it off: agents have no right to. */
export const AGENT_FINALIZER = 'svccloud.dev/agent'
const NODE_NAMESPACE_START = 'node-'
/** The namespace that holds what one node must run and hold, and what its agent says. */
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
