/** Placement of storages, for operators: moving a storage, and emptying the disks of a node. Served on the operator
 *  listener only. */
import { z } from 'zod'
import { STORAGE_FAILURE_DOMAINS, STORAGE_REPLICAS_MAXIMUM } from '../catalog/index.ts'
import { Id, ZoneName } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { STORAGE_TIERS } from '../storage/index.ts'

const DEADLINE_HOURS_MAXIMUM = 168
export const STORAGE_DRAIN_HOURS_DEFAULT = 24

const storages = routesUnder({
  path: '/v1/operator/storages',
  staff: 'operations',
  access: { resource: 'storages', scope: 'account' },
})

export const moveStorage = storages.post('move_storage', '/{id}/move', {
  summary: 'Move a storage to another node or tier',
  description:
    'A detached storage is copied to the other node. An attached storage, including a boot storage, moves with ' +
    "its server and all of the server's storages. A running server moves as its migration policy allows, a " +
    'stopped one without being started. The source is freed when all data is on the other node. A move to another ' +
    'tier also goes to another node of the zone, which the platform chooses when none is given.',
  starts: ['storage.move'],
  body: z
    .strictObject({
      target_node_id: Id.optional().describe('Node in the zone of the storage, other than its current one.'),
      tier: z
        .enum(STORAGE_TIERS)
        .optional()
        .describe('standard moves it to the shared storage of its zone, local-nvme to the disks of a host.'),
    })
    .refine(
      ({ target_node_id, tier }) => target_node_id !== undefined || tier !== undefined,
      'must give target_node_id, tier or both',
    ),
  example: { target_node_id: 'host-7' },
  refuses: [400, 404, 409, 503],
})

const nodes = routesUnder({
  path: '/v1/operator/nodes',
  staff: 'operations',
  access: { resource: 'nodes', scope: 'cluster' },
})

export const drainNodeStorage = nodes.post('drain_node_storage', '/{id}/drain-storage', {
  summary: 'Drain the disks of a node',
  description:
    'Cordons the node, so that it accepts no new servers and storages, and moves every storage away. Attached ' +
    'storages move with their servers, by one `server.migrate` or `server.move` each; the others by one ' +
    '`storage.move` each. Refused with `no_capacity` when the zone has no room for them. The node stays cordoned.',
  starts: ['storage.drain_host'],
  body: z.strictObject({
    deadline_hours: z
      .int()
      .min(1)
      .max(DEADLINE_HOURS_MAXIMUM)
      .default(STORAGE_DRAIN_HOURS_DEFAULT)
      .describe('Hours after which the operation fails; storages that have not left stay.'),
  }),
  example: { deadline_hours: 24 },
  refuses: [400, 404, 409, 503],
})

const ByZone = z.strictObject({ zone: ZoneName })

export const StoragePolicyView = z
  .strictObject({
    zone: z.string(),
    pools: z.array(z.string()).describe('Shared storage that nodes of the zone reach, by the name that nodes use.'),
    replicas: z.int().nullable().describe('Number of copies; null when only its administrator knows.'),
    failure_domain: z
      .enum(STORAGE_FAILURE_DOMAINS)
      .nullable()
      .describe('Failure domain of which one loss costs at most one copy; null when only its administrator knows.'),
  })
  .meta({ id: 'StoragePolicy' })
export type StoragePolicyView = z.infer<typeof StoragePolicyView>

const zones = routesUnder({
  path: '/v1/operator/zones',
  staff: 'operations',
  access: { resource: 'zones', scope: 'cluster' },
})

export const getZoneStoragePolicy = zones.get('get_zone_storage_policy', '/{zone}/storage-policy', {
  summary: 'Get the storage policy of a zone',
  params: ByZone,
  answers: { 200: z.strictObject({ storage_policy: StoragePolicyView }) },
  refuses: [404, 409],
})

export const setZoneStoragePolicy = zones.put('set_zone_storage_policy', '/{zone}/storage-policy', {
  summary: 'Set the storage policy of a zone',
  description:
    'The Ceph cluster in `spec.sharedStorage` of the Zone keeps this number of copies of each pool, no two on one ' +
    'host or in one rack. The operation ends when all data is placed accordingly. Refused with 409 when the zone ' +
    'has no shared storage, or too few hosts or racks for the copies. Refused with 501 when the platform is only ' +
    'a client: the administrator of that storage sets the policy.',
  starts: ['storage.rebalance_policy'],
  params: ByZone,
  body: z.strictObject({
    replicas: z.int().min(1).max(STORAGE_REPLICAS_MAXIMUM).describe('Desired number of copies.'),
    failure_domain: z.enum(STORAGE_FAILURE_DOMAINS).describe('Failure domain that no two copies may share.'),
    pools: z.array(z.string().min(1).max(63)).max(16).optional().describe('Pools to change; all when omitted.'),
  }),
  example: { replicas: 3, failure_domain: 'host' },
  refuses: [400, 404, 409, 501, 503],
})

export const STORAGE_PLACEMENT_ROUTES = [
  moveStorage,
  drainNodeStorage,
  getZoneStoragePolicy,
  setZoneStoragePolicy,
] as const
