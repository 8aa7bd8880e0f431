/** Nodes as they are stored: hypervisor hosts with their observed state. Cluster-scoped; the API shows the names. */
import { z } from 'zod'
import { NODE_STATES } from '../../domain/node/rules.ts'
import { resource } from '../kit/define.ts'
import { ReportedOperation, RequestedOrEditedOperation, StoredLabels, ZoneName } from '../kit/shapes.ts'
import { ObjectName, OBSERVED } from '../kit/fields.ts'
import { AGE, READY, STATE, ZONE } from '../kit/columns.ts'

/** Announced work on a node, as shown to the owners of its servers. */
const PlannedWork = z.strictObject({
  operationId: ObjectName.describe('Name of the Operation.'),
  plannedAt: z.string().max(64).describe('Time from which servers are moved away.'),
  reason: z.string().max(1024).describe('Human-readable reason.'),
  action: z.enum(['live', 'cold']).describe('How servers leave: live, or cold if necessary.'),
})

/** Proof that nothing that ran on a node still runs there. */
const Fence = z.strictObject({
  operationId: ObjectName.describe('Name of the Operation that obtained the proof.'),
  at: z.string().max(64).describe('Time of the proof.'),
  method: z.enum(['power_off', 'storage_block', 'attest']).describe('By what.'),
  evidence: z.string().max(1024).describe('Human-readable evidence, or the name of the attesting person.'),
  bootId: z.string().max(64).describe('The boot that has ended; empty when the node never reported one.'),
})

/** Power state of a silent node, as reported by its board management controller. */
const Power = z.strictObject({
  state: z.enum(['on', 'off', 'unknown']).describe('Last answer; unknown when it did not answer.'),
  since: z.string().max(64).describe('Time of the first such answer.'),
  readAt: z.string().max(64).describe('Time of the last such answer.'),
  failures: z.int().min(0).describe('Consecutive requests without an answer.'),
  cuts: z.int().min(0).describe('Number of requests to cut the power.'),
  detail: z.string().max(1024).describe('Why it did not answer; empty otherwise.'),
})

const StorageAccess = z.strictObject({
  protocol: z.enum(['ceph']).describe('Product that serves the shared storage.'),
  addresses: z
    .array(
      z
        .string()
        .min(2)
        .max(45)
        .regex(/^[0-9a-fA-F:.]+$/),
    )
    .min(1)
    .max(8)
    .describe('All IPv4 and IPv6 addresses that only this host uses to reach the storage.')
    .meta({ 'x-kubernetes-list-type': 'set' }),
  secretName: z
    .string()
    .min(1)
    .max(253)
    .describe(
      'Secret in the namespace svccloud-system: its key monitors has the monitor addresses; username (without ' +
        '`client.`) and key are the credentials.',
    ),
})

/** State of a node's access to shared storage. Written before anything is done, so that access is always restored. */
const StorageBlock = z.strictObject({
  operationId: ObjectName.describe('Name of the Operation that revoked it.'),
  access: StorageAccess.describe('Revoked access.'),
  isTaken: z.boolean().describe('Whether the storage has confirmed that it no longer serves the node.'),
  readAt: z.string().max(64).describe('Time of the last request to the storage.'),
  failures: z.int().min(0).describe('Consecutive requests that the storage did not fulfil.'),
  detail: z.string().max(1024).describe('Reason why it did not; empty otherwise.'),
})

export const Node = resource({
  kind: 'Node',
  plural: 'nodes',
  shortNames: ['hv'],
  scope: 'Cluster',
  description:
    'A hypervisor host. Its agent works in the namespace `node-<name>` and reports there. Set isCordoned to ' +
    'refuse new servers, or isInMaintenance to empty the host; each change becomes an operation in its namespace. ' +
    'A deleted node is removed when nothing is left on it.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the host.'),
      rack: z.string().min(1).max(63).default('rack-1').describe('Rack of the host: a failure domain within the zone.'),
      cpuPool: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe('Pool of nodes with similar processors; plans may require one.'),
      dedicatedAccountId: z
        .string()
        .max(64)
        .optional()
        .describe('Account whose servers alone are placed on it; any account when absent.'),
      roles: z
        .array(z.enum(['compute', 'storage', 'network']))
        .max(3)
        .default(['compute'])
        .describe('Roles of the host. Servers are placed only on hosts with the role compute.')
        .meta({ 'x-kubernetes-list-type': 'set' }),
      isCordoned: z.boolean().default(false).describe('Whether the node refuses new servers.'),
      isInMaintenance: z
        .boolean()
        .optional()
        .describe(
          'Whether to empty the node: its servers are moved away and no new ones are placed until it is uncordoned.',
        ),
      labels: StoredLabels.optional().describe('Labels for operators, as in the API.'),
      managementAddress: z.string().min(1).max(253).optional().describe('Address of the host for operators.'),
      bmc: z
        .strictObject({
          address: z.string().min(1).max(253).describe('Host name, address or URL of the controller.'),
          protocol: z.enum(['redfish', 'ipmi']).describe('Protocol of the controller.'),
          secretName: z
            .string()
            .min(1)
            .max(253)
            .describe(
              'Secret in the namespace svccloud-system whose keys username and password are the credentials. ' +
                'Its key certificateFingerprint (SHA-256 in hex) or ca.crt identifies the accepted certificate.',
            ),
        })
        .optional()
        .describe('Board management controller that can power off the host.'),
      storageAccess: StorageAccess.optional().describe(
        'Access to the shared storage with the disks of its servers, for fencing the node. Omit it when the ' +
          'node also has such disks on other storage.',
      ),
      desiredAgentVersion: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe('Required version of its agent; any version when absent.'),
      operation: RequestedOrEditedOperation,
      cpuOvercommit: z.int().min(1).max(64).default(4).describe('Virtual cores sold per logical CPU.'),
      reservedMemoryMebibytes: z
        .int()
        .min(0)
        .max(4_194_304)
        .default(2_048)
        .describe('Memory reserved for the host, in MiB.'),
    })
    .describe('The desired state of the node.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(NODE_STATES).optional().describe('Whether the node works and accepts servers.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      logicalCpus: z.int().optional().describe('Logical processors of the host.'),
      memoryMebibytes: z.int().optional().describe('Memory of the host in MiB.'),
      storageGibibytes: z.int().optional().describe('Disk capacity in GiB.'),
      agentVersion: z.string().max(63).optional().describe('Version of its agent.'),
      hypervisor: z.string().max(63).optional().describe('Hypervisor for the guests.'),
      pools: z.array(z.string().max(63)).max(16).optional().describe('Shared storage that the host reaches.'),
      bootId: z.string().max(64).optional().describe('Changes with every boot of the host.'),
      endpoint: z
        .strictObject({
          url: ObjectName.describe('Address of the HTTPS listener.'),
          certificateFingerprint: z.string().max(64).describe('SHA-256 of its certificate in hex.'),
        })
        .optional()
        .describe('Listener through which the platform reaches consoles.'),
      lastSeenAt: z.string().max(64).optional().describe('Time of the last heartbeat of a silent node.'),
      isCordoned: z.boolean().optional().describe('Applied value of spec.isCordoned.'),
      isInMaintenance: z.boolean().optional().describe('Applied value of spec.isInMaintenance.'),
      fence: Fence.optional().describe(
        'Proof that the node has lost its servers, which run elsewhere since then. Absent again when the node ' +
          'has returned empty with another boot.',
      ),
      power: Power.optional().describe('Known power state while it is silent.'),
      storageBlock: StorageBlock.optional().describe(
        'Revoked parts of its access to shared storage; absent when it has full access.',
      ),
      desiredAgentVersion: z.string().max(63).optional().describe('Last attempted value of spec.desiredAgentVersion.'),
      plannedWork: PlannedWork.optional().describe('Work for which servers leave the node.'),
      operation: ReportedOperation,
    })
    .describe('Observed state. Written by its controller.'),
  columns: [
    ZONE,
    STATE,
    READY,
    { name: 'CPUs', type: 'integer', jsonPath: '.status.logicalCpus' },
    { name: 'Memory', type: 'integer', jsonPath: '.status.memoryMebibytes' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.status.hypervisor' },
    { name: 'Rack', type: 'string', jsonPath: '.spec.rack', priority: 1 },
    { name: 'Agent', type: 'string', jsonPath: '.status.agentVersion', priority: 1 },
    { name: 'Operation', type: 'string', jsonPath: '.status.operation.kind', priority: 1 },
    { name: 'Detail', type: 'string', jsonPath: '.status.stateDetail', priority: 1 },
    AGE,
  ],
  selectableFields: ['.spec.zone', '.status.state'],
  fixed: ['zone'],
})
export type NodeSpec = z.infer<typeof Node.spec>
export type NodeStatus = z.infer<typeof Node.status>
export type NodeFence = z.infer<typeof Fence>
export type NodePower = z.infer<typeof Power>
export type NodeStorageBlock = z.infer<typeof StorageBlock>
/** Whether the node can be fenced without the attestation of two people. */
export const isFenceCapable = ({ bmc, storageAccess }: NodeSpec): boolean =>
  bmc !== undefined || storageAccess !== undefined
