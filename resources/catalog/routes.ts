/** Catalog of the cloud: public shapes and routes of regions, zones, plans and templates. Stored shapes are in
 *  `stored.ts`. */
import { z } from 'zod'
import { hourlyMillicents } from '../../domain/billing/rules.ts'
import { HA_REASONS } from '../../domain/zone/high-availability.ts'
import { offersDatabases, offersDevClusters, offersManagedMachines } from '../managed-machine/index.ts'
import {
  type PlanSpec,
  type RegionSpec,
  isBuiltHere,
  isInZone,
  leastStorageOf,
  type TemplateSpec,
  type TemplateStatus,
  ZONE_CAPABILITIES,
  type ZoneSpec,
  type ZoneStatus,
} from './stored.ts'
import { completeListOf, DateTime, Id, type Stored, ZoneName } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { viewOf } from '../kit/view.ts'

export const RegionView = z
  .strictObject({ name: z.string(), display_name: z.string(), country: z.string(), zones: z.array(z.string()) })
  .meta({ id: 'Region' })
export type RegionView = z.infer<typeof RegionView>

export const ZoneView = z
  .strictObject({
    name: z.string(),
    display_name: z.string(),
    region: z.string(),
    status: z.enum(['available', 'full', 'maintenance', 'closed']),
    capabilities: z.array(z.enum(ZONE_CAPABILITIES)),
    network_status_reason: z
      .string()
      .nullable()
      .describe('Reason why private_networks and floating_ips are not among the capabilities; null when they are.'),
    object_storage_backend: z.enum(['rgw', 'svc-s3-single']).nullable(),
    unavailable_plans: z.array(z.string()),
  })
  .meta({ id: 'Zone' })
export type ZoneView = z.infer<typeof ZoneView>

export const PlanView = z
  .strictObject({
    name: z.string(),
    family: z.enum(['starter', 'premium', 'cloud_native']),
    cores: z.int(),
    memory_mebibytes: z.int(),
    storage_gibibytes: z.int(),
    price_monthly_cents: z.int(),
    price_hourly_millicents: z.int(),
    cpu_pool: z.string().nullable(),
  })
  .meta({ id: 'Plan' })
export type PlanView = z.infer<typeof PlanView>

export const TemplateView = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    title: z.string(),
    os_family: z.string(),
    os_version: z.string(),
    architecture: z.enum(['x86_64']),
    default_user: z.string(),
    min_storage_gibibytes: z.int(),
    min_memory_mebibytes: z.int(),
    zones: z.array(z.string()),
    image_status: z.enum(['built', 'not_built']),
    deprecated_at: DateTime.nullable(),
    unavailable_at: DateTime.nullable(),
    created_at: DateTime,
  })
  .meta({ id: 'Template' })
export type TemplateView = z.infer<typeof TemplateView>

export function toRegionView(
  { name, spec }: Stored<RegionSpec>,
  zones: readonly Stored<ZoneSpec, ZoneStatus>[],
): RegionView {
  return viewOf(RegionView, spec, {
    name,
    zones: zones
      .filter((zone) => zone.spec.region === name)
      .map((zone) => zone.name)
      .sort(),
  })
}

/** Capabilities in the operator's terms, apart from what is observed. Public addresses need a network and a pool. How
 *  servers move and survive the loss of a node follows from the nodes. */
export function capabilitiesOf({
  spec,
  status,
}: Pick<Stored<ZoneSpec, ZoneStatus>, 'spec' | 'status'>): ZoneView['capabilities'] {
  const observed: Partial<Record<(typeof ZONE_CAPABILITIES)[number], boolean>> = {
    public_ipv4: spec.publicNetwork !== undefined && status?.publicFamilies?.includes('ipv4') === true,
    public_ipv6: spec.publicNetwork !== undefined && status?.publicFamilies?.includes('ipv6') === true,
    shared_storage: status?.hasSharedStorage === true,
    custom_images: true,
    ...(status === undefined
      ? {}
      : { live_migration: status.haObstacle !== HA_REASONS.one_node, ha_restart: status.haObstacle === undefined }),
    backups: status?.hasBackups === true,
    separate_edges: status?.hasPrivateNetworks === true && status.hasSeparateEdges === true,
    private_networks: status?.hasPrivateNetworks === true,
    floating_ips: status?.hasPrivateNetworks === true,
    load_balancers: status?.hasPrivateNetworks === true && offersManagedMachines(status),
    databases: status?.hasPrivateNetworks === true && offersDatabases(status),
    dev_clusters: status?.hasPrivateNetworks === true && offersDevClusters(status),
    object_storage: status?.objectStorageBackend !== undefined,
    kubernetes: status?.hasPrivateNetworks === true && status.kubernetesReleases !== undefined,
    playgrounds: status?.hasPlaygrounds === true,
    // Every driver supports them, for tier standard.
    snapshots: true,
  }
  return ZONE_CAPABILITIES.filter((capability) => observed[capability] ?? spec.capabilities.includes(capability))
}

export function toZoneView({ name, spec, status }: Stored<ZoneSpec, ZoneStatus>): ZoneView {
  return {
    name,
    display_name: spec.displayName,
    region: spec.region,
    status: spec.isClosed ? 'closed' : (status?.state ?? 'available'),
    capabilities: capabilitiesOf({ spec, status }),
    object_storage_backend: status?.objectStorageBackend ?? null,
    network_status_reason: status?.networkObstacle ?? null,
    unavailable_plans: status?.unavailablePlans ?? [],
  }
}

export function toPlanView({ name, spec }: Stored<PlanSpec>): PlanView {
  return viewOf(PlanView, spec, { name, price_hourly_millicents: hourlyMillicents(spec.priceMonthlyCents) })
}

/** `zones` are all zones; `zoneName` limits the image status to one of them. */
export function toTemplateView(
  { name, spec, status, createdAt }: Stored<TemplateSpec, TemplateStatus>,
  zones: readonly Stored<ZoneSpec, ZoneStatus>[],
  zoneName?: string,
): TemplateView {
  const offering = zones.filter((zone) => isInZone({ spec, status }, zone.name))
  const wanted = offering.filter((zone) => zoneName === undefined || zone.name === zoneName)
  const isBuilt =
    wanted.length > 0 &&
    (!isBuiltHere(spec) || wanted.every((zone) => zone.status?.builtTemplates?.includes(name) === true))
  return viewOf(TemplateView, spec, {
    id: name,
    name,
    min_storage_gibibytes: leastStorageOf({ spec, status }),
    zones: isBuiltHere(spec) && spec.zones.length > 0 ? spec.zones : offering.map((zone) => zone.name).sort(),
    image_status: isBuilt ? 'built' : 'not_built',
    created_at: createdAt,
  })
}

const zones = routesUnder({ path: '/v1' })

export const listRegions = zones.get('list_regions', '/regions', {
  summary: 'List regions',
  answers: { 200: completeListOf(RegionView) },
})

export const listZones = zones.get('list_zones', '/zones', {
  summary: 'List zones and their capabilities',
  query: z.strictObject({ region: ZoneName.optional() }),
  answers: { 200: completeListOf(ZoneView) },
})

const plans = routesUnder({ path: '/v1' })

export const listPlans = plans.get('list_plans', '/plans', {
  summary: 'List server plans with prices',
  answers: { 200: completeListOf(PlanView) },
})

export const listTemplates = plans.get('list_templates', '/templates', {
  summary: 'List operating system templates',
  description:
    'Excludes templates past their unavailable_at, which accept no new use. Templates past their deprecated_at ' +
    'are listed on request.',
  query: z.strictObject({
    zone: ZoneName.optional(),
    os_family: z.string().max(63).optional(),
    include_deprecated: z.enum(['true', 'false']).optional(),
  }),
  answers: { 200: completeListOf(TemplateView) },
})

export const getTemplate = plans.get('get_template', '/templates/{name}', {
  summary: 'Get a template',
  params: z.strictObject({ name: Id }),
  answers: { 200: z.strictObject({ template: TemplateView }) },
})

export const CATALOG_ROUTES = [listRegions, listZones, listPlans, listTemplates, getTemplate] as const
