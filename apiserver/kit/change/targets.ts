/** Targets of operations: the objects of the kinds that carry one in their spec. */
import type { Cache } from '../../../kit/kube/cache.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { Key, KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import type { Condition } from '../../../resources/kit/shapes.ts'
import type { Operable, OperationSpec } from '../../../resources/operation/index.ts'

export interface Target {
  readonly type: OperationSpec['target']['type']
  readonly resource: ResourceType<Operable['spec'], Operable['status']>
  readonly object: KubeObject<Operable['spec'], Operable['status']>
}

export interface Targets {
  /** Of the kinds whose objects belong to accounts. */
  readonly caches: readonly Cache<Operable['spec'], Operable['status']>[]
  /** The object that carries the operation as its newest, as the caches know it. */
  find(operationId: string): Target | undefined
  /** Objects whose controller says that they do not get on without help, each with that condition. */
  stalled(): readonly (Target & { readonly condition: Condition })[]
  /** The version up to which the caches know the object, existing or deleted; empty when it is no target. */
  knownVersion(target: { readonly type: Target['type']; readonly key: Key }): string
}

const INDEX = 'operation'
const STALLED_INDEX = 'stalled'

/** Undefined unless it is stalled. */
const stalledOf = ({ status }: Target['object']): Condition | undefined => {
  const { conditions } = (status ?? {}) as { readonly conditions?: readonly Condition[] } // every kind has conditions
  return conditions?.find(({ type, status: is }) => type === 'Stalled' && is === 'True')
}

/** Indexes the kinds that can be targets by the operation that their objects carry. */
export function openTargets(
  caches: Caches,
  kinds: readonly { readonly resource: ResourceType; readonly target?: Target['type'] }[],
): Targets {
  const carriers = kinds.flatMap(({ resource, target: type }) => {
    if (type === undefined) return []
    const carrier = resource as Target['resource'] // a kind that is registered as a target has the stanza
    const cache = caches.of(carrier)
    cache.addIndex(INDEX, ({ spec: { operation } }) => (operation === undefined ? [] : [operation.id]))
    cache.addIndex(STALLED_INDEX, (object) => (stalledOf(object) === undefined ? [] : ['']))
    return [{ type, resource: carrier, cache }]
  })
  return {
    caches: carriers.map(({ cache }) => cache).filter(({ type }) => type.scope === 'Namespaced'),
    find(operationId) {
      for (const { type, resource, cache } of carriers) {
        const [object] = cache.by(INDEX, operationId)
        if (object !== undefined) return { type, resource, object }
      }
      return undefined
    },
    stalled: () =>
      carriers.flatMap(({ type, resource, cache }) =>
        cache.by(STALLED_INDEX, '').flatMap((object) => {
          const condition = stalledOf(object)
          return condition === undefined ? [] : [{ type, resource, object, condition }]
        }),
      ),
    knownVersion: ({ type, key }) => carriers.find((carrier) => carrier.type === type)?.cache.knownVersion(key) ?? '',
  }
}
