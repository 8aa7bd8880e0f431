/** Objects that others name. */
import type { Cache } from '../kube/cache.ts'
import { type KubeObject, keyOf, type ResourceType } from '../kube/object.ts'
import { type Watch, watch } from './reconciler.ts'

/** Watches objects that those of the cache name in their namespace: a change of one reconciles all that name it. */
export function watchNamed<Spec, Status>(
  cache: Cache<Spec, Status>,
  type: ResourceType,
  nameIn: (object: KubeObject<Spec, Status>) => string | undefined,
): Watch {
  const index = `names ${type.kind}`
  cache.addIndex(index, (object) => {
    const name = nameIn(object)
    return name === undefined ? [] : [`${object.metadata.namespace}/${name}`]
  })
  return watch(type, ({ metadata: { namespace, name } }) => cache.by(index, `${namespace}/${name}`).map(keyOf))
}
