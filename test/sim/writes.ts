/** Nothing is written again and again once nothing disturbs the world: a controller that undoes or repeats its own work
 *  would go on for ever, and hide behind it what else is wrong. */
import type { Storage, StoredRecord } from '../../embedded/kubernetes/storage/storage.ts'
import type { Operable } from '../../resources/operation/index.ts'

const WINDOW_MILLISECONDS = 60_000
/** Of one object in a minute of the calm. In worlds of every kind but backups, no object had more than 40. */
export const WRITES_MAXIMUM = 100
const REPEATED_LISTED_MAXIMUM = 4

export interface WritesOptions {
  /** Virtual time. */
  readonly nowMilliseconds: () => number
  readonly isCalm: () => boolean
  /** Called with what is wrong. */
  readonly onExcess: (violation: string) => void
}

/** Counts the writes that Kubernetes accepts. */
export function watchWrites(inner: Storage, { nowMilliseconds, isCalm, onExcess }: WritesOptions): Storage {
  const writesOf = new Map<string, { readonly at: number; readonly what: string }[]>()
  return {
    ...inner,
    append(record) {
      if (isCalm()) {
        const name = `${record.storageKey} ${record.key}`
        const now = nowMilliseconds()
        const writes = (writesOf.get(name) ?? []).filter(({ at }) => now - at < WINDOW_MILLISECONDS)
        writes.push({ at: now, what: contentOf(record) })
        writesOf.set(name, writes)
        if (writes.length > WRITES_MAXIMUM) {
          const repeated = [...new Set(writes.map(({ what }) => what))].slice(-REPEATED_LISTED_MAXIMUM)
          onExcess(`${name} is written ${writes.length} times within a minute of the calm: ${repeated.join('; ')}`)
        }
      }
      return inner.append(record)
    },
  }
}

/** What the write is about, for people: the operation of the object, and how far it is. */
function contentOf({ object }: StoredRecord): string {
  if (object === undefined) return 'deleted'
  const { spec, status } = object as Partial<Operable> // of kinds that have operations
  const { kind = 'no operation' } = spec?.operation ?? {}
  const progress = status?.operation
  if (spec?.operation === undefined || progress?.id !== spec.operation.id) return `${kind} is new`
  return `${kind} ${progress.status}${progress.error === '' ? '' : `: ${progress.error}`}`
}
