/** What an operator offers: regions, zones, plans and templates. Cluster-scoped; names are what the API shows. */
import { z } from 'zod'
import { fixed, resource } from '../define.ts'
import { Conditions, ObservedGeneration, ZoneName } from '../shapes.ts'

const KNOWN = 'What is known of it. Written by its controller.'
const Observed = z
  .strictObject({ observedGeneration: ObservedGeneration, conditions: Conditions.optional() })
  .describe(KNOWN)

export const Region = resource({
  kind: 'Region',
  plural: 'regions',
  shortNames: ['reg'],
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
  shortNames: ['zn'],
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
  shortNames: ['pln'],
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
