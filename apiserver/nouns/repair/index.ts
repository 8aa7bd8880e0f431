/** Fencing nodes, and operators' actions on servers that are lost, stuck or in the wrong place. Each is one conditional
 *  write with its operation; the operators' log and the chain of the account that a server belongs to record who
 *  requested it. */
import * as routes from '../../../resources/repair/index.ts'
import { defined } from '../../../domain/defined.ts'
import { isReachableState, requireFenceable } from '../../../domain/node/rules.ts'
import type { Extent, OperationKind } from '../../../domain/operations.ts'
import { badField, conflict, notFound, unavailable } from '../../../domain/problem.ts'
import { type ServerFacts, requireIdle, requireReleasable } from '../../../domain/server/rules.ts'
import { type ServerClaims, findServerClaims } from '../../../db/server/index.ts'
import { findStaffByEmail } from '../../../db/staff/index.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { accountNamespace, accountOfNamespace } from '../../../resources/index.ts'
import { Node, nodeFactsOf } from '../../../resources/node/index.ts'
import { Plan } from '../../../resources/catalog/index.ts'
import { Server, factsOf } from '../../../resources/server/index.ts'
import { announceEarlier } from '../../kit/change/accept.ts'
import { beginAsOperator } from '../../kit/change/begin.ts'
import type { OperatorAct } from '../../kit/change/staff-audit.ts'
import type { Parts } from '../../kit/parts.ts'
import { type ServerObject, moveOf, requireDestination } from '../server/index.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { type Nodes, beginOnNode } from '../node/index.ts'
import { noun } from '../../kit/noun.ts'

const NAME_INDEX = 'name'

function repairEndpoints(parts: Parts, nodes: Nodes): readonly Endpoint[] {
  parts.caches.of(Plan)
  parts.caches.of(Server).addIndex(NAME_INDEX, ({ metadata }) => [metadata.name])
  return [
    operatorEndpoint(routes.fenceNode, (call) => fence(parts, nodes, call)),
    operatorEndpoint(routes.migrateServer, (call) => migrate(parts, call)),
    operatorEndpoint(routes.recoverServer, (call) => recover(parts, nodes, call)),
    operatorEndpoint(routes.settleServerMigration, (call) => resolve(parts, call)),
    operatorEndpoint(routes.forceReleaseServer, (call) => forceRelease(parts, nodes, call)),
  ]
}

async function fence(parts: Parts, nodes: Nodes, call: Call<typeof routes.fenceNode, Operator>): Promise<Answer> {
  const { method, reason, second_approver, force } = call.body
  const node = await nodes.read(call.params.id)
  if (second_approver !== undefined) await requireSecond(parts, call.caller, 'second_approver', second_approver)
  requireFenceable(nodeFactsOf(storedOf(node), 0), force)
  const hasPower = node.spec.bmc !== undefined && (method === 'auto' || method === 'power_off')
  const hasStorage = node.spec.storageAccess !== undefined && (method === 'auto' || method === 'storage_block')
  const isAttested = second_approver !== undefined && (method === 'auto' || method === 'attest')
  if (!hasPower && !hasStorage && !isAttested)
    throw unavailable('not_configured', NO_WAY[method] ?? NO_WAY.auto, {
      resource: { type: 'node', id: call.params.id },
    })
  if (!hasPower && !hasStorage && isReachableState(node.status?.state))
    throw conflict(
      'state_not_allowed',
      'The node answers: nobody can attest that nothing of it runs. Drain it instead.',
      { resource: { type: 'node', id: call.params.id } },
    )
  const operation = await beginOnNode(parts, nodes, call, {
    kind: 'node.fence',
    validate: (facts) => requireFenceable(facts, force),
    spec: {},
    detail: { method, ...defined({ second_approver }) },
    arguments: {
      method,
      reason,
      approver: nameOf(call.caller),
      ...defined({ second_approver }),
      ...(force ? { force: 'true' } : {}),
    },
  })
  return { status: 202, body: { operation } }
}

const NO_WAY: Partial<Readonly<Record<(typeof routes.FENCE_METHODS)[number], string>>> & { readonly auto: string } = {
  auto:
    'The node has neither a management controller nor shared storage that can refuse it. Choose attest, with ' +
    'somebody who attests it too.',
  power_off: 'The node has no management controller. Choose another method.',
  storage_block:
    'The node names no shared storage that could take its access away (spec.storageAccess). Choose another method.',
}

const nameOf = ({ staff, name }: Operator): string => staff?.email ?? name

/** Two-person rule: the second person is of the staff, has the same right, and is not the caller. */
async function requireSecond({ db }: Pick<Parts, 'db'>, caller: Operator, field: string, email: string): Promise<void> {
  const other = await findStaffByEmail(db, email)
  if (other === undefined || other.disabled_at !== null || other.role !== 'operations')
    throw badField(field, 'is nobody of the staff with the role operations')
  if (email === nameOf(caller)) throw badField(field, 'must be somebody else than who asks')
}

type OnServer = OperatorAct & Pick<Call, 'now'> & { readonly params: { readonly id: string } }

interface AccountServer {
  readonly accountId: string
  readonly server: ServerObject
}

/** Ids that people chose with kubectl may belong to several accounts. Throws 404, 409, and 403 when the caller may not
 *  access the account's servers. */
async function find(
  { caches, store, requireAccess }: Parts,
  { caller, params: { id } }: OnServer,
): Promise<AccountServer> {
  const known = caches.of(Server).by(NAME_INDEX, id)
  const { namespace = '' } = (known.length === 1 ? known[0]?.metadata : undefined) ?? {}
  const accountId = accountOfNamespace(namespace)
  // An operator who may not access every account's servers must not learn which ids exist.
  await requireAccess(caller, { verb: 'update', resource: 'servers' }, accountId === undefined ? undefined : namespace)
  if (known.length > 1)
    throw conflict(
      'state_not_allowed',
      'Several accounts have a server of this name. Use kubectl in the namespace of its account.',
      { resource: { type: 'server', id } },
    )
  if (accountId === undefined) throw notFound('server')
  const server = await store.get(Server, { namespace, name: id })
  if (server === undefined) throw notFound('server')
  return { accountId, server }
}

interface Verb extends Extent {
  readonly kind: OperationKind
  readonly validate: (server: ServerFacts) => void
  readonly arguments: Readonly<Record<string, string>>
  readonly detail?: Readonly<Record<string, string>>
}

async function begin(
  parts: Parts,
  call: OnServer,
  { accountId }: AccountServer,
  { validate, ...verb }: Verb,
): Promise<Answer> {
  const { id } = call.params
  const operation = await beginAsOperator(parts, call, {
    ...verb,
    target: { type: 'server', id },
    resource: Server,
    accountIds: [accountId],
    async read() {
      const server = await parts.store.get(Server, { namespace: accountNamespace(accountId), name: id })
      if (server === undefined) throw notFound('server')
      return server
    },
    async validate(server) {
      validate(factsOf(storedOf(server)))
      await announceEarlier(parts, accountId, { type: 'server', id }, server)
    },
  })
  return { status: 202, body: { operation } }
}

const claimsOf = async (
  { db }: Pick<Parts, 'db'>,
  { accountId, server }: AccountServer,
): Promise<ServerClaims | undefined> => findServerClaims(db, { accountId, serverId: server.metadata.name })

/** A target that is named must be another node of the server's zone. */
function requireOtherNode(
  { caches }: Pick<Parts, 'caches'>,
  { server }: AccountServer,
  claims: ServerClaims | undefined,
  target: string | undefined,
): void {
  if (target === undefined) return
  const node = caches.of(Node).get({ name: target })
  if (node === undefined || node.spec.zone !== server.spec.zone)
    throw badField('target_node_id', `is no node of zone ${server.spec.zone}`)
  if (target === claims?.placement.node) throw badField('target_node_id', 'is where the server is')
}

async function migrate(parts: Parts, call: Call<typeof routes.migrateServer, Operator>): Promise<Answer> {
  const { target_node_id, mode } = call.body
  const found = await find(parts, call)
  const { power: _power, ...move } = moveOf(found.server)
  requireOtherNode({ caches: parts.caches }, found, await claimsOf(parts, found), target_node_id)
  await requireDestination(parts, found, { node: target_node_id }, call.now)
  return begin(parts, call, found, {
    ...move,
    arguments: defined({ target_node_id, mode }),
    detail: target_node_id === undefined ? {} : { target_node_id },
  })
}

async function recover(parts: Parts, nodes: Nodes, call: Call<typeof routes.recoverServer, Operator>): Promise<Answer> {
  const { target_node_id, start } = call.body
  const found = await find(parts, call)
  const claims = await claimsOf(parts, found)
  requireOtherNode(parts, found, claims, target_node_id)
  const lost = claims === undefined ? undefined : await nodes.read(claims.placement.node)
  const { fence: proof } = lost?.status ?? {}
  if (lost === undefined || proof === undefined)
    throw conflict('state_not_allowed', 'The node of the server is not fenced. Fence it first.', {
      resource: { type: 'server', id: call.params.id },
    })
  const lost_node_id = lost.metadata.name
  return begin(parts, call, found, {
    kind: 'server.recover',
    validate: requireIdle,
    detail: { lost_node_id },
    arguments: {
      lost_node_id,
      fence_operation_id: proof.operationId,
      ...defined({ target_node_id }),
      ...(start === undefined ? {} : { start: String(start) }),
    },
  })
}

async function resolve(parts: Parts, call: Call<typeof routes.settleServerMigration, Operator>): Promise<Answer> {
  const found = await find(parts, call)
  const claims = await claimsOf(parts, found)
  if (claims?.target === undefined)
    throw conflict('state_not_allowed', 'The server is not on its way to another node.', {
      resource: { type: 'server', id: call.params.id },
    })
  return begin(parts, call, found, {
    kind: 'server.settle_migration',
    validate: requireIdle,
    arguments: { winner: call.body.winner },
  })
}

async function forceRelease(
  parts: Parts,
  nodes: Nodes,
  call: Call<typeof routes.forceReleaseServer, Operator>,
): Promise<Answer> {
  const { reason, fence_operation_id, attest } = call.body
  const found = await find(parts, call)
  if (attest !== undefined) await requireSecond(parts, call.caller, 'attest', attest)
  const claims = await claimsOf(parts, found)
  const node = claims === undefined ? undefined : await nodes.read(claims.placement.node)
  const refuse = (detail: string) =>
    conflict('state_not_allowed', detail, { resource: { type: 'server', id: call.params.id } })
  if (fence_operation_id !== undefined && node?.status?.fence?.operationId !== fence_operation_id)
    throw refuse('That operation has not fenced the node of the server.')
  if (fence_operation_id !== undefined && node?.status?.fence?.method === 'storage_block')
    throw refuse(
      'Only its shared storage refuses the node: the server may still answer at its addresses. Give attest instead.',
    )
  if (attest !== undefined && node !== undefined && isReachableState(node.status?.state))
    throw refuse('The node of the server answers: delete the server instead.')
  return begin(parts, call, found, {
    kind: 'server.force_release',
    validate: requireReleasable,
    detail: {
      reason,
      ...(attest === undefined ? { fence_operation_id: fence_operation_id ?? '' } : { second_approver: attest }),
    },
    arguments: {
      reason,
      approver: nameOf(call.caller),
      ...defined({ lost_node_id: node?.metadata.name, attest, fence_operation_id }),
    },
  })
}

export const repair = noun<Parts & { readonly nodes: Nodes }>({
  name: 'repair',
  endpoints: (parts) => repairEndpoints(parts, parts.nodes),
})
