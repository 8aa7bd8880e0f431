/** Deletion by the server's own controllers, which ask admission as anybody who deletes: what a webhook refuses
 *  stays. */
import type { Definition } from './definition.ts'
import type { Engine } from './engine.ts'
import type { KubeObject, User } from './object.ts'
import { removeNow, type DeleteOptions } from './remove.ts'
import { Refusal } from './status.ts'
import { viewOf } from './view.ts'

const controllerUser = (name: string): User => ({
  name: `system:serviceaccount:kube-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
})
/** Under the names that a cluster's own have. */
export const GARBAGE_COLLECTOR = controllerUser('generic-garbage-collector')
export const NAMESPACE_CONTROLLER = controllerUser('namespace-controller')

/** Deletes the object as it was judged. Answers why not: it was refused, or has changed meanwhile; undefined when it is
 *  gone or on its way. */
export async function removeAsked(
  engine: Engine,
  definition: Definition,
  object: KubeObject,
  options: Pick<DeleteOptions, 'propagation'>,
  user: User,
): Promise<string | undefined> {
  const { namespace = '', name, uid, resourceVersion } = object.metadata
  try {
    const asked = engine.admit({
      operation: 'DELETE',
      definition,
      namespace,
      name,
      subresource: '',
      object: undefined,
      old: viewOf(definition, object),
      user,
      isDryRun: false,
      fieldManager: '',
    })
    if (asked !== undefined) await asked
    removeNow(engine, definition, namespace, name, { ...options, uid, ...(asked && { resourceVersion }) })
    return undefined
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return error.code === 404 ? undefined : error.message
  }
}
