/** Namespaces that the platform creates, with the objects that belong to each. */
import { Namespace, ResourceQuota } from './object.ts'
import { isAlreadyExists, type Store } from './store.ts'

export interface WantedNamespace {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** How many plain objects of each kind it may contain. */
  readonly bounds: Readonly<Record<string, string>>
}

const BOUNDS_NAME = 'svccloud'

/** Creates the namespace and everything that belongs to it, if missing. Throws what the store throws. */
export async function makeNamespace(store: Store, { name, labels, bounds }: WantedNamespace): Promise<void> {
  // Existing objects are not written again: a process that dies after each write still makes progress.
  if ((await store.get(Namespace, { name })) === undefined)
    await unlessThere(store.create(Namespace, { metadata: { name, labels }, spec: {} }))
  const quota = { namespace: name, name: BOUNDS_NAME }
  if ((await store.get(ResourceQuota, quota)) === undefined)
    await unlessThere(store.create(ResourceQuota, { metadata: quota, spec: { hard: bounds } }))
}

const unlessThere = (making: Promise<unknown>): Promise<void> =>
  making.then(
    () => {},
    (error: unknown) => {
      if (!isAlreadyExists(error)) throw error
    },
  )
