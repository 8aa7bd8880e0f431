/** What the stream of changes has to know about a noun: its items as its list shows them, and whose changes may change
 *  them. Nouns register feeds beside their endpoints. */
import { isDeepStrictEqual } from 'node:util'
import type { Customer } from '../../kit/http/call.ts'
import type { Route } from '../../kit/http/route.ts'
import type { Cache } from '../../kit/kube/cache.ts'
import type { Caches } from '../../kit/kube/caches.ts'
import type { KubeObject, ResourceType } from '../../kit/kube/object.ts'
import { Zone, type ZoneSpec, type ZoneStatus } from '../../resources/catalog/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import type { Facets } from './list/filters.ts'
import type { Objects } from './plain/objects.ts'

/** An item, by the namespace of its account. */
export interface ItemKey {
  readonly namespace: string
  readonly id: string
}

/** A change that may have changed items. */
export interface Touch {
  /** `all`: any item of any account. */
  readonly keys: readonly ItemKey[] | 'all'
  /** The version of Kubernetes at which it happened, or a later one. */
  readonly version: string
}

/** Objects that items show. */
export interface Source {
  readonly kind: ResourceType
  /** They are the items themselves: an item without its object is deleted. */
  readonly isOwn: boolean
  /** Calls with each change from now on. */
  follow(listen: (touch: Touch) => void): void
  /** Everything up to this version is known; empty before the first list. */
  syncedVersion(): string
}

export interface Feed {
  /** The name of the noun in answers: `server`. */
  readonly type: string
  /** Who may use this route, the list of the items, may follow them. */
  readonly list: Route
  readonly sources: readonly Source[]
  /** Each item as JSON in UTF-8, as the list shows it; without those that the list does not have. */
  readonly itemsOf: (accountId: string, ids: readonly string[]) => Items | Promise<Items>
  /** The ids of all items, for sources that touch all. */
  readonly idsOf?: (accountId: string) => readonly string[]
  /** All items as the search reads them; absent where they are not in the caches. */
  readonly facetsOf?: (accountId: string) => readonly Facets[]
  /** Its items are rows: the account's audit entries name those that have changed. */
  readonly isAudited: boolean
}

export type Items = ReadonlyMap<string, Buffer>

/** Of a type without items only the name and ids are sent, which the audit log shows to everybody. */
export const mayRead = (caller: Customer, route: Route | undefined): boolean =>
  route === undefined ||
  ((route.permission === null || caller.permissions.includes(route.permission)) &&
    route.credentials.includes(caller.kind) &&
    !(route.isRefusedToSupport && caller.support !== undefined))

interface SourceOptions<Spec, Status> {
  readonly isOwn?: boolean
  /** Changes of anything else do not matter. */
  readonly part?: (object: KubeObject<Spec, Status>) => unknown
}

/** Objects of the cache. `touches` names the items that show an object. */
export const sourceOf = <Spec, Status>(
  cache: Cache<Spec, Status>,
  touches: (object: KubeObject<Spec, Status>) => readonly ItemKey[] | 'all',
  { isOwn = false, part }: SourceOptions<Spec, Status> = {},
): Source => ({
  kind: cache.type as ResourceType, // whatever its objects have
  isOwn,
  follow(listen) {
    cache.subscribe((change) => {
      if (change.is === 'removed') return listen({ keys: touches(change.object), version: change.version })
      const { object, previous, isInitial } = change
      if (isInitial) return
      if (part !== undefined && previous !== undefined && isDeepStrictEqual(part(previous), part(object))) return
      const [now, before] = [touches(object), previous === undefined ? [] : touches(previous)]
      const keys = now === 'all' || before === 'all' ? 'all' : [...now, ...before]
      listen({ keys, version: object.metadata.resourceVersion ?? '' })
    })
  },
  syncedVersion: () => cache.syncedVersion,
})

/** The items of the objects' namespace with these ids, whatever the ids name. */
export const besides =
  <Spec, Status>(idsOf: (object: KubeObject<Spec, Status>) => readonly (string | undefined)[]) =>
  (object: KubeObject<Spec, Status>): readonly ItemKey[] => {
    const { namespace = '' } = object.metadata
    return idsOf(object).flatMap((id) => (id === undefined ? [] : [{ namespace, id }]))
  }

/** Names the objects as items: those in an index of the cache that shows who shows what. */
export const keysOf = (objects: readonly KubeObject[]): readonly ItemKey[] =>
  objects.map(({ metadata: { namespace = '', name } }) => ({ namespace, id: name }))

/** Zones, for items that show something of theirs: the region when `part` is absent. */
export const zonesOf = (
  caches: Caches,
  part: NonNullable<SourceOptions<ZoneSpec, ZoneStatus>['part']> = ({ spec }) => spec.region,
): Source => sourceOf(caches.of(Zone), () => 'all', { part })

/** The objects of an account, in the form of their list. */
export const objectFeed = <Spec, Status, View>(
  type: string,
  list: Route,
  objects: Objects<Spec, Status, View>,
  others: readonly Source[] = [],
): Feed => ({
  type,
  list,
  isAudited: false,
  sources: [ownSource(objects), ...others],
  itemsOf: (accountId, ids) =>
    new Map(
      ids.flatMap((id) => {
        const object = objects.find(accountId, id)
        return object === undefined ? [] : [[id, objects.jsonOf(object)]]
      }),
    ),
  idsOf: (accountId) => shownOf(objects, accountId).map(({ metadata }) => metadata.name),
  facetsOf: (accountId) => shownOf(objects, accountId).map(objects.facetsOf),
})

/** The objects of an account that customers see. */
const shownOf = <Spec, Status, View>({ cache, isHidden }: Objects<Spec, Status, View>, accountId: string) =>
  cache.inNamespace(accountNamespace(accountId)).filter(({ metadata }) => !isHidden(metadata.name))

const ownSource = <Spec, Status, View>({ cache, isHidden }: Objects<Spec, Status, View>): Source =>
  sourceOf(
    cache,
    besides(({ metadata: { name } }) => [isHidden(name) ? undefined : name]),
    { isOwn: true },
  )

/** The rows of an account. `find` returns one in the form of its list; undefined when there is none. */
export const rowFeed = (
  type: string,
  list: Route,
  find: (accountId: string, id: string) => Promise<object | undefined>,
  sources: readonly Source[] = [],
): Feed => ({
  type,
  list,
  isAudited: true,
  sources,
  async itemsOf(accountId, ids) {
    const items = new Map<string, Buffer>()
    for (const id of ids) {
      const item = await find(accountId, id)
      if (item !== undefined) items.set(id, Buffer.from(JSON.stringify(item)))
    }
    return items
  },
})
