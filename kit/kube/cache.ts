/** The known state of one kind: every object at its newest observed version, with indexes. The reflector and the
 *  process's own writes update it, so that a process always sees what it wrote. An object never goes back to an older
 *  version, and a deleted one never comes back. Objects are frozen and without managedFields. */
import { keyOf, keyText, type Key, type KubeObject, type ResourceType } from './object.ts'
import { isInvented } from './dry-run-store.ts'
import type { ObjectList, WatchEvent } from './store.ts'

export type CacheChange<Spec = unknown, Status = unknown> =
  | {
      readonly is: 'set'
      readonly object: KubeObject<Spec, Status>
      readonly previous: KubeObject<Spec, Status> | undefined
      /** Not a change: the object existed when the subscriber or the cache started. */
      readonly isInitial: boolean
    }
  /** `object` is the last known version; it was deleted after that and not after `version`. */
  | { readonly is: 'removed'; readonly object: KubeObject<Spec, Status>; readonly version: string }

type Listener<Spec, Status> = (change: CacheChange<Spec, Status>) => void
type KeysOf<Spec, Status> = (object: KubeObject<Spec, Status>) => readonly string[]

/** Versions of one API server are decimal numbers of any length. */
export const isNewer = (version: string, than: string): boolean =>
  version.length === than.length ? version > than : version.length > than.length

const versionOf = (object: KubeObject): string => object.metadata.resourceVersion ?? ''
/** The write that removes the last finalizer of a deleted object returns the object, although it is deleted then. */
const isGone = ({ metadata }: KubeObject): boolean =>
  metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0

export class Cache<Spec = unknown, Status = unknown> {
  readonly type: ResourceType<Spec, Status>
  readonly #objects = new Map<string, KubeObject<Spec, Status>>()
  readonly #indexes = new Map<string, Index<Spec, Status>>()
  readonly #listeners = new Set<Listener<Spec, Status>>()
  /** Own deletions that the watch has not reported yet. */
  readonly #removed = new Map<string, string>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #onListenerFailure: (error: unknown) => void
  /** The cache contains everything up to this version; empty before the first list. */
  #syncedVersion = ''

  /** `onListenerFailure` is called when a listener threw, which is a bug of that listener; the others are still
   *  called. */
  constructor(type: ResourceType<Spec, Status>, onListenerFailure: (error: unknown) => void) {
    this.type = type
    this.#onListenerFailure = onListenerFailure
    this.addIndex('namespace', ({ metadata }) => (metadata.namespace === undefined ? [] : [metadata.namespace]))
    this.addIndex('label', ({ metadata }) =>
      Object.entries(metadata.labels ?? {}).map(([name, value]) => `${name}=${value}`),
    )
    this.addIndex('owner', ({ metadata }) => (metadata.ownerReferences ?? []).map(({ uid }) => uid))
  }

  /** Resolves when the first list is complete. */
  ready(): Promise<void> {
    return this.#ready.promise
  }
  get isReady(): boolean {
    return this.#syncedVersion !== ''
  }
  get syncedVersion(): string {
    return this.#syncedVersion
  }
  get size(): number {
    return this.#objects.size
  }

  get(key: Key): KubeObject<Spec, Status> | undefined {
    return this.#objects.get(keyText(key))
  }
  /** In no particular order, like all lists here. */
  list(): KubeObject<Spec, Status>[] {
    return [...this.#objects.values()]
  }
  inNamespace(namespace: string): KubeObject<Spec, Status>[] {
    return this.by('namespace', namespace)
  }
  labelled(label: string, value: string): KubeObject<Spec, Status>[] {
    return this.by('label', `${label}=${value}`)
  }
  ownedBy(uid: string): KubeObject<Spec, Status>[] {
    return this.by('owner', uid)
  }

  /** Objects whose keys in the named index contain the value. An index that was never added is a bug. */
  by(index: string, value: string): KubeObject<Spec, Status>[] {
    const found = this.#indexes.get(index)
    if (found === undefined) throw new Error(`no index ${index} over ${this.type.plural}`)
    return [...found.at(value)].flatMap((key) => this.#objects.get(key) ?? [])
  }
  /** Adds an index over the keys that a pure function returns; does nothing when one of that name exists. */
  addIndex(name: string, keysOf: KeysOf<Spec, Status>): void {
    if (this.#indexes.has(name)) return
    const index = new Index(keysOf)
    for (const [key, object] of this.#objects) index.move(key, undefined, object)
    this.#indexes.set(name, index)
  }

  /** Calls immediately with every existing object, then with each change, until the returned function is called.
   *  Listeners only take note: slow work is done elsewhere. */
  subscribe(listen: Listener<Spec, Status>): () => void {
    this.#listeners.add(listen)
    for (const object of this.#objects.values())
      this.#notify(listen, { is: 'set', object, previous: undefined, isInitial: true })
    return () => this.#listeners.delete(listen)
  }

  /** Stores the result of a write, ahead of the watch. An older version than the known one changes nothing, and neither
   *  does the result of a dry run. */
  apply(written: KubeObject<Spec, Status>): void {
    if (isInvented(written)) return
    const key = keyText(keyOf(written))
    const version = versionOf(written)
    if (!isNewer(version, this.#syncedVersion) || this.#isKnown(key, version)) return
    if (!isGone(written)) return this.#set(key, written, false)
    this.#removed.set(key, version)
    this.#remove(key, version)
  }

  /** The version up to which the knowledge of the object, or of its absence, is complete. */
  knownVersion(key: Key): string {
    const text = keyText(key)
    const object = this.#objects.get(text)
    const ahead = object === undefined ? this.#removed.get(text) : versionOf(object)
    return ahead !== undefined && isNewer(ahead, this.#syncedVersion) ? ahead : this.#syncedVersion
  }

  /** Stores the complete state of a namespace, ahead of the watch. Older versions than the known ones change
   *  nothing. */
  takeNamespace(namespace: string, list: ObjectList<Spec, Status>): void {
    for (const object of list.items) this.apply(object)
    const listed = new Set(list.items.map((object) => keyText(keyOf(object))))
    for (const object of this.inNamespace(namespace)) {
      const key = keyText(keyOf(object))
      if (listed.has(key) || isNewer(versionOf(object), list.resourceVersion)) continue
      this.#removed.set(key, list.resourceVersion)
      this.#remove(key, list.resourceVersion)
    }
  }

  /** Stores the state of the server; returns how many objects differed from the known ones. The list must not be older
   *  than `seenVersion`. */
  takeList(list: ObjectList<Spec, Status>): number {
    const isFirst = !this.isReady
    const listed = new Set<string>()
    let differences = 0
    for (const object of list.items) {
      const key = keyText(keyOf(object))
      listed.add(key)
      if (this.#isKnown(key, versionOf(object))) continue
      this.#set(key, object, isFirst)
      differences++
    }
    for (const [key, object] of this.#objects) {
      if (listed.has(key) || isNewer(versionOf(object), list.resourceVersion)) continue
      this.#remove(key, list.resourceVersion)
      differences++
    }
    this.#advance(list.resourceVersion)
    if (isFirst) this.#ready.resolve()
    return differences
  }

  /** Stores one event of the watch; false when it was known already. */
  takeEvent(event: WatchEvent<Spec, Status>): boolean {
    const version = event.type === 'BOOKMARK' ? event.resourceVersion : versionOf(event.object)
    if (!isNewer(version, this.#syncedVersion)) return false
    if (event.type !== 'BOOKMARK') {
      const key = keyText(keyOf(event.object))
      if (!this.#isKnown(key, version)) {
        if (event.type === 'DELETED') this.#remove(key, version)
        else this.#set(key, event.object, false)
      }
    }
    this.#advance(version)
    return true
  }

  #isKnown(key: string, version: string): boolean {
    const object = this.#objects.get(key)
    const known = object === undefined ? this.#removed.get(key) : versionOf(object)
    return known !== undefined && !isNewer(version, known)
  }

  #advance(version: string): void {
    this.#syncedVersion = version
    for (const [key, removedAt] of this.#removed) if (!isNewer(removedAt, version)) this.#removed.delete(key)
  }

  #set(key: string, object: KubeObject<Spec, Status>, isInitial: boolean): void {
    const copy = frozen(withoutManagedFields(object))
    const previous = this.#objects.get(key)
    this.#objects.set(key, copy)
    this.#removed.delete(key)
    for (const index of this.#indexes.values()) index.move(key, previous, copy)
    for (const listen of this.#listeners) this.#notify(listen, { is: 'set', object: copy, previous, isInitial })
  }

  #remove(key: string, version: string): void {
    const object = this.#objects.get(key)
    if (object === undefined) return
    this.#objects.delete(key)
    for (const index of this.#indexes.values()) index.move(key, object, undefined)
    for (const listen of this.#listeners) this.#notify(listen, { is: 'removed', object, version })
  }

  #notify(listen: Listener<Spec, Status>, change: CacheChange<Spec, Status>): void {
    try {
      listen(change)
    } catch (error) {
      this.#onListenerFailure(error)
    }
  }
}

const NO_KEYS: ReadonlySet<string> = new Set()

class Index<Spec, Status> {
  readonly #keysOf: KeysOf<Spec, Status>
  readonly #keys = new Map<string, Set<string>>()
  constructor(keysOf: KeysOf<Spec, Status>) {
    this.#keysOf = keysOf
  }

  at(value: string): ReadonlySet<string> {
    return this.#keys.get(value) ?? NO_KEYS
  }

  move(key: string, from: KubeObject<Spec, Status> | undefined, to: KubeObject<Spec, Status> | undefined): void {
    const before = from === undefined ? [] : this.#keysOf(from)
    const after = to === undefined ? [] : this.#keysOf(to)
    for (const value of before) {
      const keys = this.#keys.get(value)
      keys?.delete(key)
      if (keys?.size === 0) this.#keys.delete(value)
    }
    for (const value of after) {
      const keys = this.#keys.get(value)
      if (keys === undefined) this.#keys.set(value, new Set([key]))
      else keys.add(key)
    }
  }
}

function withoutManagedFields<Spec, Status>(object: KubeObject<Spec, Status>): KubeObject<Spec, Status> {
  const { managedFields: _managed, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Freezes the value and everything in it. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const member of Object.values(value)) frozen(member)
  return Object.freeze(value)
}
