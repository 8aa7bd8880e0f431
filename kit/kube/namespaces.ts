/** Namespaces of the platform's making, with what belongs to each. */
import { Namespace, ResourceQuota } from './object.ts'
import { isAlreadyExists, type Store } from './store.ts'

export interface WantedNamespace {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** How many plain objects of each kind it takes. */
  readonly bounds: Readonly<Record<string, string>>
}

const BOUNDS_NAME = 'svccloud'

/** Makes the namespace and all that belongs to it, as far as that is not there. Throws what the store throws. */
export async function makeNamespace(store: Store, { name, labels, bounds }: WantedNamespace): Promise<void> {
  // What is there is not written again: whoever dies after each write gets on all the same.
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
