/** Operations: from their object while it exists, from the history afterwards, from the target's stanza before. */
import { isHiddenTarget } from '../../../domain/managed-machine/rules.ts'
import { isFinal } from '../../../domain/operations.ts'
import { notFound } from '../../../domain/problem.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { findOperation, listOperationRows } from '../../../db/operation/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { type Cache, isNewer } from '../../../kit/kube/cache.ts'
import { accountNamespace } from '../../../resources/index.ts'
import {
  activeOperationOf,
  cancelOperation,
  carrierOf,
  getOperation,
  listOperations,
  namedTarget,
  Operation,
  type OperationSpec,
  type OperationState,
  type OperationView,
  toOperationView,
} from '../../../resources/operation/index.ts'
import {
  isListed,
  listedViews,
  matchesOf,
  ofHistory,
  ofObject,
  type OperationObject,
  operationPlace,
  periodOf,
  targetOf,
  withActorNames,
  withProgress,
} from './views.ts'
import { answerOf, readPageByTime } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Targets } from '../../kit/change/targets.ts'
import { type Cancellables, markCancelled } from './cancel.ts'
import { type Ends, openEnds } from './seen.ts'

type OperationCache = Cache<OperationSpec, OperationState>

type Needs = Parts & Cancellables & { readonly targets: Targets }

export function operationEndpoints(parts: Needs): readonly Endpoint[] {
  const cache = parts.caches.of(Operation)
  const wait = createWaiting(parts, cache)
  const ends = openEnds(parts)
  return [
    customerEndpoint(getOperation, async ({ caller, params, query, request }) => {
      const read = async () => {
        const { view, record } = await readOperation(parts, caller.accountId, params.id)
        return {
          view: await ends.awaited(caller.accountId, view, record),
          version: record?.metadata.resourceVersion ?? '',
        }
      }
      const answer = async ({ view }: { readonly view: OperationView }): Promise<Answer> => {
        const [operation] = await withActorNames(parts.db, [view])
        return { status: 200, body: { operation } }
      }
      const found = await read()
      if (query.wait === undefined || isFinal(found.view.status)) return answer(found)
      const key = { namespace: accountNamespace(caller.accountId), name: params.id }
      await wait({
        ...key,
        accountId: caller.accountId,
        thanVersion: found.version,
        seconds: query.wait,
        signal: request.signal,
      })
      return answer(await read())
    }),
    customerEndpoint(listOperations, (call) => list(parts, { cache, ends }, call)),
    customerEndpoint(cancelOperation, (call) => cancel(parts, call)),
  ]
}

async function cancel(parts: Needs, call: Call<typeof cancelOperation, Customer>): Promise<Answer> {
  const {
    caller: { accountId },
    params: { id },
  } = call
  const { view } = await readOperation(parts, accountId, id)
  await markCancelled(parts, call, view)
  const [operation] = await withActorNames(parts.db, [(await readOperation(parts, accountId, id)).view])
  return { status: 202, body: { operation } }
}

interface FoundOperation {
  readonly view: OperationView
  /** Its object, when it exists. */
  readonly record: OperationObject | undefined
}

async function readOperation(
  { store, db, servers, targets }: Needs,
  accountId: string,
  id: string,
): Promise<FoundOperation> {
  const namespace = accountNamespace(accountId)
  const object = await store.get(Operation, { namespace, name: id })
  if (object !== undefined) {
    if (isHiddenTarget(object.spec.target)) throw notFound('operation')
    const view = ofObject(object)
    return {
      view: withProgress(view, servers.find(accountId, view.server_id ?? '')),
      record: object,
    }
  }
  const finished = isUuid(id) ? await findOperation(db, accountId, id) : undefined
  if (finished !== undefined) {
    if (isHiddenTarget(finished.target)) throw notFound('operation')
    return { view: ofHistory(finished), record: undefined }
  }
  const target = targets.find(id)
  const active = target && activeOperationOf(target.object)
  if (
    target?.object.metadata.namespace !== namespace ||
    active === undefined ||
    isHiddenTarget({ type: target.type, id: target.object.metadata.name })
  )
    throw notFound('operation')
  const { metadata, spec } = target.object
  const reference = namedTarget(target.type, { name: metadata.name, spec })
  return { view: { ...toOperationView(active, reference, carrierOf(spec.operation)), events: [] }, record: undefined }
}

interface Waiting {
  readonly accountId: string
  readonly namespace: string
  readonly name: string
  readonly thanVersion: string
  readonly seconds: number
  readonly signal: AbortSignal
}

/** Maximum number of waiting requests of one account; more are answered at once. */
const WAITING_MAXIMUM = 50

/** Resolves when the operation's object is newer than the version, when time is up, or when the client has
 *  disconnected. */
function createWaiting({ clock }: Pick<Parts, 'clock'>, cache: OperationCache): (waiting: Waiting) => Promise<void> {
  const waiters = new Map<string, number>()
  return async ({ accountId, namespace, name, thanVersion, seconds, signal }) => {
    const others = waiters.get(accountId) ?? 0
    if (others >= WAITING_MAXIMUM) return
    waiters.set(accountId, others + 1)
    const changed = new AbortController()
    const leave = cache.subscribe(({ object: { metadata } }) => {
      if (
        metadata.name === name &&
        metadata.namespace === namespace &&
        isNewer(metadata.resourceVersion ?? '', thanVersion)
      )
        changed.abort()
    })
    // It may have changed since it was read.
    if (isNewer(cache.get({ namespace, name })?.metadata.resourceVersion ?? '', thanVersion)) changed.abort()
    await clock.sleep(seconds * 1000, AbortSignal.any([signal, changed.signal]))
    leave()
    const left = (waiters.get(accountId) ?? 1) - 1
    if (left === 0) waiters.delete(accountId)
    else waiters.set(accountId, left)
  }
}

async function list(
  { db, cursors }: Parts,
  { cache, ends }: { readonly cache: OperationCache; readonly ends: Ends },
  call: Call<typeof listOperations, Customer>,
): Promise<Answer> {
  const {
    caller: { accountId },
    query: { id: ids },
  } = call
  const filter = { ...periodOf(call.query), ids, target: targetOf(call.query) }
  const isWanted = (operation: OperationObject) => !isHiddenTarget(operation.spec.target) && isListed(operation, filter)
  const page = await readPageByTime(
    cursors,
    call,
    async (after, limit) => {
      const finished = await listOperationRows(db, accountId, { ...filter, ids: ids?.filter(isUuid), after, limit })
      const namespace = accountNamespace(accountId)
      const views = listedViews(finished, cache.inNamespace(namespace).filter(isWanted), after)
      return Promise.all(views.map((view) => ends.viewFor(accountId, view, cache.get({ namespace, name: view.id }))))
    },
    operationPlace,
    { viewsOf: (views) => withActorNames(db, views), matches: matchesOf(call.query) },
  )
  return answerOf(page)
}
