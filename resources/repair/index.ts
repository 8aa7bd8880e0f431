/** What operators do about lost hosts: fencing a node, and bringing its servers to where they can be. Served on the
 *  operator listener only. */
import { z } from 'zod'
import { MIGRATION_MODES } from '../../domain/server/migration-policies.ts'
import { Email } from '../identity/index.ts'
import { Id, Printable } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

const Reason = Printable.trim().min(1).max(1_000)
const SecondApprover = Email.describe('Somebody else of the staff, who attests it too.')

export const FENCE_METHODS = ['auto', 'power_off', 'storage_block', 'attest'] as const

const nodes = routesUnder({
  path: '/v1/operator/nodes',
  area: 'Nodes',
  staff: 'operations',
  access: { resource: 'nodes', scope: 'cluster' },
})

export const fenceNode = nodes.post('fence_node', '/{id}/fence', {
  summary: 'Prove that nothing runs on a node',
  description:
    'Its servers live elsewhere from then on. auto climbs the ladder: its power is cut and seen to be off twice, ' +
    'its shared storage acknowledges that it serves it no more, or two of the staff attest it; what brings no ' +
    'proof is an event. Without proof the node stays as it was.',
  starts: ['node.fence'],
  isDestructive: true,
  body: z
    .strictObject({
      method: z.enum(FENCE_METHODS),
      reason: Reason,
      second_approver: SecondApprover.optional(),
      force: z.boolean().default(false).describe('Also while the node answers: its servers lose their guests.'),
    })
    .refine(({ method, second_approver }) => method !== 'attest' || second_approver !== undefined, {
      path: ['second_approver'],
      message: 'is required for attest',
    }),
  example: { method: 'auto', reason: 'Nobody hears it, and its fans do not turn.' },
  refuses: [400, 404, 409, 503],
})

const servers = routesUnder({
  path: '/v1/operator/servers',
  area: 'Server repair, storage, templates',
  staff: 'operations',
  access: { resource: 'servers', scope: 'account' },
})

export const migrateServer = servers.post('migrate_server', '/{id}/migrate', {
  summary: 'Move a server to another node',
  description: 'A stopped server is moved as it is. The node is chosen when none is named.',
  starts: ['server.migrate', 'server.move'],
  body: z.strictObject({
    target_node_id: Id.optional(),
    mode: z.enum(MIGRATION_MODES).optional().describe('By default as the migration policy of the server wants it.'),
  }),
  refuses: [400, 404, 409, 503],
})
export const recoverServer = servers.post('recover_server', '/{id}/recover', {
  summary: 'Bring a server from a fenced node elsewhere',
  description: 'The platform does so by itself; this is for another node, or another power, than it would choose.',
  starts: ['server.recover'],
  body: z.strictObject({
    target_node_id: Id.optional(),
    start: z.boolean().optional().describe('By default as its owner wants it and its high availability policy says.'),
  }),
})
export const settleServerMigration = servers.post('settle_server_migration', '/{id}/settle-migration', {
  summary: 'Bring a move that was left in the middle to its end',
  description:
    'Both nodes are asked; what they say goes before the winner that is named. A server that runs on neither ' +
    'stays on the source unless the target is named.',
  starts: ['server.settle_migration'],
  body: z.strictObject({ winner: z.enum(['source', 'target', 'auto']).default('auto') }),
})
export const forceReleaseServer = servers.post('force_release_server', '/{id}/force-release', {
  summary: 'Give up a server whose node will not come back',
  description:
    'Frees its room, addresses and disks without the word of its node; the server is deleted afterwards. Needs the ' +
    'fencing of that node, or somebody else who attests that the host is lost.',
  starts: ['server.force_release'],
  isDestructive: true,
  body: z
    .strictObject({ reason: Reason, fence_operation_id: Id.optional(), attest: SecondApprover.optional() })
    .refine(
      ({ fence_operation_id, attest }) => (fence_operation_id === undefined) !== (attest === undefined),
      'must give either fence_operation_id or attest',
    ),
  example: { reason: 'The host burned.', attest: 'bob@example.com' },
})

export const REPAIR_ROUTES = [
  fenceNode,
  migrateServer,
  recoverServer,
  settleServerMigration,
  forceReleaseServer,
] as const
