/** Where storages lie, for operators: moving one, and emptying the disks of a node. Served on the operator listener
 *  only. */
import { z } from 'zod'
import { STORAGE_FAILURE_DOMAINS, STORAGE_REPLICAS_MAXIMUM } from '../catalog/index.ts'
import { Id, ZoneName } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { STORAGE_TIERS } from '../storage/index.ts'

const DEADLINE_HOURS_MAXIMUM = 168
export const STORAGE_DRAIN_HOURS_DEFAULT = 24

const storages = routesUnder({
  path: '/v1/operator/storages',
  area: 'Server repair, storage, templates',
  staff: 'operations',
  access: { resource: 'storages', scope: 'account' },
})

export const moveStorage = storages.post('move_storage', '/{id}/move', {
  summary: 'Move a storage to another node, or to storage of another tier',
  description:
    'A storage that no server has is copied to the other node. One that a server has, boot storages too, goes with ' +
    'that server, which is moved along with all its storages: while it runs, as its migration policy allows, or as ' +
    'it is when it is stopped. The source is freed when the data are whole on the other node. A move to another tier ' +
    'goes to another node of the zone too, which is chosen when none is named.',
  starts: ['storage.move'],
  body: z
    .strictObject({
      target_node_id: Id.optional().describe('A node of the zone of the storage, and not the one where it is.'),
      tier: z
        .enum(STORAGE_TIERS)
        .optional()
        .describe('standard brings it to the shared storage of its zone, local-nvme to the disks of a host.'),
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
  area: 'Nodes',
  staff: 'operations',
  access: { resource: 'nodes', scope: 'cluster' },
})

export const drainNodeStorage = nodes.post('drain_node_storage', '/{id}/drain-storage', {
  summary: 'Empty the disks of a node',
  description:
    'Cordons the node, so that it takes no new servers and storages, and moves every storage away: those of servers ' +
    'with their servers, one `server.migrate` or `server.move` for each, the others by a `storage.move` each. ' +
    'Refused with `no_capacity` when the zone has no room for them. The node stays cordoned.',
  starts: ['storage.drain_host'],
  body: z.strictObject({
    deadline_hours: z
      .int()
      .min(1)
      .max(DEADLINE_HOURS_MAXIMUM)
      .default(STORAGE_DRAIN_HOURS_DEFAULT)
      .describe('What has not left by then stays, and the operation fails.'),
  }),
  example: { deadline_hours: 24 },
  refuses: [400, 404, 409, 503],
})

const ByZone = z.strictObject({ zone: ZoneName })

export const StoragePolicyView = z
  .strictObject({
    zone: z.string(),
    pools: z.array(z.string()).describe('Shared storage that nodes of the zone reach, as they name it.'),
    replicas: z.int().nullable().describe('How many copies it keeps; null where only its administrator knows.'),
    failure_domain: z
      .enum(STORAGE_FAILURE_DOMAINS)
      .nullable()
      .describe('What may fail at once without the loss of more than one copy; null as before.'),
  })
  .meta({ id: 'StoragePolicy' })
export type StoragePolicyView = z.infer<typeof StoragePolicyView>

const zones = routesUnder({
  path: '/v1/operator/zones',
  area: 'Server repair, storage, templates',
  staff: 'operations',
  access: { resource: 'zones', scope: 'cluster' },
})

export const getZoneStoragePolicy = zones.get('get_zone_storage_policy', '/{zone}/storage-policy', {
  summary: 'Read how the shared storage of a zone keeps its data',
  params: ByZone,
  answers: { 200: z.strictObject({ storage_policy: StoragePolicyView }) },
  refuses: [404, 409],
})

export const setZoneStoragePolicy = zones.put('set_zone_storage_policy', '/{zone}/storage-policy', {
  summary: 'Set how the shared storage of a zone keeps its data',
  description:
    'The Ceph cluster that `spec.sharedStorage` of the Zone names keeps so many copies of each pool, no two of them ' +
    'on one host or in one rack; the operation is over when all data lie so. Refused with 409 where the zone has no ' +
    'shared storage, or too few hosts or racks for the copies, and with 501 where the platform is a client only: the ' +
    'administrator of that storage sets the policy there.',
  starts: ['storage.rebalance_policy'],
  params: ByZone,
  body: z.strictObject({
    replicas: z.int().min(1).max(STORAGE_REPLICAS_MAXIMUM).describe('How many copies it is to keep.'),
    failure_domain: z.enum(STORAGE_FAILURE_DOMAINS).describe('What no two copies may share.'),
    pools: z.array(z.string().min(1).max(63)).max(16).optional().describe('Which of them; all when left out.'),
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
