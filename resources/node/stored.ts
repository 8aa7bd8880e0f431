/** Nodes as they are stored: hypervisor hosts and what is observed of them. Cluster-scoped; the API shows the names. */
import { z } from 'zod'
import { NODE_STATES } from '../../domain/node/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import {
  Conditions,
  ObservedGeneration,
  ReportedOperation,
  RequestedOrEditedOperation,
  StoredLabels,
  ZoneName,
} from '../kit/shapes.ts'

/** What is said of a node's work to those whose servers are on it. */
const PlannedWork = z.strictObject({
  operationId: z.string().max(253).describe('Name of the Operation.'),
  plannedAt: z.string().max(64).describe('From when on servers are moved away.'),
  reason: z.string().max(1024).describe('Why, for people.'),
  action: z.enum(['live', 'cold']).describe('How servers leave: live, or cold where that may be needed.'),
})

/** Proof that nothing runs on a node any more that it ran before. */
const Fence = z.strictObject({
  operationId: z.string().max(253).describe('Name of the Operation that brought the proof.'),
  at: z.string().max(64).describe('Since when it is proven.'),
  method: z.enum(['power_off', 'storage_block', 'attest']).describe('By what.'),
  evidence: z.string().max(1024).describe('What was seen, or who attests, for people.'),
  bootId: z.string().max(64).describe('The boot that has ended; empty when the node never told one.'),
})

/** What the board management controller says of the power of a node that has fallen silent. */
const Power = z.strictObject({
  state: z.enum(['on', 'off', 'unknown']).describe('What it said last; unknown when it did not answer.'),
  since: z.string().max(64).describe('Since when it says so.'),
  readAt: z.string().max(64).describe('When it said so last.'),
  failures: z.int().min(0).describe('How often in a row it did not answer.'),
  cuts: z.int().min(0).describe('How often it was asked to cut the power.'),
  detail: z.string().max(1024).describe('Why it did not answer; empty otherwise.'),
})

const StorageAccess = z.strictObject({
  protocol: z.enum(['ceph']).describe('What serves the shared storage.'),
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
    .describe('All IPv4 and IPv6 addresses from which the host reaches it, and nobody else.')
    .meta({ 'x-kubernetes-list-type': 'set' }),
  secretName: z
    .string()
    .min(1)
    .max(253)
    .describe(
      'Secret of the namespace svccloud-system: its key monitors says where the monitors are, username (without ' +
        '`client.`) and key are the credentials.',
    ),
})

/** What has become of the access of a node to shared storage. Written before anything is done, so that nobody forgets
 *  to give it back. */
const StorageBlock = z.strictObject({
  operationId: z.string().max(253).describe('Name of the Operation for which it was taken.'),
  access: StorageAccess.describe('What was taken.'),
  isTaken: z.boolean().describe('Whether the storage has acknowledged that it serves the node no more.'),
  readAt: z.string().max(64).describe('When the storage was asked last.'),
  failures: z.int().min(0).describe('How often in a row it did not do as it was asked.'),
  detail: z.string().max(1024).describe('Why not; empty otherwise.'),
})

export const Node = resource({
  kind: 'Node',
  plural: 'nodes',
  shortNames: ['hv'],
  scope: 'Cluster',
  description:
    'A hypervisor host. Its agent works in the namespace `node-<name>`, and says there what the host is. Set ' +
    'isCordoned to keep it from new servers, isInMaintenance to empty it; each such change becomes an operation ' +
    'in its namespace. A deleted one goes when nothing is left on it.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone that the host is in. Cannot be changed.'),
      rack: z
        .string()
        .min(1)
        .max(63)
        .default('rack-1')
        .describe('Rack that it is in: what fails together within the zone.'),
      cpuPool: z.string().min(1).max(63).optional().describe('Pool of like processors; plans may ask for one.'),
      dedicatedAccountId: z
        .string()
        .max(64)
        .optional()
        .describe('Only servers of this account are placed on it; those of anybody when absent.'),
      roles: z
        .array(z.enum(['compute', 'storage', 'network']))
        .max(3)
        .default(['compute'])
        .describe('What the host is for; servers are placed on those with the role compute only.')
        .meta({ 'x-kubernetes-list-type': 'set' }),
      isCordoned: z.boolean().default(false).describe('A cordoned node takes no new servers.'),
      isInMaintenance: z
        .boolean()
        .optional()
        .describe(
          'Whether the node is to be empty: its servers are moved away and nothing new comes, until it is uncordoned.',
        ),
      labels: StoredLabels.optional().describe('Labels of the API, for operators.'),
      managementAddress: z.string().min(1).max(253).optional().describe('Where operators reach the host.'),
      bmc: z
        .strictObject({
          address: z.string().min(1).max(253).describe('Host name, address or URL of the controller.'),
          protocol: z.enum(['redfish', 'ipmi']).describe('How it is spoken to.'),
          secretName: z
            .string()
            .min(1)
            .max(253)
            .describe(
              'Secret of the namespace svccloud-system whose keys username and password are the credentials; its key ' +
                'certificateFingerprint (SHA-256 in hex) or ca.crt says which certificate is the right one.',
            ),
        })
        .optional()
        .describe('The board management controller, by which the host can be powered off.'),
      storageAccess: StorageAccess.optional().describe(
        'Its access to the shared storage that the disks of its servers lie on, by which the node can be fenced; ' +
          'whoever has such disks on other storage too leaves it out.',
      ),
      desiredAgentVersion: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe('Version that its agent is to have; any version when absent.'),
      operation: RequestedOrEditedOperation,
      cpuOvercommit: z.int().min(1).max(64).default(4).describe('Virtual cores sold per logical CPU.'),
      reservedMemoryMebibytes: z
        .int()
        .min(0)
        .max(4_194_304)
        .default(2_048)
        .describe('Memory that the host keeps for itself, in MiB.'),
    })
    .describe('What the node is, and whether it takes servers.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(NODE_STATES).optional().describe('Whether the node works and takes servers.'),
      stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      logicalCpus: z.int().optional().describe('Logical processors of the host.'),
      memoryMebibytes: z.int().optional().describe('Memory of the host in MiB.'),
      storageGibibytes: z.int().optional().describe('Room for disks in GiB.'),
      agentVersion: z.string().max(63).optional().describe('Version of its agent.'),
      hypervisor: z.string().max(63).optional().describe('What runs the guests.'),
      pools: z.array(z.string().max(63)).max(16).optional().describe('Shared storage that the host reaches.'),
      bootId: z.string().max(64).optional().describe('Changes with every boot of the host.'),
      endpoint: z
        .strictObject({
          url: z.string().max(253).describe('Address of the HTTPS listener.'),
          certificateFingerprint: z.string().max(64).describe('SHA-256 of its certificate in hex.'),
        })
        .optional()
        .describe('Where the agent lets the platform reach consoles.'),
      lastSeenAt: z.string().max(64).optional().describe('The last heartbeat of a node that has fallen silent.'),
      isCordoned: z.boolean().optional().describe('What has been brought about of spec.isCordoned.'),
      isInMaintenance: z.boolean().optional().describe('What has been brought about of spec.isInMaintenance.'),
      fence: Fence.optional().describe(
        'Proof that the node has lost its servers, which live elsewhere from then on; absent again once it has ' +
          'come back with another boot and empty.',
      ),
      power: Power.optional().describe('What is known of its power while it is silent.'),
      storageBlock: StorageBlock.optional().describe(
        'Its access to shared storage, as far as it was taken away; absent when it has all of it.',
      ),
      desiredAgentVersion: z.string().max(63).optional().describe('What has been tried of spec.desiredAgentVersion.'),
      plannedWork: PlannedWork.optional().describe('The work for which servers leave the node.'),
      operation: ReportedOperation,
    })
    .describe('What is known of it. Written by its controller.'),
  columns: [
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'CPUs', type: 'integer', jsonPath: '.status.logicalCpus' },
    { name: 'Memory', type: 'integer', jsonPath: '.status.memoryMebibytes' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.status.hypervisor' },
    { name: 'Rack', type: 'string', jsonPath: '.spec.rack', priority: 1 },
    { name: 'Agent', type: 'string', jsonPath: '.status.agentVersion', priority: 1 },
    { name: 'Operation', type: 'string', jsonPath: '.status.operation.kind', priority: 1 },
    { name: 'Detail', type: 'string', jsonPath: '.status.stateDetail', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone', '.status.state'],
  rules: [fixed('zone')],
})
export type NodeSpec = z.infer<typeof Node.spec>
export type NodeStatus = z.infer<typeof Node.status>
export type NodeFence = z.infer<typeof Fence>
export type NodePower = z.infer<typeof Power>
export type NodeStorageBlock = z.infer<typeof StorageBlock>
/** Whether the node can be fenced without two people who attest it. */
export const isFenceCapable = ({ bmc, storageAccess }: NodeSpec): boolean =>
  bmc !== undefined || storageAccess !== undefined
