/** Writes of the server's own controllers, which ask admission as anybody who writes: what a webhook refuses stays as
 *  it is. */
import type { Definition } from './definition.ts'
import { keyOf, type Engine } from './engine.ts'
import { withMetadata, type KubeObject, type Metadata, type User } from './object.ts'
import { removeNow, shownOptions, type DeleteOptions } from './remove.ts'
import { Refusal, unavailable } from './status.ts'
import { viewOf } from './view.ts'

const controllerUser = (name: string): User => ({
  name: `system:serviceaccount:kube-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
})
/** Under the names that a cluster's own have. */
export const GARBAGE_COLLECTOR = controllerUser('generic-garbage-collector')
const NAMESPACE_CONTROLLER = controllerUser('namespace-controller')

/** Writes of one object at a time that others may overtake. */
const MOST_ATTEMPTS = 5

/** Why not, in the words of the refusal; undefined when it was done, or when the object is gone. */
type Answered = Promise<string | undefined>

async function refusalOf(write: () => Promise<void>): Answered {
  try {
    await write()
    return undefined
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return error.code === 404 ? undefined : error.message
  }
}

/** Deletes the object as it was judged, as the garbage collector does. It is refused, too, when the object has changed
 *  meanwhile. */
export const removeAsked = (
  engine: Engine,
  definition: Definition,
  object: KubeObject,
  { propagation }: Pick<DeleteOptions, 'propagation'>,
): Answered =>
  refusalOf(async () => {
    const { namespace = '', name, uid, resourceVersion } = object.metadata
    const options = { propagation, uid, resourceVersion }
    const asked = engine.admit({ ...deletionOf(definition, object), deleteOptions: shownOptions(options) })
    if (asked !== undefined) await asked
    removeNow(engine, definition, namespace, name, options)
  })

/** Deletes the object as one of all in its namespace, as the controller of namespaces does. */
export const removeWithNamespace = (
  engine: Engine,
  definition: Definition,
  { metadata: { namespace = '', name, uid } }: KubeObject,
): Answered =>
  refusalOf(async () => {
    const [table, options] = [engine.store.table(definition.storageKey), { propagation: 'Background', uid } as const]
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const stored = table.get(keyOf(namespace, name))
      if (stored?.metadata.uid !== uid) return
      const asked = engine.admit({
        ...deletionOf(definition, stored),
        name: '',
        user: NAMESPACE_CONTROLLER,
        deleteOptions: shownOptions({ propagation: 'Background' }),
      })
      if (asked !== undefined) await asked
      if (table.get(keyOf(namespace, name)) !== stored) continue
      removeNow(engine, definition, namespace, name, options)
      return
    }
    throw unavailable('the object changes too fast')
  })

const deletionOf = (definition: Definition, object: KubeObject) => ({
  operation: 'DELETE' as const,
  definition,
  namespace: object.metadata.namespace ?? '',
  name: object.metadata.name,
  subresource: '',
  object: undefined,
  old: viewOf(definition, object),
  user: GARBAGE_COLLECTOR,
  isDryRun: false,
  fieldManager: '',
})

/** Changes the object's metadata as the garbage collector does: `changesOf` answers them for the object as it is now,
 *  undefined when there is nothing to change. What loses its last finalizer while it is being deleted goes. */
export const changeAsked = (
  engine: Engine,
  definition: Definition,
  { metadata: { namespace = '', name, uid } }: KubeObject,
  changesOf: (now: KubeObject) => { readonly [Key in keyof Metadata]?: Metadata[Key] | undefined } | undefined,
): Answered =>
  refusalOf(async () => {
    const { storageKey, hooks } = definition
    const [table, key] = [engine.store.table(storageKey), keyOf(namespace, name)]
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const stored = table.get(key)
      const changes = stored?.metadata.uid === uid ? changesOf(stored) : undefined
      if (!stored || !changes) return
      const next = withMetadata(stored, changes)
      const asked = engine.admit({
        operation: 'UPDATE',
        definition,
        namespace,
        name,
        subresource: '',
        object: viewOf(definition, next),
        old: viewOf(definition, stored),
        user: GARBAGE_COLLECTOR,
        isDryRun: false,
        fieldManager: '',
      })
      if (asked !== undefined) {
        await asked
        if (table.get(key) !== stored) continue
      }
      const { deletionTimestamp, finalizers = [] } = next.metadata
      const isGone = deletionTimestamp !== undefined && finalizers.length === 0 && hooks.isHeld?.(next) !== true
      if (isGone) engine.store.remove(storageKey, key, next)
      else engine.store.put(storageKey, key, next)
      return
    }
    throw unavailable('the object changes too fast')
  })
