/** All objects in memory, the revision counter, and the order in which changes become visible. A change is applied at
 *  once, so that the next one builds on it. It becomes visible (in responses and watches) only when the storage reports
 *  that it is durable: callers await `durable()` before they respond. */
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Storage, StoredRecord } from '../storage/storage.ts'
import type { KubeObject } from './object.ts'
import { withMetadata } from './object.ts'
import { type StoreChange, openTable, type Table } from './store-table.ts'

export interface Store {
  /** The revision of the newest change, durable or not. */
  revision(): number
  /** The revision of the newest durable change: every watch has received all changes up to it. */
  published(): number
  table(storageKey: string): Table
  tables(): Iterable<readonly [string, Table]>
  /** Stores the object under a new revision; returns it with that revision. */
  put(storageKey: string, key: string, object: KubeObject): KubeObject
  /** Removes the object; returns its last state (the stored one, or the given one) with the revision of the removal. */
  remove(storageKey: string, key: string, last?: KubeObject): KubeObject
  /** Resolves when all changes so far are durable; throws when the storage failed. */
  durable(): Promise<void>
  /** Marks that the resource is new: earlier watches must restart. */
  begin(storageKey: string): void
  /** Calls back during each change, before it is durable: for data that are derived from the state. */
  onApplied(listen: (storageKey: string, change: StoreChange) => void): void
  /** Calls back after each change has become durable, in order of revision. */
  onChange(listen: (storageKey: string, change: StoreChange) => void): void
  state(): { readonly revision: number; readonly records: Iterable<StoredRecord> }
  close(): Promise<void>
}

export async function openStore(options: { readonly storage: Storage; readonly clock: Clock }): Promise<Store> {
  const { storage, clock } = options
  const tables = new Map<string, Table>()
  const appliers: ((storageKey: string, change: StoreChange) => void)[] = []
  const listeners: ((storageKey: string, change: StoreChange) => void)[] = []
  let revision = 0
  let floor = 0
  let published = 0
  let written: Promise<void> = Promise.resolve()

  const table = (storageKey: string): Table => {
    let found = tables.get(storageKey)
    if (!found) tables.set(storageKey, (found = openTable(floor)))
    return found
  }
  const publish = (storageKey: string, change: StoreChange) => {
    published = change.revision
    for (const listen of listeners) listen(storageKey, change)
  }
  const commit = (storageKey: string, key: string, object: KubeObject | undefined, change: StoreChange) => {
    table(storageKey).set(key, object)
    table(storageKey).window.add(change, clock.monotonicMilliseconds())
    for (const listen of appliers) listen(storageKey, change)
    const appended = storage.append({ revision: change.revision, storageKey, key, object })
    written = appended.then(() => publish(storageKey, change))
    written.catch(() => {}) // callers of durable() get the error
  }

  const loaded = await storage.load()
  revision = floor = published = loaded.revision
  for (const record of loaded.snapshot) table(record.storageKey).set(record.key, record.object)
  for (const record of loaded.records) {
    revision = record.revision
    if (replay(table(record.storageKey), record, clock.monotonicMilliseconds())) published = revision
  }

  return {
    revision: () => revision,
    published: () => published,
    table,
    tables: () => tables.entries(),
    put(storageKey, key, object) {
      const old = table(storageKey).get(key)
      const stored = withRevision(object, ++revision)
      commit(storageKey, key, stored, { revision, key, object: stored, old, last: stored })
      return stored
    },
    remove(storageKey, key, changed) {
      const old = table(storageKey).get(key)
      if (old === undefined) throw new Error(`nothing is stored under ${storageKey} ${key}`)
      const last = withRevision(changed ?? old, ++revision)
      commit(storageKey, key, undefined, { revision, key, object: undefined, old, last })
      return last
    },
    durable: () => written,
    begin(storageKey) {
      if (!tables.has(storageKey)) tables.set(storageKey, openTable(revision))
    },
    onApplied: (listen) => void appliers.push(listen),
    onChange: (listen) => void listeners.push(listen),
    state: () => ({ revision, records: recordsOf(tables, revision) }),
    close: async () => {
      await written.catch(() => {})
      await storage.close()
    },
  }
}

/** Applies a logged record; false when no watch could see a change. */
function replay(table: Table, { revision, key, object }: StoredRecord, atMilliseconds: number): boolean {
  const old = table.get(key)
  table.set(key, object)
  const last = object ?? old
  if (last === undefined) return false
  table.window.add({ revision, key, object, old, last: object ?? withRevision(last, revision) }, atMilliseconds)
  return true
}

const withRevision = (object: KubeObject, revision: number): KubeObject =>
  withMetadata(object, { resourceVersion: String(revision) })

/** A snapshot: later changes replace objects in the tables but never modify them. */
function recordsOf(tables: ReadonlyMap<string, Table>, revision: number): StoredRecord[] {
  const records: StoredRecord[] = []
  for (const [storageKey, table] of tables) {
    for (const [key, object] of table.entries()) records.push({ revision, storageKey, key, object })
  }
  return records
}
