/** Which items were touched at which version of Kubernetes: the memory from which a stream is resumed. It is bounded;
 *  what it has forgotten makes older cursors invalid. */
import { isNewer } from '../../kit/kube/cache.ts'

/** An item of an account. */
export interface TouchedItem {
  readonly type: string
  readonly id: string
  /** Its object was changed or removed, and not only something that it shows. */
  readonly isOwn: boolean
}

interface Entry extends TouchedItem {
  readonly version: string
}

interface NamespaceLog {
  /** Everything after this version is here. */
  floor: string
  /** Of the newest change. */
  newest: string
  readonly entries: Map<string, Entry>
}

export interface TouchLog {
  note(namespace: string, touched: TouchedItem, version: string): void
  /** Something changed at this version that may show in every item: only later cursors are valid. */
  raise(version: string): void
  /** The version of the newest change there; empty when none is known. */
  newest(namespace: string): string
  /** What was touched after the version; undefined when that is not known any longer. */
  since(namespace: string, version: string): readonly TouchedItem[] | undefined
}

export interface TouchLogOptions {
  /** Items of one namespace; the one that was touched first is forgotten first. */
  readonly namespaceMaximum: number
  /** Items of all; the namespace that was touched first is forgotten first. */
  readonly maximum: number
}

const newer = (one: string, other: string): string => (isNewer(other, one) ? other : one)

export function createTouchLog({ namespaceMaximum, maximum }: TouchLogOptions): TouchLog {
  const namespaces = new Map<string, NamespaceLog>()
  let floor = ''
  let count = 0

  const forgetOldest = (log: NamespaceLog) => {
    for (const [key, { version }] of log.entries) {
      log.entries.delete(key)
      log.floor = newer(log.floor, version)
      count--
      return
    }
  }
  const forgetNamespace = () => {
    for (const [namespace, log] of namespaces) {
      namespaces.delete(namespace)
      count -= log.entries.size
      floor = [...log.entries.values()].map(({ version }) => version).reduce(newer, newer(floor, log.floor))
      return
    }
  }

  return {
    note(namespace, { type, id, isOwn }, version) {
      const log = namespaces.get(namespace) ?? { floor: '', newest: '', entries: new Map<string, Entry>() }
      namespaces.delete(namespace)
      namespaces.set(namespace, log) // newest last
      log.newest = newer(log.newest, version)
      const key = `${type} ${id}`
      const known = log.entries.get(key)
      if (known === undefined) count++
      log.entries.delete(key)
      log.entries.set(key, {
        type,
        id,
        isOwn: isOwn || known?.isOwn === true,
        version: newer(known?.version ?? '', version),
      })
      if (log.entries.size > namespaceMaximum) forgetOldest(log)
      if (count > maximum) forgetNamespace()
    },
    newest: (namespace) => namespaces.get(namespace)?.newest ?? '',
    raise: (version) => void (floor = newer(floor, version)),
    since(namespace, version) {
      const log = namespaces.get(namespace)
      if (isNewer(newer(floor, log?.floor ?? ''), version)) return undefined
      return [...(log?.entries.values() ?? [])].filter((entry) => isNewer(entry.version, version))
    },
  }
}
