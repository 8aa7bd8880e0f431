/** Offers of an operator: regions, zones, plans and templates. Cluster-scoped; names are those in the API. */
import { z } from 'zod'
import { GUEST_USER_LENGTH_MAXIMUM, GUEST_USER_PATTERN } from '../../domain/server/guest-user.ts'
import { MANAGED_TEMPLATES } from '../../domain/managed-machine/rules.ts'
import { resource } from '../kit/define.ts'
import {
  Conditions,
  ObservedGeneration,
  OperationProgress,
  ReportedOperation,
  RequestedOperation,
  ZoneName,
} from '../kit/shapes.ts'
import {
  AddressText,
  CidrText,
  Cores,
  MemoryMebibytes,
  OBSERVED,
  StoredDiskGibibytes,
  StoredTitle,
} from '../kit/fields.ts'
import { AGE, READY, STATE } from '../kit/columns.ts'

const KNOWN = 'Observed state. Written by its controller.'
const Observed = z
  .strictObject({ observedGeneration: ObservedGeneration, conditions: Conditions.optional() })
  .describe(KNOWN)

export const Region = resource({
  kind: 'Region',
  plural: 'regions',
  shortNames: ['reg'],
  scope: 'Cluster',
  description:
    'A place with one or more zones that are close enough to copy data between them. Its name is the name in the API.',
  spec: z
    .strictObject({
      displayName: z.string().min(1).max(63).describe('Display name.'),
      country: z
        .string()
        .length(2)
        .regex(/^[A-Z]{2}$/)
        .describe('ISO 3166 country code in upper case.'),
    })
    .describe('The desired state of the region.'),
  status: Observed,
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Country', type: 'string', jsonPath: '.spec.country' },
    AGE,
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
  replicas: z.int().min(1).max(STORAGE_REPLICAS_MAXIMUM).describe('Number of copies.'),
  failureDomain: z.enum(STORAGE_FAILURE_DOMAINS).describe('Failure domain that no two copies share.'),
  pools: z
    .array(z.string().min(1).max(63))
    .max(16)
    .optional()
    .describe(
      'Pools that it applies to, by the names that nodes use; all pools that nodes of the zone reach when absent.',
    )
    .meta({ 'x-kubernetes-list-type': 'set' }),
})

export const Zone = resource({
  kind: 'Zone',
  plural: 'zones',
  shortNames: ['zn'],
  scope: 'Cluster',
  description:
    'A failure domain of a region: nodes that share power and network. Its name is the name in the API. Servers ' +
    'refer to it, and the platform never moves them out of it by itself.',
  spec: z
    .strictObject({
      displayName: z.string().min(1).max(63).describe('Display name.'),
      region: z.string().min(1).max(63).describe('Region of the zone.'),
      isClosed: z
        .boolean()
        .default(false)
        .describe('A closed zone accepts no new resources. Existing resources keep working.'),
      capabilities: z
        .array(z.enum(ZONE_CAPABILITIES))
        .max(32)
        .default([])
        .describe('Capabilities of the zone besides servers.')
        .meta({ 'x-kubernetes-list-type': 'set' }),
      publicNetwork: z
        .strictObject({
          physicalNetwork: z
            .string()
            .min(1)
            .max(63)
            .describe('Name of the external network on the hosts of the zone (ovn-bridge-mappings).'),
          addresses: z
            .array(CidrText.min(1))
            .min(1)
            .max(4)
            .describe(
              "External addresses of the zone's router, with prefix length. Upstream routers send the pools of " +
                'the zone to them.',
            ),
          gateways: z.array(AddressText.min(1)).max(2).describe('Default gateways of the router, one per protocol.'),
          dnsServers: z
            .array(AddressText.min(1))
            .max(3)
            .optional()
            .describe('Resolvers that DHCP gives to servers with a public IPv4 address; none when absent.'),
          proxy: z
            .string()
            .regex(/^socks5:\/\/[a-zA-Z0-9.:[\]-]{1,253}:[0-9]{1,5}$/)
            .max(280)
            .optional()
            .describe('SOCKS5 proxy to the public addresses from networks without a route to them; none when absent.'),
        })
        .optional()
        .describe(
          'External network of a zone that uses Open Virtual Network. When absent, servers of the zone have no ' +
            'external network.',
        ),
      sharedStorage: z
        .strictObject({
          protocol: z.enum(['ceph']).describe('Product that serves the storage.'),
          secretName: z
            .string()
            .min(1)
            .max(253)
            .describe(
              'Secret in the namespace of the platform with monitors, username and key of a client that may set ' +
                'how pools keep data.',
            ),
          policy: StoragePolicySpec.optional().describe(
            'How it keeps data. When absent, each pool has as many copies as hosts, at most three; from three ' +
              'racks on they are in separate racks. No pool loses copies.',
          ),
        })
        .optional()
        .describe('Shared storage of its hosts that the platform administers; none when absent.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the zone.'),
  status: Observed.extend({
    operation: OperationProgress.optional().describe('Progress of that change.'),
    sharedStorage: z
      .strictObject({
        readAt: z.string().max(64).describe('Time of the last query.'),
        detail: z.string().max(1024).describe('Reason why it did not answer; empty when it did.'),
        pools: z
          .array(
            z.strictObject({
              name: z.string().max(255).describe('Name that nodes use.'),
              replicas: z.int().describe('Number of copies.'),
              failureDomain: z.string().max(63).describe('Failure domain that no two copies share.'),
              hosts: z.int().describe('Hosts with running storage for the pool.'),
              racks: z.int().describe('Racks with running storage for the pool.'),
              misplacedGroups: z.int().describe('Placement groups of the pool with copies that are not all in place.'),
            }),
          )
          .max(64)
          .describe('Pools that nodes of the zone reach.'),
      })
      .optional()
      .describe('Last answer of the shared storage that the platform administers.'),
    storagePolicy: StoragePolicySpec.optional().describe('Policy of the last operation, whatever its outcome.'),
    state: z
      .enum(['available', 'full', 'maintenance', 'closed'])
      .optional()
      .describe('Whether the zone accepts new servers.'),
    unavailablePlans: z
      .array(z.string().max(63))
      .max(256)
      .optional()
      .describe('Plans for which no node of the zone has room now.'),
    haObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe(
        'Human-readable reason why servers could not restart elsewhere after the loss of a node; absent when ' +
          'they could.',
      ),
    hasPrivateNetworks: z
      .boolean()
      .optional()
      .describe('Whether its hosts support private networks and the platform reaches the network database.'),
    networkObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Human-readable reason why the zone has no private networks; absent when it has them.'),
    objectStorageBackend: z
      .enum(['rgw', 'svc-s3-single'])
      .optional()
      .describe('Product that serves object storage in the zone; absent when there is none.'),
    objectStorageObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Human-readable reason why the zone has no object storage; absent when it has it.'),
    kubernetesReleases: z
      .array(z.string().max(16))
      .max(32)
      .optional()
      .describe('Kubernetes releases for clusters of its region; absent when there are none.'),
    kubernetesObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Human-readable reason why the zone has no Kubernetes; absent when it has it.'),
    hasPlaygrounds: z.boolean().optional().describe('Whether its region offers playgrounds; absent when it does not.'),
    playgroundsObstacle: z
      .string()
      .max(1024)
      .optional()
      .describe('Human-readable reason why its region has no playgrounds; absent when it has them.'),
    hasSeparateEdges: z
      .boolean()
      .optional()
      .describe('Whether it has enough servers for network edges with one machine per role.'),
    hasBackups: z.boolean().optional().describe('Whether at least one of its hosts has a place for backups.'),
    hasSharedStorage: z.boolean().optional().describe('Whether its hosts reach shared storage.'),
    publicFamilies: z
      .array(z.enum(['ipv4', 'ipv6']))
      .max(2)
      .optional()
      .describe('Address families that pools of the zone provide to servers.')
      .meta({ 'x-kubernetes-list-type': 'set' }),
    backupSources: z
      .array(ZoneName)
      .max(256)
      .optional()
      .describe('Other zones whose backups at least one of its hosts can copy.'),
    builtTemplates: z
      .array(z.string().max(63))
      .max(64)
      .optional()
      .describe(
        'Templates with an image on every host that runs servers. Servers of other templates wait for the image.',
      ),
  }).describe(KNOWN),
  columns: [{ name: 'Region', type: 'string', jsonPath: '.spec.region' }, STATE, READY, AGE],
  selectableFields: ['.spec.region'],
  fixed: ['region'],
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
    'A size and a price of servers. The size never changes, because servers were sold with it: create another ' +
    'plan instead.',
  spec: z
    .strictObject({
      family: z.enum(['starter', 'premium', 'cloud_native']).describe('Group of plans in which it is listed.'),
      cores: Cores.describe('Virtual cores.'),
      memoryMebibytes: MemoryMebibytes.describe('Memory in MiB.'),
      storageGibibytes: StoredDiskGibibytes.describe('Default and minimum size of the boot storage in GiB.'),
      priceMonthlyCents: z.int().min(0).max(100_000_000).describe('Price per month in euro cents.'),
      cpuPool: z.string().min(1).max(63).optional().describe('Pool of nodes that run the plan; any node when absent.'),
    })
    .describe('Size and price of the plan.'),
  status: Observed,
  columns: [
    { name: 'Family', type: 'string', jsonPath: '.spec.family' },
    { name: 'Cores', type: 'integer', jsonPath: '.spec.cores' },
    { name: 'Memory', type: 'integer', jsonPath: '.spec.memoryMebibytes' },
    { name: 'Storage', type: 'integer', jsonPath: '.spec.storageGibibytes' },
    { name: 'Cents/month', type: 'integer', jsonPath: '.spec.priceMonthlyCents' },
    AGE,
  ],
  selectableFields: ['.spec.family'],
  fixed: ['cores', 'memoryMebibytes', 'storageGibibytes', 'cpuPool'],
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
    'An operating system image for servers. It never changes after servers were created from it: create another ' +
    'template for another image.',
  spec: z
    .strictObject({
      title: StoredTitle.min(1).describe('Display name.'),
      osFamily: z.string().min(1).max(63).describe('Family of the operating system; lists filter by it.'),
      osVersion: z.string().max(63).describe('Version of the operating system.'),
      architecture: z.enum(['x86_64']).default('x86_64').describe('Processor architecture of the image.'),
      defaultUser: z
        .string()
        .max(GUEST_USER_LENGTH_MAXIMUM)
        .regex(GUEST_USER_PATTERN)
        .describe('User who gets the SSH keys of the server.'),
      minStorageGibibytes: StoredDiskGibibytes.describe('Minimum boot storage in GiB.'),
      minMemoryMebibytes: MemoryMebibytes.describe('Minimum memory in MiB.'),
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
            .describe('Recipe of the agent that builds the image.'),
          url: z
            .string()
            .max(TEMPLATE_URL_LENGTH_MAXIMUM)
            .regex(/^https:\/\//)
            .optional()
            .describe('HTTPS URL on the public Internet of a raw or qcow2 disk with its own boot loader.'),
          checksum: z
            .string()
            .regex(/^[0-9a-fA-F]{64}$/)
            .max(64)
            .optional()
            .describe('SHA-256 of the file at url, in hex.'),
        })
        .describe('Source of the image for nodes: built, or url with checksum.'),
      hiddenAt: z
        .string()
        .max(64)
        .optional()
        .describe('Time from which no list contains it, RFC 3339. It can still be used by name.'),
      deprecatedAt: z.string().max(64).optional().describe('Time from which it is shown as deprecated, RFC 3339.'),
      unavailableAt: z
        .string()
        .max(64)
        .optional()
        .describe('Time from which nothing new can be created from it, RFC 3339.'),
      operation: RequestedOperation,
    })
    .describe('The desired state of the template.'),
  status: z
    .strictObject({
      ...OBSERVED,
      state: z.enum(TEMPLATE_STATES).optional().describe('Whether servers can be created from it, as in the API.'),
      stateDetail: z.string().max(1024).optional().describe('Human-readable reason for the state.'),
      sizeGibibytes: z.int().min(0).optional().describe('Size of the disk in a downloaded image, in GiB.'),
      zones: z
        .array(ZoneName)
        .max(256)
        .optional()
        .describe(
          'Zones that have had the image. Downloaded: all nodes of the zone have held it. Built by nodes: every ' +
            'host has built it, or a disk was created from it.',
        ),
      operation: ReportedOperation,
    })
    .describe(KNOWN),
  columns: [
    { name: 'Title', type: 'string', jsonPath: '.spec.title' },
    STATE,
    { name: 'OS', type: 'string', jsonPath: '.spec.osFamily' },
    { name: 'Version', type: 'string', jsonPath: '.spec.osVersion' },
    AGE,
  ],
  selectableFields: ['.spec.osFamily'],
  fixed: ['image', 'architecture'],
  rules: [
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

/** Nodes build its image with their own recipe. */
export const isBuiltHere = ({ image }: TemplateSpec): boolean => image.built !== undefined
/** Whether anything new can be created from the template, in zones that offer it. */
export const isAvailable = ({ unavailableAt }: TemplateSpec, now: Date): boolean =>
  unavailableAt === undefined || Date.parse(unavailableAt) > now.getTime()

/** Whether lists leave it out. */
export const isHidden = ({ hiddenAt }: TemplateSpec, now: Date): boolean =>
  hiddenAt !== undefined && Date.parse(hiddenAt) <= now.getTime()

/** Whether the zone has it: the first server brings a built image, a downloaded one is there before. */
export const isInZone = ({ spec, status }: AnyTemplate, zone: string): boolean =>
  isBuiltHere(spec)
    ? spec.zones.length === 0 || spec.zones.includes(zone)
    : status?.state === 'online' && status.zones?.includes(zone) === true

/** Whether servers of the zone can be created from the template now. */
export const isOffered = (template: AnyTemplate, zone: string, now: Date): boolean =>
  isInZone(template, zone) && template.spec.operation?.kind !== 'template.delete' && isAvailable(template.spec, now)

/** Minimum boot storage in GiB. */
export const leastStorageOf = ({ spec, status }: AnyTemplate): number =>
  Math.max(spec.minStorageGibibytes, status?.sizeGibibytes ?? 0)
