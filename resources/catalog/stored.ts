/** What an operator offers: regions, zones, plans and templates. Cluster-scoped; names are what the API shows. */
import { z } from 'zod'
import { GUEST_USER_LENGTH_MAXIMUM, GUEST_USER_PATTERN } from '../../domain/server/guest-user.ts'
import { MANAGED_TEMPLATES } from '../../domain/managed-machine/rules.ts'
import { fixed, resource } from '../kit/define.ts'
import {
  Conditions,
  ObservedGeneration,
  OperationProgress,
  ReportedOperation,
  RequestedOperation,
  ZoneName,
} from '../kit/shapes.ts'

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
  'backups',
  'snapshots',
  'private_networks',
  'floating_ips',
  'load_balancers',
  'custom_images',
  'shared_storage',
] as const

export const STORAGE_REPLICAS_MAXIMUM = 3
export const STORAGE_FAILURE_DOMAINS = ['host', 'rack'] as const

const StoragePolicySpec = z.strictObject({
  replicas: z.int().min(1).max(STORAGE_REPLICAS_MAXIMUM).describe('How many copies it keeps.'),
  failureDomain: z.enum(STORAGE_FAILURE_DOMAINS).describe('What no two copies share.'),
  pools: z
    .array(z.string().min(1).max(63))
    .max(16)
    .optional()
    .describe('Which pools, as nodes name them; all that nodes of the zone reach when absent.')
    .meta({ 'x-kubernetes-list-type': 'set' }),
})

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
          dnsServers: z
            .array(z.string().min(1).max(45))
            .max(3)
            .optional()
            .describe('Resolvers that DHCP gives to servers with a public IPv4 address; none when absent.'),
          proxy: z
            .string()
            .regex(/^socks5:\/\/[a-zA-Z0-9.:[\]-]{1,253}:[0-9]{1,5}$/)
            .max(280)
            .optional()
            .describe(
              'SOCKS5 proxy by which public addresses are reached from where nothing routes them to the zone; none ' +
                'when absent.',
            ),
        })
        .optional()
        .describe(
          'How the servers of the zone reach the outside, where Open Virtual Network is their network; not at ' +
            'all when absent.',
        ),
      sharedStorage: z
        .strictObject({
          protocol: z.enum(['ceph']).describe('What serves it.'),
          secretName: z
            .string()
            .min(1)
            .max(253)
            .describe(
              'Secret of the namespace of the platform with monitors, username and key of a client that may set how ' +
                'pools keep their data.',
            ),
          policy: StoragePolicySpec.optional().describe(
            'How it keeps its data. Where it is absent each pool gets as many copies as it has hosts, up to three, ' +
              'in separate racks from the third rack on, and none loses any.',
          ),
        })
        .optional()
        .describe('Shared storage of its hosts that the platform administers; none when absent.'),
      operation: RequestedOperation,
    })
    .describe('What the zone is.'),
  status: Observed.extend({
    operation: OperationProgress.optional().describe('How far that change is.'),
    sharedStorage: z
      .strictObject({
        readAt: z.string().max(64).describe('When it was asked last.'),
        detail: z.string().max(1024).describe('Why it did not answer; empty when it did.'),
        pools: z
          .array(
            z.strictObject({
              name: z.string().max(255).describe('As nodes name it.'),
              replicas: z.int().describe('How many copies it keeps.'),
              failureDomain: z.string().max(63).describe('What no two copies share.'),
              hosts: z.int().describe('With storage for it that is up.'),
              racks: z.int().describe('With storage for it that is up.'),
              misplacedGroups: z.int().describe('Its parts whose copies are not all in their places.'),
            }),
          )
          .max(64)
          .describe('Those that nodes of the zone reach.'),
      })
      .optional()
      .describe('What the shared storage that the platform administers answered last.'),
    storagePolicy: StoragePolicySpec.optional().describe('What the last operation was about, however it ended.'),
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
    hasPrivateNetworks: z
      .boolean()
      .optional()
      .describe('Whether its hosts have private networks for servers, and the platform reaches what makes them.'),
    networkObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Why it has no private networks, for people; absent where it has.'),
    objectStorageBackend: z
      .enum(['rgw', 'svc-s3-single'])
      .optional()
      .describe('What keeps objects for S3 clients; absent where nothing does.'),
    objectStorageObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Why it keeps no objects, for people; absent where it does.'),
    kubernetesReleases: z
      .array(z.string().max(16))
      .max(32)
      .optional()
      .describe('Releases of Kubernetes that clusters of its region can have; absent where there are none.'),
    kubernetesObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Why it has no Kubernetes, for people; absent where it has.'),
    hasPlaygrounds: z
      .boolean()
      .optional()
      .describe('Whether playgrounds can be started in its region; absent where not.'),
    playgroundsObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Why its region has no playgrounds, for people; absent where it has.'),
    hasSeparateEdges: z
      .boolean()
      .optional()
      .describe('Whether it has servers enough for network edges with a machine for each role.'),
    hasBackups: z.boolean().optional().describe('Whether one of its hosts has a place for backups.'),
    hasSharedStorage: z.boolean().optional().describe('Whether its hosts reach storage that they share.'),
    publicFamilies: z
      .array(z.enum(['ipv4', 'ipv6']))
      .max(2)
      .optional()
      .describe('Families of the public addresses that pools of the zone give to servers.')
      .meta({ 'x-kubernetes-list-type': 'set' }),
    backupSources: z
      .array(ZoneName)
      .max(256)
      .optional()
      .describe('Other zones whose backups one of its hosts can copy.'),
    builtTemplates: z
      .array(z.string().max(63))
      .max(64)
      .optional()
      .describe('Templates whose image is built on every host that runs servers; servers of others wait for it.'),
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
export type StoragePolicy = z.infer<typeof StoragePolicySpec>

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

export const TEMPLATE_STATES = ['creating', 'online', 'error', 'deleting'] as const
export const TEMPLATE_URL_LENGTH_MAXIMUM = 2_048

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
      osVersion: z.string().max(63).describe('Version of the operating system.'),
      architecture: z.enum(['x86_64']).default('x86_64').describe('Processor architecture that it runs on.'),
      defaultUser: z
        .string()
        .max(GUEST_USER_LENGTH_MAXIMUM)
        .regex(GUEST_USER_PATTERN)
        .describe('User whose SSH keys are those of the server.'),
      minStorageGibibytes: z.int().min(1).max(65_536).describe('Smallest boot storage that it fits on, in GiB.'),
      minMemoryMebibytes: z.int().min(32).max(4_194_304).describe('Least memory that it starts with, in MiB.'),
      zones: z
        .array(ZoneName)
        .max(256)
        .default([])
        .meta({ 'x-kubernetes-list-type': 'set' })
        .describe('Zones that offer it; empty for all.'),
      image: z
        .strictObject({
          built: z
            .enum(['tiny-linux', 'debian-13', ...MANAGED_TEMPLATES])
            .optional()
            .describe("One of the agent's own recipes."),
          url: z
            .string()
            .max(TEMPLATE_URL_LENGTH_MAXIMUM)
            .regex(/^https:\/\//)
            .optional()
            .describe('A raw or qcow2 disk with its own boot loader, on the public Internet, by https.'),
          checksum: z
            .string()
            .regex(/^[0-9a-fA-F]{64}$/)
            .max(64)
            .optional()
            .describe('SHA-256 of the file at url, in hex.'),
        })
        .describe('How a node gets the image: built, or url with checksum. Cannot be changed.'),
      hiddenAt: z
        .string()
        .max(64)
        .optional()
        .describe('From when on it is in no list, RFC 3339; who knows its name may use it.'),
      deprecatedAt: z.string().max(64).optional().describe('From when on it is shown as outdated, RFC 3339.'),
      unavailableAt: z.string().max(64).optional().describe('From when on nothing new is made from it, RFC 3339.'),
      operation: RequestedOperation,
    })
    .describe('What the template is.'),
  status: z
    .strictObject({
      observedGeneration: ObservedGeneration,
      conditions: Conditions.optional(),
      state: z.enum(TEMPLATE_STATES).optional().describe('Whether servers can be made from it, as the API shows it.'),
      stateDetail: z.string().max(1024).optional().describe('Why it is so, for people.'),
      sizeGibibytes: z.int().min(0).optional().describe('Size of the disk of an image that was fetched, in GiB.'),
      zones: z
        .array(ZoneName)
        .max(256)
        .optional()
        .describe(
          'Zones that have had it: of an image that is fetched those whose nodes have held it, all of them; of one ' +
            'that nodes build those where it is built on every host, or a disk has been made from it.',
        ),
      operation: ReportedOperation,
    })
    .describe(KNOWN),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.title' },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'OS', type: 'string', jsonPath: '.spec.osFamily' },
    { name: 'Version', type: 'string', jsonPath: '.spec.osVersion' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['.spec.osFamily'],
  rules: [
    ...['image', 'architecture'].map(fixed),
    {
      rule: 'has(self.spec.image.built) != has(self.spec.image.url)',
      message: 'image has exactly one of built and url',
    },
    {
      rule: 'has(self.spec.image.url) == has(self.spec.image.checksum)',
      message: 'image.url comes with image.checksum',
    },
  ],
})
export type TemplateSpec = z.infer<typeof Template.spec>
export type TemplateStatus = z.infer<typeof Template.status>
type AnyTemplate = { readonly spec: TemplateSpec; readonly status?: TemplateStatus | undefined }

/** Nodes build its image by a recipe of their own. */
export const isBuiltHere = ({ image }: TemplateSpec): boolean => image.built !== undefined
/** Whether anything new is made from the template, in zones that offer it. */
export const isAvailable = ({ unavailableAt }: TemplateSpec, now: Date): boolean =>
  unavailableAt === undefined || Date.parse(unavailableAt) > now.getTime()

/** Whether it is in no list. */
export const isHidden = ({ hiddenAt }: TemplateSpec, now: Date): boolean =>
  hiddenAt !== undefined && Date.parse(hiddenAt) <= now.getTime()

/** Whether the zone has it: what is built there comes with the first server, what is fetched is there before. */
export const isInZone = ({ spec, status }: AnyTemplate, zone: string): boolean =>
  isBuiltHere(spec)
    ? spec.zones.length === 0 || spec.zones.includes(zone)
    : status?.state === 'online' && status.zones?.includes(zone) === true

/** Whether servers of the zone can be made from the template now. */
export const isOffered = (template: AnyTemplate, zone: string, now: Date): boolean =>
  isInZone(template, zone) && template.spec.operation?.kind !== 'template.delete' && isAvailable(template.spec, now)

/** Smallest boot storage that it fits on, in GiB. */
export const leastStorageOf = ({ spec, status }: AnyTemplate): number =>
  Math.max(spec.minStorageGibibytes, status?.sizeGibibytes ?? 0)
