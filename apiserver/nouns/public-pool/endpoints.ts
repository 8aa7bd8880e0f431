/** Pools of public addresses for operators. Each change is one conditional write of the PublicPool, with the operation
 *  that brings it about. */
import { isPrivateNetwork } from '../../../domain/network/addresses.ts'
import { defined } from '../../../domain/defined.ts'
import { canonicalPool } from '../../../domain/public-pool/rules.ts'
import { conflict, notFound, operationInProgress } from '../../../domain/problem.ts'
import { countAllocated } from '../../../db/public-pool/index.ts'
import type { Answer, Call, Operator } from '../../../kit/http/call.ts'
import { requireMatch } from '../../../kit/http/conditional.ts'
import { type Endpoint, operatorEndpoint } from '../../../kit/http/endpoint.ts'
import { newOrderedUuid } from '../../../kit/sys/random.ts'
import { activeOperationOf, type OperationView } from '../../../resources/operation/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import * as routes from '../../../resources/public-pool/index.ts'
import {
  PublicPool,
  type PublicPoolSpec,
  type PublicPoolView,
  toPublicPoolView,
} from '../../../resources/public-pool/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import { newStanza } from '../../kit/change/accept.ts'
import { begunView } from '../../kit/change/begun.ts'
import { beginAsOperator, patchWithOperation } from '../../kit/change/begin.ts'
import { changeAsOperator } from '../../kit/change/operator-change.ts'
import { pageOfObjects } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import { etagOfObject } from '../../kit/plain/objects.ts'
import { isPrivateOf, type PoolObject, requireApart, requireSound, requireUnused } from './rules.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

type Action = 'create' | 'update'

export function publicPoolEndpoints(parts: Parts): readonly Endpoint[] {
  parts.caches.of(PublicPool)
  parts.caches.of(Zone)
  return [
    operatorEndpoint(routes.listPublicPools, (call) => list(parts, call)),
    operatorEndpoint(routes.getPublicPool, async ({ params }) => found(parts, await read(parts, params.id))),
    operatorEndpoint(routes.createPublicPool, (call) => create(parts, call)),
    operatorEndpoint(routes.updatePublicPool, (call) => update(parts, call)),
    operatorEndpoint(routes.deletePublicPool, (call) => remove(parts, call)),
  ]
}

async function read({ store, caches }: Parts, id: string): Promise<PoolObject> {
  const pool = await store.get(PublicPool, { name: id })
  if (pool === undefined) throw notFound('public pool')
  caches.of(PublicPool).apply(pool)
  return pool
}

async function viewsOf({ db }: Parts, pools: readonly PoolObject[]): Promise<readonly PublicPoolView[]> {
  const allocated = await countAllocated(
    db,
    pools.map(({ metadata }) => metadata.name),
  )
  return pools.map((pool) =>
    toPublicPoolView(storedOf(pool), {
      allocated: allocated.get(pool.metadata.name) ?? 0,
      isPrivate: isPrivateOf(pool.spec),
    }),
  )
}

async function viewOf(parts: Parts, pool: PoolObject): Promise<PublicPoolView> {
  const [view] = await viewsOf(parts, [pool])
  if (view === undefined) throw new Error('one pool has one view')
  return view
}

function list(parts: Parts, call: Call<typeof routes.listPublicPools, Operator>): Promise<Answer> {
  const { zone, family } = call.query
  const isWanted = ({ spec }: PoolObject) =>
    (zone === undefined || spec.zone === zone) && (family === undefined || spec.family === family)
  const pools = parts.caches.of(PublicPool).list().filter(isWanted)
  return pageOfObjects(parts, call, pools, (page) => viewsOf(parts, page))
}

const stanzaOf = (
  parts: Parts,
  { caller, request, now }: Pick<Call<typeof routes.createPublicPool, Operator>, 'caller' | 'request' | 'now'>,
  action: Action,
): OperationStanza =>
  newStanza(parts, 'public_pool.sync', {
    actor: caller.actor,
    requestId: request.requestId,
    now,
    arguments: { action },
  })

const operationOf = (pool: PoolObject): OperationView =>
  begunView(pool, { type: 'public_pool', id: pool.metadata.name })

async function create(parts: Parts, call: Call<typeof routes.createPublicPool, Operator>): Promise<Answer> {
  const { body, now } = call
  const { zone, family, use, announce } = body
  const { cidr, gateway } = canonicalPool({ cidr: body.cidr, gateway: body.gateway ?? undefined })
  const isPrivate = body.is_private ?? isPrivateNetwork(cidr)
  const id = newOrderedUuid(parts.random, now)
  const spec: PublicPoolSpec = {
    zone,
    family,
    cidr,
    use,
    isPrivate,
    announce,
    state: 'active',
    ...defined({ gateway }),
    operation: stanzaOf(parts, call, 'create'),
  }
  requireSound(parts, spec, (field) => field)
  const object = await changeAsOperator(parts, call, {
    resource: { type: 'public_pool', id },
    audit: { action: 'public_pool.create', detail: { zone, cidr, use } },
    async write() {
      requireApart({ id, cidr }, (await parts.store.list(PublicPool)).items)
      return parts.store.create(PublicPool, { metadata: { name: id, finalizers: [finalizerOf(PublicPool)] }, spec })
    },
  })
  return accepted(parts, object)
}

async function found(parts: Parts, pool: PoolObject): Promise<Answer> {
  return { status: 200, body: { public_pool: await viewOf(parts, pool) }, headers: { etag: etagOfObject(pool) } }
}

async function accepted(parts: Parts, pool: PoolObject): Promise<Answer> {
  parts.caches.of(PublicPool).apply(pool)
  return { status: 202, body: { public_pool: await viewOf(parts, pool), operation: operationOf(pool) } }
}

/** Throws 409 while another change runs, and for a pool that is being deleted or was never taken over. */
function requireIdle({ metadata, status, spec }: PoolObject): void {
  const resource = { type: 'public_pool', id: metadata.name }
  const active = activeOperationOf({ spec, ...defined({ status }) })
  if (active !== undefined) throw operationInProgress(active.id, resource)
  if (metadata.deletionTimestamp !== undefined)
    throw conflict('state_not_allowed', 'The pool is being retired.', { resource })
}

async function update(parts: Parts, call: Call<typeof routes.updatePublicPool, Operator>): Promise<Answer> {
  const {
    body: { state, note },
    params: { id },
  } = call
  const operation = stanzaOf(parts, call, 'update')
  const resource = { type: 'public_pool', id }
  const written = await changeAsOperator(parts, call, {
    resource,
    audit: {
      action: 'public_pool.update',
      detail: defined({ state, note }),
    },
    async write() {
      const pool = await read(parts, id)
      requireMatch(call.request, etagOfObject(pool))
      if (isAlreadyDesired(pool, call.body)) return pool
      requireIdle(pool)
      if (pool.status?.state === undefined)
        throw conflict('state_not_allowed', 'The pool was refused, and gives nothing: delete it.', { resource })
      return patchWithOperation(parts, PublicPool, pool, operation, defined({ state, note }))
    },
  })
  return written.spec.operation?.id === operation.id ? accepted(parts, written) : found(parts, written)
}

/** The state, once it has been brought about: a change that an operation did not finish is retried by requesting it
 *  again. */
const isAlreadyDesired = (
  { spec, status }: PoolObject,
  { state, note }: Call<typeof routes.updatePublicPool, Operator>['body'],
): boolean =>
  (state === undefined || (state === spec.state && state === status?.state)) &&
  (note === undefined || note === spec.note)

async function remove(parts: Parts, call: Call<typeof routes.deletePublicPool, Operator>): Promise<Answer> {
  const { id } = call.params
  const operation = await beginAsOperator(parts, call, {
    kind: 'public_pool.sync',
    action: 'public_pool.delete',
    target: { type: 'public_pool', id },
    resource: PublicPool,
    read: () => read(parts, id),
    async validate(pool) {
      requireIdle(pool)
      await requireUnused(parts, id)
    },
    arguments: { action: 'delete' },
  })
  return { status: 202, body: { operation } }
}
