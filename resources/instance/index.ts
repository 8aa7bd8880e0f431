/** Instance and Volume: what one node must run and hold. They live in the node's namespace (`node-<name>`), so that the
 *  node's
 *  agent needs to see nothing else. Controllers write spec, the agent writes status. */
import { z } from 'zod'
import { PREFIXES_OF_SERVER_MAXIMUM } from '../../domain/public-pool.ts'
import { fixed, resource } from '../define.ts'
import { Conditions, ObservedGeneration, StoredLabels } from '../shapes.ts'

const Reference = z.strictObject({
  namespace: z.string().max(253).describe('Namespace of its account.'),
  name: z.string().max(253).describe('Its name.'),
  uid: z.string().max(64).describe('Its uid, which no other ever has.'),
})
/** What a guest is given to use: an address, the length of its prefix in bits, and where the rest of the world is. */
const InterfaceAddress = z.strictObject({
  address: z.string().max(45),
  prefix: z.int().min(0).max(128),
  gateway: z.string().max(45),
})

export const Instance = resource({
  kind: 'Instance',
  plural: 'instances',
  shortNames: ['inst'],
  scope: 'Namespaced',
  description:
    'A guest that this node must run. Made by the platform from a Server; its name is the uid of the Server.',
  spec: z.strictObject({
    server: Reference,
    hostname: z.string().max(63),
    power: z.enum(['running', 'stopped']),
    /** The agent starts each incarnation once: a guest that ended is never restarted without a higher number. */
    incarnation: z.int().min(0),
    /** How a running guest is ended when power is stopped or the incarnation rises. `id` is the operation's. */
    stop: z
      .strictObject({
        id: z.string().max(253),
        type: z.enum(['soft', 'hard']),
        timeoutSeconds: z.int().min(1).max(600),
        timeoutAction: z.enum(['fail', 'hard']),
      })
      .optional(),
    cores: z.int().min(1).max(512),
    memoryMebibytes: z.int().min(32).max(4_194_304),
    /** In order; the first one is booted from. */
    disks: z
      .array(z.strictObject({ volume: z.string().max(253), serial: z.string().max(20) }))
      .min(1)
      .max(32),
    interfaces: z
      .array(
        z.strictObject({
          macAddress: z.string().max(17),
          kind: z.enum(['public', 'private']),
          ipv4: InterfaceAddress.optional(),
          /** The first address of the prefix. */
          ipv6: InterfaceAddress.optional(),
          /** IPv6 prefixes that lead to the guest: that of its address, and those that it had before and may still use.
           */
          routedPrefixes: z.array(z.string().max(49)).max(PREFIXES_OF_SERVER_MAXIMUM).optional(),
        }),
      )
      .max(8),
    template: z.string().max(63),
    /** The incarnation comes here from another node instead of being started: the node waits for it, and never boots it
     *  itself. */
    receive: z
      .strictObject({
        id: z.string().max(253).describe('Of the operation that moves the guest.'),
        /** A higher one than was tried begins anew; what the attempt before had received is thrown away. */
        attempt: z.int().min(1).max(100),
        /** Disks that are copied from the sender while the guest runs; the others are shared. */
        mirroredVolumes: z.array(z.string().max(253)).max(32),
        /** Secret of this node's namespace whose key `psk` both ends know (64 hex digits). */
        secretName: z.string().max(253),
      })
      .optional(),
    /** The running guest goes to another node. */
    send: z
      .strictObject({
        id: z.string().max(253),
        attempt: z.int().min(1).max(100),
        host: z.string().max(253),
        port: z.int().min(1).max(65_535),
        /** Where the receiver takes the copies of mirrored disks. */
        diskPort: z.int().min(1).max(65_535).optional(),
        mirroredVolumes: z.array(z.string().max(253)).max(32),
        secretName: z.string().max(253),
        downtimeLimitMilliseconds: z.int().min(1).max(60_000),
        /** Whether the guest may be slowed so that the transfer ends. */
        isThrottled: z.boolean(),
        timeoutSeconds: z.int().min(1).max(86_400),
        /** Given up: the guest goes on here, unless it was handed over already. */
        isCancelled: z.boolean(),
      })
      .optional(),
    metadata: z.strictObject({
      isEnabled: z.boolean(),
      id: z.string().max(253),
      title: z.string().max(255),
      zone: z.string().max(63),
      region: z.string().max(63),
      plan: z.string().max(63),
      publicKeys: z.array(z.string().max(16_384)).max(100),
      labels: StoredLabels,
      /** Secret of the node's namespace whose key userData holds the user data. */
      userDataSecretName: z.string().max(253).optional(),
    }),
  }),
  status: z.strictObject({
    observedGeneration: z.int().optional(),
    conditions: Conditions.optional(),
    /** receiving: waits for a guest that another node sends. handed_over: the guest was sent whole and stands still
     *  here; it must not go on. */
    state: z.enum(['waiting', 'starting', 'running', 'stopping', 'stopped', 'error', 'receiving', 'handed_over']),
    detail: z.string().max(1024).optional(),
    /** The incarnation that `state` speaks of: the newest that was started. 0 before the first. */
    incarnation: z.int().min(0),
    startedAt: z.string().max(64).optional(),
    endedAt: z.string().max(64).optional(),
    /** Why the incarnation ended: asked for, by the guest itself, or neither (also: nobody was watching, or the host
     *  restarted). */
    endReason: z.enum(['requested', 'guest_shutdown', 'crashed']).optional(),
    /** The last stop request that is over. */
    stop: z.strictObject({ id: z.string().max(253), outcome: z.enum(['stopped', 'timed_out']) }).optional(),
    /** How far the last attempt of spec.receive or spec.send is. Of the receiver: preparing until it listens,
     *  transferring while it waits and takes,
     *  completed when the guest runs here, failed when the attempt is over without that. Of the sender: failed when the
     *  guest goes on here;
     *  completed when it does not, because it was handed over, or because it ended while it was sent (whether it
     *  arrived only the receiver
     *  knows). A receiver may go on waiting after its sender has completed: then what was sent is lost. */
    transfer: z
      .strictObject({
        id: z.string().max(253),
        attempt: z.int().min(1).max(100),
        role: z.enum(['receive', 'send']),
        phase: z.enum(['preparing', 'transferring', 'completed', 'failed']),
        /** Where the receiver listens. */
        host: z.string().max(253).optional(),
        port: z.int().optional(),
        diskPort: z.int().optional(),
        iteration: z.int().min(0),
        transferredBytes: z.int().min(0),
        /** 0 when the hypervisor does not tell. */
        totalBytes: z.int().min(0),
        dirtyBytesPerSecond: z.int().min(0),
        /** How long the guest stood still; 0 until completed. */
        downtimeMilliseconds: z.int().min(0),
        detail: z.string().max(1024),
        reportedAt: z.string().max(64),
      })
      .optional(),
    hypervisor: z.enum(['qemu-kvm', 'qemu-tcg', 'simulated']).optional(),
    /** Host ports that reach guest ports where the guest has no address of its own (user-mode networking). */
    forwards: z
      .array(z.strictObject({ guestPort: z.int(), host: z.string().max(253), hostPort: z.int() }))
      .max(16)
      .optional(),
  }),
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

export const Volume = resource({
  kind: 'Volume',
  plural: 'volumes',
  shortNames: ['vol'],
  scope: 'Namespaced',
  description:
    'A disk that this node must hold. Made by the platform from a Storage; its name is the uid of the Storage.',
  spec: z.strictObject({
    storage: Reference,
    sizeGibibytes: z.int().min(1).max(65_536),
    /** What it begins as: a template; or what another node holds, for the operation of that name: empty, because the
     *  disk comes with the running
     *  guest (mirror), or all of it before it is ready (copy), from where copyFrom says. */
    source: z.strictObject({ kind: z.enum(['template', 'mirror', 'copy']), name: z.string().max(253) }).optional(),
    /** With a source copy, as soon as the other node serves the disk. `id` is the operation's. */
    copyFrom: z
      .strictObject({
        id: z.string().max(253),
        host: z.string().max(253),
        port: z.int().min(1).max(65_535),
        /** Secret of this node's namespace whose key `psk` both ends know (64 hex digits). */
        secretName: z.string().max(253),
      })
      .optional(),
    /** No guest has the disk open, and another node may read it, for the operation `id`. Says where in status.serving.
     */
    serve: z.strictObject({ id: z.string().max(253), secretName: z.string().max(253) }).optional(),
    /** Of what another node holds: the template that its data began as, as status.origin says there. Guests boot the
     *  kernel of that version. */
    origin: z.strictObject({ name: z.string().max(253), version: z.string().max(253) }).optional(),
    /** Shared storage that all nodes with the pool see as one; the host's own disks when absent. Where data lies is
     *  said once: a change
     *  made by who does not know that it is there already would lose sight of them. */
    pool: z.string().max(63).optional(),
    /** The data stays when this object goes: another node holds the volume now. */
    isRetained: z.boolean().optional(),
    /** Of data that both nodes of a move see: the operation of that move, until the server lives here. */
    arrivingFor: z.string().max(253).optional(),
  }),
  status: z.strictObject({
    observedGeneration: z.int().optional(),
    conditions: Conditions.optional(),
    state: z.enum(['creating', 'ready', 'error']),
    detail: z.string().max(1024).optional(),
    sizeGibibytes: z.int().optional(),
    /** The version of a template that the data began as. */
    origin: z.strictObject({ name: z.string().max(253), version: z.string().max(253) }).optional(),
    /** Where the disk is served, for the operation of spec.serve. */
    serving: z
      .strictObject({ id: z.string().max(253), host: z.string().max(253), port: z.int().min(1).max(65_535) })
      .optional(),
  }),
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

export const NodeReport = resource({
  kind: 'NodeReport',
  plural: 'nodereports',
  scope: 'Namespaced',
  description:
    'What a node says of itself: one object named `node` in its namespace, written by its agent. Being alive is ' +
    'said by renewing the Lease `heartbeat`.',
  spec: z.strictObject({
    agentVersion: z.string().max(63),
    bootId: z.string().max(64),
    logicalCpus: z.int(),
    memoryMebibytes: z.int(),
    storageGibibytes: z.int(),
    hypervisor: z.enum(['qemu-kvm', 'qemu-tcg', 'simulated']),
    features: z.array(z.string().max(63)).max(32),
    /** Shared storage that the host has mounted. */
    pools: z.array(z.string().max(63)).max(16).optional(),
    /** Guests that live, when this was written: none where the host has just started. */
    guestCount: z.int().min(0).optional(),
    /** Where other hosts reach this one for guests that move. */
    migrationHost: z.string().max(253).optional(),
    /** Where the agent's HTTPS listener (console) is, and the SHA-256 of its certificate in hex. */
    endpoint: z.strictObject({ url: z.string().max(253), certificateFingerprint: z.string().max(64) }).optional(),
  }),
  status: z.strictObject({}),
  columns: [
    { name: 'Version', type: 'string', jsonPath: '.spec.agentVersion' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.spec.hypervisor' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
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
      askedAt: z.string().max(64).describe('Which question it is: a later one is asked anew.'),
    })
    .describe('What is asked. Written by the platform.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      askedAt: z.string().max(64).describe('The question that is answered.'),
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
/** Keeps an Instance or a Volume until nothing of it is left on the node. */
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
