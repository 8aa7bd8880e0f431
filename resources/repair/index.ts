/** Operators' actions for lost hosts: fencing a node, and moving its servers. Served on the operator listener only. */
import { z } from 'zod'
import { MIGRATION_MODES } from '../../domain/server/migration-policies.ts'
import { Email } from '../identity/index.ts'
import { Id } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'
import { Reason } from '../kit/fields.ts'

const SecondApprover = Email.describe('Email address of another staff member who attests it too.')

export const FENCE_METHODS = ['auto', 'power_off', 'storage_block', 'attest'] as const

const nodes = routesUnder({
  path: '/v1/operator/nodes',
  staff: 'operations',
  access: { resource: 'nodes', scope: 'cluster' },
})

export const fenceNode = nodes.post('fence_node', '/{id}/fence', {
  summary: 'Fence a node by proving that nothing runs on it',
  description:
    'Afterwards its servers run elsewhere. auto tries in order: power cut and seen to be off twice; shared ' +
    'storage confirming that it no longer serves the node; attestation by two staff members. A method without ' +
    'proof is recorded as an event. Without any proof the node stays unchanged.',
  starts: ['node.fence'],
  isDestructive: true,
  body: z
    .strictObject({
      method: z.enum(FENCE_METHODS),
      reason: Reason,
      second_approver: SecondApprover.optional(),
      force: z.boolean().default(false).describe('Fences even while the node answers: its servers lose their guests.'),
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
  staff: 'operations',
  access: { resource: 'servers', scope: 'account' },
})

export const migrateServer = servers.post('migrate_server', '/{id}/migrate', {
  summary: 'Move a server to another node',
  description: 'A stopped server is moved without being started. Without a given node, the platform chooses one.',
  starts: ['server.migrate', 'server.move'],
  body: z.strictObject({
    target_node_id: Id.optional(),
    mode: z.enum(MIGRATION_MODES).optional().describe('Defaults to the migration policy of the server.'),
  }),
  refuses: [400, 404, 409, 503],
})
export const recoverServer = servers.post('recover_server', '/{id}/recover', {
  summary: 'Recover a server from a fenced node',
  description: 'The platform does this automatically. Use it to choose another node or power state.',
  starts: ['server.recover'],
  body: z.strictObject({
    target_node_id: Id.optional(),
    start: z.boolean().optional().describe("Defaults to the owner's setting and the high availability policy."),
  }),
})
export const settleServerMigration = servers.post('settle_server_migration', '/{id}/settle-migration', {
  summary: 'Complete an interrupted move of a server',
  description:
    'The platform asks both nodes; their answers take precedence over the given winner. A server that runs on ' +
    'neither stays on the source unless the target is given.',
  starts: ['server.settle_migration'],
  body: z.strictObject({ winner: z.enum(['source', 'target', 'auto']).default('auto') }),
})
export const forceReleaseServer = servers.post('force_release_server', '/{id}/force-release', {
  summary: 'Release a server whose node will not come back',
  description:
    'Releases its capacity, addresses and disks without confirmation from its node, then deletes the server. ' +
    'Requires a fencing operation of that node, or another person attesting that the host is lost.',
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
