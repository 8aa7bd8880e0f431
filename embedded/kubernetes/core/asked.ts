/** Writes of the server's own controllers. They pass through admission like any other write: an object stays as it is
 *  when a webhook refuses the change. */
import type { Definition } from './definition.ts'
import { entryKey, type Engine } from './engine.ts'
import { withMetadata, type KubeObject, type Metadata, type User } from './object.ts'
import { removeNow, shownOptions, type DeleteOptions } from './remove.ts'
import { Refusal, unavailable } from './status.ts'
import { versionView } from './view.ts'

const controllerUser = (name: string): User => ({
  name: `system:serviceaccount:kube-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
})
/** Named as the controllers of a cluster. */
export const GARBAGE_COLLECTOR = controllerUser('generic-garbage-collector')
const NAMESPACE_CONTROLLER = controllerUser('namespace-controller')

/** Limit of attempts when other writes come first. */
const MOST_ATTEMPTS = 5

/** The message of a refusal; undefined when the change is done, or the object is deleted. */
type RefusalText = Promise<string | undefined>

async function refusalOf(write: () => Promise<void>): RefusalText {
  try {
    await write()
    return undefined
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return error.code === 404 ? undefined : error.message
  }
}

/** Deletes the object as it was evaluated, like the garbage collector. Also refused when the object has changed
 *  meanwhile. */
export const removeAsked = (
  engine: Engine,
  definition: Definition,
  object: KubeObject,
  { propagation }: Pick<DeleteOptions, 'propagation'>,
): RefusalText =>
  refusalOf(async () => {
    const { namespace = '', name, uid, resourceVersion } = object.metadata
    const options = { propagation, uid, resourceVersion }
    const decision = engine.admit({ ...deletionOf(definition, object), deleteOptions: shownOptions(options) })
    if (decision !== undefined) await decision
    removeNow(engine, definition, namespace, name, options)
  })

/** Deletes the object as part of deleting its namespace, like the namespace controller. */
export const removeWithNamespace = (
  engine: Engine,
  definition: Definition,
  { metadata: { namespace = '', name, uid } }: KubeObject,
): RefusalText =>
  refusalOf(async () => {
    const [table, options] = [engine.store.table(definition.storageKey), { propagation: 'Background', uid } as const]
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const stored = table.get(entryKey(namespace, name))
      if (stored?.metadata.uid !== uid) return
      const decision = engine.admit({
        ...deletionOf(definition, stored),
        name: '',
        user: NAMESPACE_CONTROLLER,
        deleteOptions: shownOptions({ propagation: 'Background' }),
      })
      if (decision !== undefined) await decision
      if (table.get(entryKey(namespace, name)) !== stored) continue
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
  old: versionView(definition, object),
  user: GARBAGE_COLLECTOR,
  isDryRun: false,
  fieldManager: '',
})

/** Changes the object's metadata like the garbage collector. `changesOf` returns the changes for the current object, or
 *  undefined when there are none. An object that is being deleted is removed with its last finalizer. */
export const changeAsked = (
  engine: Engine,
  definition: Definition,
  { metadata: { namespace = '', name, uid } }: KubeObject,
  changesOf: (now: KubeObject) => { readonly [Key in keyof Metadata]?: Metadata[Key] | undefined } | undefined,
): RefusalText =>
  refusalOf(async () => {
    const { storageKey, hooks } = definition
    const [table, key] = [engine.store.table(storageKey), entryKey(namespace, name)]
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const stored = table.get(key)
      const changes = stored?.metadata.uid === uid ? changesOf(stored) : undefined
      if (!stored || !changes) return
      const next = withMetadata(stored, changes)
      const decision = engine.admit({
        operation: 'UPDATE',
        definition,
        namespace,
        name,
        subresource: '',
        object: versionView(definition, next),
        old: versionView(definition, stored),
        user: GARBAGE_COLLECTOR,
        isDryRun: false,
        fieldManager: '',
      })
      if (decision !== undefined) {
        await decision
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
