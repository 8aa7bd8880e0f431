/** The operator's own kinds: regions, zones, plans, templates and nodes. Cluster-scoped; names are what the API shows. */
import { z } from 'zod'
import { resource } from './define.ts'
import { Conditions, ZoneName } from './shapes.ts'

const Empty = z.strictObject({ observedGeneration: z.int().optional(), conditions: Conditions.optional() })

export const Region = resource({
  kind: 'Region', plural: 'regions', scope: 'Cluster', description: 'A place with one or more zones.',
  spec: z.strictObject({ displayName: z.string().max(63), country: z.string().length(2) }),
  status: Empty,
  columns: [
    { name: 'Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Country', type: 'string', jsonPath: '.spec.country' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type RegionSpec = z.infer<typeof Region.spec>

export const ZONE_CAPABILITIES = ['separate_edges', 'replicated_storage', 'live_migration', 'ha_restart', 'rack_spread', 'object_storage', 'databases',
  'kubernetes', 'dev_clusters', 'playgrounds', 'public_ipv4', 'public_ipv6'] as const

export const Zone = resource({
  kind: 'Zone', plural: 'zones', scope: 'Cluster', description: 'A failure domain of a region: nodes that share power and network.',
  spec: z.strictObject({
    displayName: z.string().max(63),
    region: z.string().max(63),
    isClosed: z.boolean().default(false).describe('A closed zone takes nothing new.'),
    capabilities: z.array(z.enum(ZONE_CAPABILITIES)).max(32).default([]).meta({ 'x-kubernetes-list-type': 'set' }),
  }),
  status: Empty.extend({ state: z.enum(['available', 'full', 'maintenance', 'closed']).optional(), unavailablePlans: z.array(z.string().max(63)).max(256).optional() }),
  columns: [
    { name: 'Region', type: 'string', jsonPath: '.spec.region' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type ZoneSpec = z.infer<typeof Zone.spec>
export type ZoneStatus = z.infer<typeof Zone.status>

export const Plan = resource({
  kind: 'Plan', plural: 'plans', scope: 'Cluster', description: 'A size and a price of servers.',
  spec: z.strictObject({
    family: z.enum(['starter', 'premium', 'cloud_native']),
    cores: z.int().min(1).max(512),
    memoryMebibytes: z.int().min(32).max(4_194_304),
    storageGibibytes: z.int().min(1).max(65_536),
    priceMonthlyCents: z.int().min(0).max(100_000_000),
    cpuPool: z.string().max(63).optional(),
  }),
  status: Empty,
  columns: [
    { name: 'Family', type: 'string', jsonPath: '.spec.family' },
    { name: 'Cores', type: 'integer', jsonPath: '.spec.cores' },
    { name: 'Memory', type: 'integer', jsonPath: '.spec.memoryMebibytes' },
    { name: 'Storage', type: 'integer', jsonPath: '.spec.storageGibibytes' },
    { name: 'Cents/month', type: 'integer', jsonPath: '.spec.priceMonthlyCents' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type PlanSpec = z.infer<typeof Plan.spec>

export const Template = resource({
  kind: 'Template', plural: 'templates', scope: 'Cluster', description: 'An operating system image that servers are made from.',
  spec: z.strictObject({
    title: z.string().max(255),
    osFamily: z.string().max(63),
    osVersion: z.string().max(63),
    architecture: z.enum(['x86_64']).default('x86_64'),
    defaultUser: z.string().max(32),
    minStorageGibibytes: z.int().min(1).max(65_536),
    minMemoryMebibytes: z.int().min(32).max(4_194_304),
    zones: z.array(ZoneName).max(256).default([]).meta({ 'x-kubernetes-list-type': 'set' }).describe('Zones that offer it; empty for all.'),
    /** How a node comes by the image: `built` names one of the agent's own recipes. */
    image: z.strictObject({ built: z.enum(['tiny-linux', 'debian-13']) }),
    isHidden: z.boolean().default(false),
    deprecatedAt: z.string().max(64).optional(),
    unavailableAt: z.string().max(64).optional(),
  }),
  status: Empty,
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.title' },
    { name: 'OS', type: 'string', jsonPath: '.spec.osFamily' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
})
export type TemplateSpec = z.infer<typeof Template.spec>

export const NODE_STATES = ['provisioning', 'ready', 'cordoned', 'draining', 'maintenance', 'unreachable', 'fencing', 'fenced', 'retired'] as const

export const Node = resource({
  kind: 'Node', plural: 'nodes', shortNames: ['hv'], scope: 'Cluster', description: 'A hypervisor host.',
  spec: z.strictObject({
    zone: ZoneName,
    rack: z.string().max(63).default('rack-1'),
    cpuPool: z.string().max(63).optional(),
    dedicatedAccountId: z.string().max(64).optional(),
    roles: z.array(z.enum(['compute', 'storage', 'network'])).max(3).default(['compute']).meta({ 'x-kubernetes-list-type': 'set' }),
    isCordoned: z.boolean().default(false).describe('A cordoned node takes no new servers.'),
    cpuOvercommit: z.int().min(1).max(64).default(4).describe('Virtual cores sold per logical CPU.'),
    reservedMemoryMebibytes: z.int().min(0).max(4_194_304).default(2_048).describe('Memory that the host keeps for itself.'),
  }),
  status: Empty.extend({
    state: z.enum(NODE_STATES).optional(),
    stateDetail: z.string().max(1024).optional(),
    logicalCpus: z.int().optional(),
    memoryMebibytes: z.int().optional(),
    storageGibibytes: z.int().optional(),
    agentVersion: z.string().max(63).optional(),
    hypervisor: z.string().max(63).optional(),
    bootId: z.string().max(64).optional(),
    endpoint: z.strictObject({ url: z.string().max(253), certificateFingerprint: z.string().max(64) }).optional(),
    lastSeenAt: z.string().max(64).optional(),
  }),
  columns: [
    { name: 'Zone', type: 'string', jsonPath: '.spec.zone' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'CPUs', type: 'integer', jsonPath: '.status.logicalCpus' },
    { name: 'Memory', type: 'integer', jsonPath: '.status.memoryMebibytes' },
    { name: 'Hypervisor', type: 'string', jsonPath: '.status.hypervisor' },
    { name: 'Rack', type: 'string', jsonPath: '.spec.rack', priority: 1 },
    { name: 'Agent', type: 'string', jsonPath: '.status.agentVersion', priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.zone'],
})
export type NodeSpec = z.infer<typeof Node.spec>
export type NodeStatus = z.infer<typeof Node.status>
