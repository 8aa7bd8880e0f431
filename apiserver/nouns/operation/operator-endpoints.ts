/** Operations of all accounts and of the platform, for operators. */
import { cancelling, isCancellableByOperators, isFinal } from '../../../domain/operations.ts'
import { type NodeFacts, requireDrainable, requireNodeIdle, requireUpgradable } from '../../../domain/node/rules.ts'
import { conflict, notFound } from '../../../domain/problem.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { findOperationOfAny, listOperationRowsOfAll, type OperationFilter } from '../../../db/operation/index.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import {
  activeOperationOf,
  carrierOf,
  Operation,
  type OperationView,
  namedTarget,
  toOperationView,
} from '../../../resources/operation/index.ts'
import {
  cancelOperatorOperation,
  getOperatorOperation,
  listOperatorOperations,
  retryOperatorOperation,
} from '../../../resources/operator/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Server } from '../../../resources/server/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import {
  isListed,
  listedViews,
  matchesOf,
  ofHistory,
  ofObject,
  operationPlace,
  periodOf,
  targetOf,
  withProgress,
} from './views.ts'
import { changeAsOperator } from '../../kit/change/operator-change.ts'
import type { OperatorAct } from '../../kit/change/staff-audit.ts'
import { answerOf, readPageByTime } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Targets } from '../../kit/change/targets.ts'
import { openEnds } from './seen.ts'
import { requireBeforeCutover, type ServerObject } from '../server/index.ts'
import { beginOnNode, type Nodes, othersOf } from '../node/index.ts'

const ID_INDEX = 'operation id'

type Needs = Parts & { readonly nodes: Nodes; readonly targets: Targets }

export function operatorOperationEndpoints(parts: Needs): readonly Endpoint[] {
  const { nodes, targets } = parts
  const cache = parts.caches.of(Operation)
  cache.addIndex(ID_INDEX, ({ metadata }) => [metadata.name])
  const ends = openEnds(parts)
  const read = async (id: string) => ends.seenHere(await readOperation(parts, id))
  return [
    operatorEndpoint(listOperatorOperations, (call) => list(parts, call)),
    operatorEndpoint(getOperatorOperation, async ({ params }) => ({
      status: 200,
      body: { operation: await read(params.id) },
    })),
    operatorEndpoint(cancelOperatorOperation, async (call) => {
      const { id } = call.params
      const view = await read(id)
      const resource = { type: 'operation', id }
      if (isFinal(view.status)) throw conflict('state_not_allowed', 'The operation has ended.', { resource })
      if (!isCancellableByOperators(view.kind))
        throw conflict('state_not_allowed', `An operation ${view.kind} cannot be cancelled.`, { resource })
      await cancel(parts, call, id)
      return { status: 202, body: { operation: await read(id) } }
    }),
    operatorEndpoint(retryOperatorOperation, async (call) => {
      const { id } = call.params
      const view = await read(id)
      await parts.requireAccess(call.caller, { verb: 'update', resource: Node.plural })
      const resource = { type: 'operation', id }
      if (view.status !== 'failed')
        throw conflict('state_not_allowed', 'Only an operation that has failed can be tried again.', { resource })
      // A proof that was given with the first request is not valid now.
      if (!retryOperatorOperation.starts.includes(view.kind))
        throw conflict(
          'state_not_allowed',
          `An operation ${view.kind} is not tried again: ask for what is wanted now.`,
          { resource },
        )
      const target = targets.find(id)
      const failed = target?.object.spec.operation
      if (target?.type !== 'node' || failed === undefined)
        throw conflict('state_not_allowed', 'Another operation came after it: ask for what is wanted now.', {
          resource,
        })
      const { cancel: _cancel, ...parameters } = failed.arguments ?? {}
      const operation = await beginOnNode(
        parts,
        nodes,
        { ...call, params: { id: target.object.metadata.name } },
        {
          kind: failed.kind,
          action: 'operation.retry',
          validate: (facts) => validateAgain(nodes, facts, failed),
          spec: SPEC_OF[failed.kind] ?? {},
          arguments: parameters,
          detail: { operation_id: id },
          deadlineAt: new Date(call.now.getTime() + Date.parse(failed.deadlineAt) - Date.parse(failed.requestedAt)),
        },
      )
      return { status: 202, body: { operation } }
    }),
  ]
}

/** Validates as for a new request, except that its node may already be cordoned by the operation itself. */
function validateAgain(
  { cache }: Nodes,
  facts: NodeFacts,
  { kind, arguments: parameters = {} }: OperationStanza,
): void {
  requireNodeIdle(facts)
  if (kind === 'node.drain' || kind === 'node.maintenance') requireDrainable(facts)
  if (kind === 'node.agent_upgrade') requireUpgradable(facts, parameters['version'] ?? '', othersOf(cache, facts))
}

/** The spec of a node whose operation is retried. */
const SPEC_OF: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'node.cordon': { isCordoned: true },
  'node.uncordon': { isCordoned: false, isInMaintenance: null },
  'node.drain': { isCordoned: true, isInMaintenance: true },
  'node.maintenance': { isCordoned: true, isInMaintenance: true },
}

async function readOperation(parts: Needs, id: string): Promise<OperationView> {
  const [known] = parts.caches.of(Operation).by(ID_INDEX, id)
  const object = known === undefined ? undefined : await parts.store.get(Operation, keyOf(known))
  if (object !== undefined) {
    const view = ofObject(object)
    return withProgress(
      view,
      parts.caches.of(Server).get({ namespace: object.metadata.namespace ?? '', name: view.server_id ?? '' }),
    )
  }
  const finished = isUuid(id) ? await findOperationOfAny(parts.db, id) : undefined
  if (finished !== undefined) return ofHistory(finished)
  const target = parts.targets.find(id)
  const active = target && activeOperationOf(target.object)
  if (target === undefined || active === undefined) throw notFound('operation')
  const { metadata, spec } = target.object
  const reference = namedTarget(target.type, { name: metadata.name, spec })
  return { ...toOperationView(active, reference, carrierOf(spec.operation)), events: [] }
}

/** Marks the operation as cancelled, if it is the newest of its target and has not ended. */
async function cancel(parts: Needs, call: OperatorAct, id: string): Promise<void> {
  const resource = { type: 'operation', id }
  const ended = () => conflict('state_not_allowed', 'The operation has ended.', { resource })
  const target = parts.targets.find(id)
  if (target === undefined) throw ended()
  const { type, resource: kind, object } = target
  const { namespace, name } = object.metadata
  await parts.requireAccess(call.caller, { verb: 'update', resource: kind.plural }, namespace)
  const accountId = accountOfNamespace(namespace ?? '')
  await changeAsOperator(parts, call, {
    resource,
    audit: { action: 'operation.cancel', detail: { [`${type}_id`]: name } },
    ...(accountId === undefined ? {} : { accountIds: [accountId] }),
    async write() {
      const read = await parts.store.get(kind, keyOf(object))
      if (read === undefined || activeOperationOf(read)?.id !== id) throw ended()
      if (type === 'server') requireBeforeCutover((read as ServerObject).status, id) // the kind of that type
      parts.caches.of(kind).apply(
        await parts.store.patch(kind, keyOf(read), {
          metadata: { resourceVersion: read.metadata.resourceVersion },
          spec: { operation: { arguments: cancelling } },
        }),
      )
    },
  })
}

async function list(
  { db, caches, cursors }: Parts,
  call: Call<typeof listOperatorOperations, Operator>,
): Promise<Answer> {
  const { node_id: node, older_than: olderThan } = call.query
  const filters = periodOf(call.query)
  const bounds = [filters.before, olderThan === undefined ? undefined : new Date(olderThan)]
  const [before] = bounds.filter((at) => at !== undefined).sort((one, other) => one.getTime() - other.getTime())
  const filter: OperationFilter = {
    ...filters,
    before,
    target: node === undefined ? targetOf(call.query) : { type: 'node', id: node },
  }
  const page = await readPageByTime(
    cursors,
    call,
    async (after, limit) => {
      const finished = await listOperationRowsOfAll(db, { ...filter, after, limit })
      const objects = caches.of(Operation).list()
      return listedViews(
        finished,
        objects.filter((operation) => isListed(operation, filter)),
        after,
      )
    },
    operationPlace,
    { viewsOf: (views) => views, matches: matchesOf(call.query) },
  )
  return answerOf(page)
}
