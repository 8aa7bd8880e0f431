/** Stored objects of accounts for requests: single reads go through to the store, pages come from the cache, and each
 *  object is encoded to JSON once. The plain reads of every noun with objects are here; changes are in
 *  `change-object.ts`. */
import type { z } from 'zod'
import { notFound } from '../../../domain/problem.ts'
import { listRecentWrites, type RecentWrite } from '../../../db/change/index.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import { etagOf } from '../../../kit/http/conditional.ts'
import type { Position } from '../../../kit/http/cursor.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { Cache } from '../../../kit/kube/cache.ts'
import { keyOf, type KubeObject, type ResourceType } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import type { Stored } from '../../../resources/kit/shapes.ts'
import type { Acceptance } from '../change/accept.ts'
import type { CatchUp } from '../change/catch-up.ts'
import { createEncodedPages } from '../list/encoded-pages.ts'
import { newestFirst, positionOf, sortNewestFirst } from '../list/newest-first.ts'
import { type Facets, facetsOf } from '../list/filters.ts'
import { READ_ITEMS_MAXIMUM, readPage } from '../list/page.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../parts.ts'

export type ObjectParts = Pick<Parts, 'store' | 'caches' | 'db' | 'clock' | 'hasPeers' | 'loopbackTwins' | 'catchUp'>

/** The facts about a noun with objects in Kubernetes that the plain verbs need. */
export interface ObjectNoun<Spec, Status, Surroundings extends object, View> {
  /** Its name in answers and references: `server`. */
  readonly name: Acceptance<unknown, unknown, unknown>['resource']['type']
  /** Its name in refusals. */
  readonly title: string
  readonly resource: ResourceType<Spec, Status>
  /** What the view shows in addition to the object. The JSON of an object is cached until one of the members
   *  changes. */
  readonly surroundingsOf: (object: KubeObject<Spec, Status>) => Surroundings
  readonly toView: (stored: Stored<Spec, Status>, surroundings: Surroundings) => View
  readonly labelsOf?: (spec: Spec) => Readonly<Record<string, string>>
  /** Names that customers never see; none when absent. */
  readonly isHidden?: (name: string) => boolean
  /** Throws for objects that customers see but must not change; absent when there are none. */
  readonly requireOwn?: (object: KubeObject<Spec, Status>) => void
  /** Fields by which lists can be filtered, each with an index: `zone`, `hostname`. */
  readonly fields?: Readonly<Record<string, (spec: Spec) => string>>
}

export interface Filter {
  readonly ids?: readonly string[] | undefined
  readonly labels?: readonly { readonly key: string; readonly value: string }[]
  /** By the names of the noun's fields; undefined for any value. */
  readonly fields?: Readonly<Record<string, string | undefined>>
}

export interface Objects<Spec, Status, View> {
  readonly name: ObjectNoun<Spec, Status, object, View>['name']
  readonly resource: ResourceType<Spec, Status>
  readonly cache: Cache<Spec, Status>
  /** As the store has it now. Throws 404 for ids that are unknown or another account's. */
  read(accountId: string, id: string): Promise<KubeObject<Spec, Status>>
  /** From the cache; undefined when it is not there. */
  find(accountId: string, id: string): KubeObject<Spec, Status> | undefined
  /** Brings the cache up to what other replicas have written for the account and have shown it. Does nothing without
   *  other replicas. */
  catchUp(accountId: string): Promise<void>
  /** Brings the caches that the view reads from up to what other replicas have shown the account. */
  readonly catchUpAll: CatchUp['account']
  /** Whether customers never see the object of this name. */
  isHidden(id: string): boolean
  /** Throws for objects that customers see but must not change. */
  requireOwn(object: KubeObject<Spec, Status>): void
  /** At most `count` objects after the position, newest first. */
  page(
    accountId: string,
    filter: Filter,
    after: Position | undefined,
    count: number,
  ): readonly KubeObject<Spec, Status>[]
  viewOf(object: KubeObject<Spec, Status>): View
  /** The view as JSON in UTF-8. */
  jsonOf(object: KubeObject<Spec, Status>): Buffer
  /** What filters and the search read of the view. */
  facetsOf(object: KubeObject<Spec, Status>): Facets
}

export const etagOfObject = ({ metadata }: KubeObject): string => etagOf(metadata.generation ?? 0)

const LABEL_INDEX = 'api label'
const within = (namespace: string | undefined, text: string): string => `${namespace ?? ''}\n${text}`

/** Indexes the kind's cache by its labels and fields. */
export function openObjects<Spec, Status, Surroundings extends object, View>(
  { store, caches, db, clock, hasPeers = false, catchUp }: ObjectParts,
  noun: ObjectNoun<Spec, Status, Surroundings, View>,
): Objects<Spec, Status, View> {
  const { name, title, resource, surroundingsOf, toView, isHidden = () => false, requireOwn = () => {} } = noun
  const cache = caches.of(resource)
  catchUp.include(resource)
  const select = openSelection(cache, noun)
  return {
    name,
    resource,
    cache,
    async read(accountId, id) {
      if (isHidden(id)) throw notFound(title)
      const object = await store.get(resource, { namespace: accountNamespace(accountId), name: id })
      if (object === undefined) throw notFound(title)
      cache.apply(object)
      return object
    },
    find: (accountId, id) =>
      isHidden(id) ? undefined : cache.get({ namespace: accountNamespace(accountId), name: id }),
    async catchUp(accountId) {
      if (!hasPeers) return
      await catchUp.account(accountId)
      const namespace = accountNamespace(accountId)
      const writes = await listRecentWrites(db, accountId, name, clock.now())
      const isBehind = ({ resource: { id }, resourceVersion }: RecentWrite) =>
        Number(cache.get({ namespace, name: id })?.metadata.resourceVersion ?? 0) < Number(resourceVersion)
      await Promise.all(
        writes.filter(isBehind).map(async ({ resource: { id } }) => {
          const object = await store.get(resource, { namespace, name: id })
          if (object !== undefined) cache.apply(object)
        }),
      )
    },
    catchUpAll: catchUp.account,
    isHidden,
    requireOwn,
    page: (accountId, filter, after, count) => select(accountNamespace(accountId), filter, after, count),
    viewOf: (object) => toView(storedOf(object), surroundingsOf(object)),
    ...openEncoding(noun),
  }
}

/** Pages of a namespace: an index finds the candidates of a filter; without a filter, objects are in order already. */
function openSelection<Spec, Status, Surroundings extends object, View>(
  cache: Cache<Spec, Status>,
  { labelsOf = () => ({}), fields = {}, isHidden = () => false }: ObjectNoun<Spec, Status, Surroundings, View>,
) {
  cache.addIndex(LABEL_INDEX, ({ metadata, spec }) =>
    Object.entries(labelsOf(spec)).map(([key, value]) => within(metadata.namespace, `${key}=${value}`)),
  )
  for (const [field, valueOf] of Object.entries(fields))
    cache.addIndex(field, ({ metadata, spec }) => [within(metadata.namespace, valueOf(spec))])
  const isShown = ({ metadata }: KubeObject): boolean => !isHidden(metadata.name)
  const ordered = newestFirst(cache, isShown)
  return (
    namespace: string,
    { ids, labels = [], fields: wanted = {} }: Filter,
    after: Position | undefined,
    count: number,
  ): readonly KubeObject<Spec, Status>[] => {
    const values = Object.entries(wanted).flatMap(([field, value]) => (value === undefined ? [] : [{ field, value }]))
    const [label] = labels
    const [first] = [
      ...values.map(({ field, value }) => ({ index: field, key: value })),
      ...(label === undefined ? [] : [{ index: LABEL_INDEX, key: `${label.key}=${label.value}` }]),
    ]
    if (first === undefined && ids === undefined) return ordered.page(namespace, after, count)
    const matches = ({ spec }: KubeObject<Spec, Status>): boolean => {
      const own = labelsOf(spec)
      return (
        values.every(({ field, value }) => fields[field]?.(spec) === value) &&
        labels.every(({ key, value }) => Object.hasOwn(own, key) && own[key] === value)
      )
    }
    const found =
      ids?.flatMap((name) => cache.get({ namespace, name }) ?? []) ??
      (first === undefined ? [] : cache.by(first.index, within(namespace, first.key)))
    const candidates = [...new Set(found)].filter(isShown)
    return sortNewestFirst(candidates.filter(matches), after).slice(0, count)
  }
}

/** Renders an object again when it, or something else that its view shows, has changed. */
function openEncoding<Spec, Status, Surroundings extends object, View>({
  surroundingsOf,
  toView,
}: ObjectNoun<Spec, Status, Surroundings, View>) {
  type Rendering = { readonly surroundings: Surroundings; json?: Buffer; facets?: Facets }
  const rendered = new WeakMap<object, Rendering>()
  const rememberedOf = (object: KubeObject<Spec, Status>): Rendering => {
    const surroundings = surroundingsOf(object)
    const known = rendered.get(object)
    if (known !== undefined && isSame(known.surroundings, surroundings)) return known
    const fresh = { surroundings }
    rendered.set(object, fresh)
    return fresh
  }
  return {
    jsonOf(object: KubeObject<Spec, Status>): Buffer {
      const known = rememberedOf(object)
      return (known.json ??= Buffer.from(JSON.stringify(toView(storedOf(object), known.surroundings))))
    },
    facetsOf(object: KubeObject<Spec, Status>): Facets {
      const known = rememberedOf(object)
      return (known.facets ??= facetsOf(toView(storedOf(object), known.surroundings)))
    },
  }
}

function isSame<T extends object>(one: T, other: T): boolean {
  for (const member in one) if (one[member] !== other[member]) return false
  return true
}

type RouteOfOne = Route<z.ZodType<{ readonly id: string }>>

/** Reads the object through to the store, so that a client always sees its own write. */
export const getObject = <Spec, Status, View>(objects: Objects<Spec, Status, View>, route: RouteOfOne): Endpoint => {
  const [opens, closes] = [Buffer.from(`{"${objects.name}":`), Buffer.from('}')]
  return customerEndpoint(route, async ({ caller, params }) => {
    const [read] = await Promise.all([objects.read(caller.accountId, params.id), objects.catchUpAll(caller.accountId)])
    const object = objects.cache.get(keyOf(read)) ?? read
    return {
      status: 200,
      json: Buffer.concat([opens, objects.jsonOf(object), closes]),
      headers: { etag: etagOfObject(object) },
    }
  })
}

const PAGES_BYTES = 16 * 1024 * 1024

type ListQuery = { readonly cursor?: string | undefined; readonly limit: number }

/** Members that a list shows beside those of the view, for each item; undefined when the query asks for none. */
type AlsoShown<Spec, Status, Query> = (
  accountId: string,
  query: Query,
  items: readonly KubeObject<Spec, Status>[],
) => Promise<readonly object[] | undefined>

/** An encoded object with more members. */
const withMembers = (json: Buffer, members: object): Buffer =>
  Buffer.concat([json.subarray(0, -1), Buffer.from(`,${JSON.stringify(members).slice(1)}`)])

/** Pages are joined from objects that are encoded already, and cached as long as they stay the same. */
export const listObjects = <Spec, Status, View, Query extends ListQuery>(
  { cursors }: Pick<Parts, 'cursors'>,
  objects: Objects<Spec, Status, View>,
  route: Route<z.ZodType, z.ZodType<Query>>,
  filterOf: (query: Query) => Filter,
  alsoOf?: AlsoShown<Spec, Status, Query>,
): Endpoint => {
  const pages = createEncodedPages(PAGES_BYTES)
  const passing = createEncodedPages(0)
  return customerEndpoint(
    route,
    async ({ caller, ...call }: Call<Route<z.ZodType, z.ZodType<ListQuery>>, Customer>) => {
      await objects.catchUp(caller.accountId)
      const query = call.query as Query & { readonly id?: readonly string[] } // the route's own schema has parsed it
      const filter = { ...filterOf(query), ids: query.id }
      const { items, nextCursor } = await readPage(
        cursors,
        { ...call, caller },
        (after, count) => objects.page(caller.accountId, filter, after, count),
        positionOf,
        { viewsOf: (found) => found, facetsOf: objects.facetsOf, batchItems: READ_ITEMS_MAXIMUM },
      )
      const also = await alsoOf?.(caller.accountId, query, items)
      if (also === undefined) return { status: 200, json: pages.join(items.map(objects.jsonOf), nextCursor) }
      const longer = items.map((item, index) => withMembers(objects.jsonOf(item), also[index] ?? {}))
      return { status: 200, json: passing.join(longer, nextCursor) }
    },
  )
}

/** Labels in queries: `key=value`. */
export const labelsOfQuery = (texts: readonly string[] = []): NonNullable<Filter['labels']> =>
  texts.map((text) => ({ key: text.slice(0, text.indexOf('=')), value: text.slice(text.indexOf('=') + 1) }))
