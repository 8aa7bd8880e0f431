/** What operators do about lost hosts: fencing a node, and bringing its servers to where they can be. Served on the
 *  operator listener only. */
import { z } from 'zod'
import { MIGRATION_MODES } from '../../domain/migration-policies.ts'
import { forOperators, route } from '../define.ts'
import { OperationEnvelope } from '../operation/index.ts'
import { Email } from '../identity/index.ts'
import { ById, Id, Printable } from '../shapes.ts'

const changing = forOperators('operations')
const onServers = {
  ...changing,
  area: 'Server repair, storage, templates',
  access: { verb: 'update', resource: 'servers', scope: 'account' },
} as const

const Reason = Printable.trim().min(1).max(1_000)
const SecondApprover = Email.describe('Somebody else of the staff, who attests it too.')

export const FENCE_METHODS = ['auto', 'power_off', 'storage_block', 'attest'] as const

export const fenceNode = route({
  ...changing,
  area: 'Nodes',
  id: 'fence_node',
  method: 'POST',
  path: '/v1/operator/nodes/{id}/fence',
  summary: 'Prove that nothing runs on a node',
  access: { verb: 'update', resource: 'nodes', scope: 'cluster' } as const,
  description:
    'Its servers live elsewhere from then on. auto climbs the ladder: its power is cut and seen to be off twice, ' +
    'its shared storage acknowledges that it serves it no more, or two of the staff attest it; what brings no ' +
    'proof is an event. Without proof the node stays as it was.',
  audit: 'node.fence',
  starts: ['node.fence'],
  isDestructive: true,
  params: ById,
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
  answers: { 202: OperationEnvelope },
  refuses: [400, 404, 409, 503],
})
export const migrateServer = route({
  ...onServers,
  id: 'migrate_server',
  method: 'POST',
  path: '/v1/operator/servers/{id}/migrate',
  summary: 'Move a server to another node',
  audit: 'server.migrate',
  starts: ['server.migrate', 'server.move'],
  description: 'A stopped server is moved as it is. The node is chosen when none is named.',
  params: ById,
  body: z.strictObject({
    target_node_id: Id.optional(),
    mode: z.enum(MIGRATION_MODES).optional().describe('By default as the migration policy of the server wants it.'),
  }),
  answers: { 202: OperationEnvelope },
  refuses: [400, 404, 409, 503],
})
export const recoverServer = route({
  ...onServers,
  id: 'recover_server',
  method: 'POST',
  path: '/v1/operator/servers/{id}/recover',
  summary: 'Bring a server from a fenced node elsewhere',
  audit: 'server.recover',
  starts: ['server.recover'],
  description: 'The platform does so by itself; this is for another node, or another power, than it would choose.',
  params: ById,
  body: z.strictObject({
    target_node_id: Id.optional(),
    start: z.boolean().optional().describe('By default as its owner wants it and its high availability policy says.'),
  }),
  answers: { 202: OperationEnvelope },
  refuses: [400, 404, 409],
})
export const settleServerMigration = route({
  ...onServers,
  id: 'settle_server_migration',
  method: 'POST',
  path: '/v1/operator/servers/{id}/settle-migration',
  summary: 'Bring a move that was left in the middle to its end',
  audit: 'server.settle_migration',
  starts: ['server.settle_migration'],
  description:
    'Both nodes are asked; what they say goes before the winner that is named. A server that runs on neither ' +
    'stays on the source unless the target is named.',
  params: ById,
  body: z.strictObject({ winner: z.enum(['source', 'target', 'auto']).default('auto') }),
  answers: { 202: OperationEnvelope },
  refuses: [400, 404, 409],
})
export const forceReleaseServer = route({
  ...onServers,
  id: 'force_release_server',
  method: 'POST',
  path: '/v1/operator/servers/{id}/force-release',
  summary: 'Give up a server whose node will not come back',
  audit: 'server.force_release',
  starts: ['server.force_release'],
  description:
    'Frees its room, addresses and disks without the word of its node; the server is deleted afterwards. Needs the ' +
    'fencing of that node, or somebody else who attests that the host is lost.',
  isDestructive: true,
  params: ById,
  body: z
    .strictObject({ reason: Reason, fence_operation_id: Id.optional(), attest: SecondApprover.optional() })
    .refine(
      ({ fence_operation_id, attest }) => (fence_operation_id === undefined) !== (attest === undefined),
      'must give either fence_operation_id or attest',
    ),
  example: { reason: 'The host burned.', attest: 'bob@example.com' },
  answers: { 202: OperationEnvelope },
  refuses: [400, 404, 409],
})

export const REPAIR_ROUTES = [
  fenceNode,
  migrateServer,
  recoverServer,
  settleServerMigration,
  forceReleaseServer,
] as const
