/** The operator's own kinds: regions, zones, plans, templates and nodes. Cluster-scoped; names are what the API shows.
 */
import { z } from 'zod'
import { NODE_STATES } from '../../domain/node-rules.ts'
import { resource } from '../define.ts'
import {
  Conditions,
  ObservedGeneration,
  OperationProgress,
  OperationStanza,
  StoredLabels,
  ZoneName,
} from '../shapes.ts'

const KNOWN = 'What is known of it. Written by its controller.'
const Observed = z
  .strictObject({ observedGeneration: ObservedGeneration, conditions: Conditions.optional() })
  .describe(KNOWN)

/** For what servers, claims or prices have been derived from. */
export const fixed = (field: string) => ({
  rule:
    `has(self.spec.${field}) ? (has(oldSelf.spec.${field}) && self.spec.${field} == oldSelf.spec.${field}) : ` +
    `!has(oldSelf.spec.${field})`,
  message: `${field} cannot be changed`,
})

export const Region = resource({
  kind: 'Region',
  plural: 'regions',
  scope: 'Cluster',
  description:
    'A place with one or more zones, near enough to each other for copies of data. Its name is what the API shows.',
  spec: z
    .strictObject({
      displayName: z.string().min(1).max(63).describe('Name for people.'),
      country: z
        .string()
        .length(2)
        .regex(/^[A-Z]{2}$/)
        .describe('ISO 3166 code of the country, in upper case.'),
    })
    .describe('What the region is.'),
  status: Observed,
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Country', type: 'string', jsonPath: '.spec.country' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type RegionSpec = z.infer<typeof Region.spec>

export const ZONE_CAPABILITIES = [
  'separate_edges',
  'replicated_storage',
  'live_migration',
  'ha_restart',
  'rack_spread',
  'object_storage',
  'databases',
  'kubernetes',
  'dev_clusters',
  'playgrounds',
  'public_ipv4',
  'public_ipv6',
] as const

export const Zone = resource({
  kind: 'Zone',
  plural: 'zones',
  scope: 'Cluster',
  description:
    'A failure domain of a region: nodes that share power and network. Its name is what the API shows; servers ' +
    'name it and never leave it by themselves.',
  spec: z
    .strictObject({
      displayName: z.string().min(1).max(63).describe('Name for people.'),
      region: z.string().min(1).max(63).describe('Region that it belongs to. Cannot be changed.'),
      isClosed: z.boolean().default(false).describe('A closed zone takes nothing new; what is there stays and works.'),
      capabilities: z
        .array(z.enum(ZONE_CAPABILITIES))
        .max(32)
        .default([])
        .describe('What the zone offers beyond servers.')
        .meta({ 'x-kubernetes-list-type': 'set' }),
      publicNetwork: z
        .strictObject({
          physicalNetwork: z
            .string()
            .min(1)
            .max(63)
            .describe('Name by which the hosts of the zone know the wire outside (ovn-bridge-mappings).'),
          addresses: z
            .array(z.string().min(1).max(49))
            .min(1)
            .max(4)
            .describe(
              "Addresses of the zone's router on it, with the length of their prefix. The routers around it send " +
                'the pools of the zone there.',
            ),
          gateways: z
            .array(z.string().min(1).max(45))
            .max(2)
            .describe('Where the router finds the rest of the world, one for each protocol.'),
        })
        .optional()
        .describe(
          'How the servers of the zone reach the outside, where Open Virtual Network is their network; not at ' +
            'all when absent.',
        ),
    })
    .describe('What the zone is.'),
  status: Observed.extend({
    state: z.enum(['available', 'full', 'maintenance', 'closed']).optional().describe('Whether it takes new servers.'),
    unavailablePlans: z
      .array(z.string().max(63))
      .max(256)
      .optional()
      .describe('Plans that no node of the zone has room for now.'),
    haObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Why servers could not go on elsewhere when a node was lost, for people; absent when they could.'),
  }).describe(KNOWN),
  columns: [
    { name: 'Region', type: 'string', jsonPath: '.spec.region' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.region'],
  rules: [fixed('region')],
})
export type ZoneSpec = z.infer<typeof Zone.spec>
export type ZoneStatus = z.infer<typeof Zone.status>

export const Plan = resource({
  kind: 'Plan',
  plural: 'plans',
  scope: 'Cluster',
  description:
    'A size and a price of servers. The size of a plan never changes, because servers were sold with it: offer ' +
    'another plan instead.',
  spec: z
    .strictObject({
      family: z.enum(['starter', 'premium', 'cloud_native']).describe('Group of plans that it is shown in.'),
      cores: z.int().min(1).max(512).describe('Virtual cores. Cannot be changed.'),
      memoryMebibytes: z.int().min(32).max(4_194_304).describe('Memory in MiB. Cannot be changed.'),
      storageGibibytes: z
        .int()
        .min(1)
        .max(65_536)
        .describe('Size of the boot storage in GiB, unless a server asks for more. Cannot be changed.'),
      priceMonthlyCents: z.int().min(0).max(100_000_000).describe('Price of a month, in euro cents.'),
      cpuPool: z
        .string()
        .min(1)
        .max(63)
        .optional()
        .describe('Only nodes of this pool run it; any node when absent. Cannot be changed.'),
    })
    .describe('What the plan gives, and what it costs.'),
  status: Observed,
  columns: [
    { name: 'Family', type: 'string', jsonPath: '.spec.family' },
    { name: 'Cores', type: 'integer', jsonPath: '.spec.cores' },
    { name: 'Memory', type: 'integer', jsonPath: '.spec.memoryMebibytes' },
    { name: 'Storage', type: 'integer', jsonPath: '.spec.storageGibibytes' },
    { name: 'Cents/month', type: 'integer', jsonPath: '.spec.priceMonthlyCents' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.family'],
  rules: ['cores', 'memoryMebibytes', 'storageGibibytes', 'cpuPool'].map(fixed),
})
export type PlanSpec = z.infer<typeof Plan.spec>

export const Template = resource({
  kind: 'Template',
  plural: 'templates',
  shortNames: ['tpl'],
  scope: 'Cluster',
  description:
    'An operating system image that servers are made from. Another image is another template: what servers were ' +
    'made from never changes.',
  spec: z
    .strictObject({
      title: z.string().min(1).max(255).describe('Name for people.'),
      osFamily: z.string().min(1).max(63).describe('Family of the operating system, by which lists are filtered.'),
      osVersion: z.string().min(1).max(63).describe('Version of the operating system.'),
      architecture: z.enum(['x86_64']).default('x86_64').describe('Processor architecture that it runs on.'),
      defaultUser: z.string().min(1).max(32).describe('User whose SSH keys are those of the server.'),
      minStorageGibibytes: z.int().min(1).max(65_536).describe('Smallest boot storage that it fits on, in GiB.'),
      minMemoryMebibytes: z.int().min(32).max(4_194_304).describe('Least memory that it starts with, in MiB.'),
      zones: z
        .array(ZoneName)
        .max(256)
        .default([])
        .meta({ 'x-kubernetes-list-type': 'set' })
        .describe('Zones that offer it; empty for all.'),
      image: z
        .strictObject({ built: z.enum(['tiny-linux', 'debian-13']).describe("One of the agent's own recipes.") })
        .describe('How a node comes by the image. Cannot be changed.'),
      isHidden: z.boolean().default(false).describe('A hidden template is in no list; who knows its name may use it.'),
      deprecatedAt: z.string().max(64).optional().describe('From when on it is shown as outdated, RFC 3339.'),
      unavailableAt: z.string().max(64).optional().describe('From when on nothing new is made from it, RFC 3339.'),
    })
    .describe('What the template is.'),
  status: Observed,
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.title' },
    { name: 'OS', type: 'string', jsonPath: '.spec.osFamily' },
    { name: 'Version', type: 'string', jsonPath: '.spec.osVersion' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.osFamily'],
  rules: ['image', 'architecture'].map(fixed),
})
export type TemplateSpec = z.infer<typeof Template.spec>
/** Whether anything new is made from the template, in zones that offer it. */
export const isAvailable = ({ unavailableAt }: TemplateSpec, now: Date): boolean =>
  unavailableAt === undefined || Date.parse(unavailableAt) > now.getTime()

/** Whether servers of the zone can be made from the template now. */
export const isOffered = (template: TemplateSpec, zone: string, now: Date): boolean =>
  (template.zones.length === 0 || template.zones.includes(zone)) && isAvailable(template, now)

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
  cuts: z.int().min(0).describe('How often it was told to cut the power.'),
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
        '`client.`) and key let in.',
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
      zone: ZoneName.describe('Zone that the host stands in. Cannot be changed.'),
      rack: z
        .string()
        .min(1)
        .max(63)
        .default('rack-1')
        .describe('Rack that it stands in: what fails together within the zone.'),
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
          'Whether the node shall be empty: its servers are moved away and nothing new comes, until it is uncordoned.',
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
              'Secret of the namespace svccloud-system whose keys username and password let in; its key ' +
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
        .describe('Version that its agent shall have; whatever it has when absent.'),
      operation: OperationStanza.optional().describe(
        'The newest change that was asked for. Written by the platform only; an edit gets its operation by itself.',
      ),
      cpuOvercommit: z.int().min(1).max(64).default(4).describe('Virtual cores sold per logical CPU.'),
      reservedMemoryMebibytes: z
        .int()
        .min(0)
        .max(4_194_304)
        .default(2_048)
        .describe('Memory that the host keeps for itself, in MiB.'),
    })
    .describe('What the node is, and whether it takes servers.'),
  status: Observed.extend({
    state: z.enum(NODE_STATES).optional().describe('Whether the node works and takes servers.'),
    stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
    logicalCpus: z.int().optional().describe('Logical processors of the host.'),
    memoryMebibytes: z.int().optional().describe('Memory of the host in MiB.'),
    storageGibibytes: z.int().optional().describe('Room for disks in GiB.'),
    agentVersion: z.string().max(63).optional().describe('Version of its agent.'),
    hypervisor: z.string().max(63).optional().describe('What runs the guests.'),
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
    operation: OperationProgress.optional().describe('How far the newest operation is.'),
  }).describe(KNOWN),
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
