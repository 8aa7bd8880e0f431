/** The end of a namespace: what is in it is deleted as admission allows; what stays is told in its conditions, as a
 *  cluster's namespace controller does. */
import { toSeconds } from '../../../kit/sys/clock.ts'
import { NAMESPACE_CONTROLLER, removeAsked } from './asked-removal.ts'
import type { Definition } from './definition.ts'
import type { Engine } from './engine.ts'
import { asList, asObject, asString, at, type JsonObject } from './json.ts'
import type { KubeObject } from './object.ts'

/** Asked about at once. */
const ASKED_TOGETHER = 16
const NAMESPACES = '/namespaces'

/** What is there of a resource, for people: `servers.svccloud.dev`. */
type Counts = Map<string, number>

/** Deletes what is left in the namespace; when nothing is, the namespace goes. Answers whether something was refused:
 *  the caller comes again. */
export async function emptyNamespace(engine: Engine, { metadata: { name } }: KubeObject): Promise<boolean> {
  const left: (readonly [Definition, KubeObject])[] = []
  for (const [storageKey, table] of engine.store.tables()) {
    const definition = engine.registry.ofStored(storageKey)
    if (definition && !definition.isNamespaced) continue
    for (const [key, object] of [...table.scan(`${name}/`)])
      if (!definition) engine.store.remove(storageKey, key)
      else if (object.metadata.deletionTimestamp === undefined) left.push([definition, object])
  }
  const refusals: string[] = []
  for (let index = 0; index < left.length; index += ASKED_TOGETHER) {
    const answers = left
      .slice(index, index + ASKED_TOGETHER)
      .map(([definition, object]) =>
        removeAsked(engine, definition, object, { propagation: 'Background' }, NAMESPACE_CONTROLLER),
      )
    for (const refusal of await Promise.all(answers)) if (refusal !== undefined) refusals.push(refusal)
  }
  return finish(engine, name, refusals)
}

/** The namespace as it is now: it may have changed while admission was asked. */
function finish(engine: Engine, name: string, refusals: readonly string[]): boolean {
  const namespace = engine.store.table(NAMESPACES).get(name)
  if (namespace?.metadata.deletionTimestamp === undefined) return false
  const [resources, finalizers] = contentsOf(engine, name)
  if (resources.size > 0) {
    say(engine, namespace, conditionsFor(resources, finalizers, refusals), refusals.length > 0)
    return refusals.length > 0
  }
  const emptied: KubeObject = {
    ...namespace,
    spec: {
      ...asObject(at(namespace, 'spec')),
      finalizers: asList(at(namespace, 'spec', 'finalizers')).filter((finalizer) => finalizer !== 'kubernetes'),
    },
  }
  const isFree =
    (namespace.metadata.finalizers ?? []).length === 0 && asList(at(emptied, 'spec', 'finalizers')).length === 0
  if (isFree) engine.store.remove(NAMESPACES, name, emptied)
  else if (asList(at(namespace, 'spec', 'finalizers')).includes('kubernetes'))
    engine.store.put(NAMESPACES, name, emptied)
  return false
}

/** What is left, by resource and by finalizer. */
function contentsOf({ store, registry }: Engine, name: string): readonly [Counts, Counts] {
  const [resources, finalizers]: [Counts, Counts] = [new Map(), new Map()]
  const count = (counts: Counts, what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  for (const [storageKey, table] of store.tables()) {
    const definition = registry.ofStored(storageKey)
    if (definition && !definition.isNamespaced) continue
    const [group = '', resource = ''] = storageKey.split('/')
    for (const [, object] of table.scan(`${name}/`)) {
      count(resources, group === '' ? resource : `${resource}.${group}`)
      for (const finalizer of object.metadata.finalizers ?? []) count(finalizers, finalizer)
    }
  }
  return [resources, finalizers]
}

const listed = (counts: Counts, have: string): string =>
  [...counts]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([what, number]) => `${what} ${have} ${number} resource instances`)
    .join(', ')

const REFUSALS_NAMED = 3

/** Types, reasons and messages are those of a cluster. */
function conditionsFor(resources: Counts, finalizers: Counts, refusals: readonly string[]): readonly JsonObject[] {
  const named = [...new Set(refusals)].slice(0, REFUSALS_NAMED).join('; ')
  const finalizing = listed(finalizers, 'in')
  return [
    refusals.length === 0
      ? condition('NamespaceDeletionContentFailure', 'False', 'ContentDeleted', DELETED)
      : condition(
          'NamespaceDeletionContentFailure',
          'True',
          'ContentDeletionFailed',
          `Failed to delete all resource types, ${resources.size} remaining: ${named}`,
        ),
    condition(
      'NamespaceContentRemaining',
      'True',
      'SomeResourcesRemain',
      `Some resources are remaining: ${listed(resources, 'has')}`,
    ),
    finalizing === ''
      ? condition('NamespaceFinalizersRemaining', 'False', 'ContentHasNoFinalizers', NO_FINALIZERS)
      : condition(
          'NamespaceFinalizersRemaining',
          'True',
          'SomeFinalizersRemain',
          `Some content in the namespace has finalizers remaining: ${finalizing}`,
        ),
  ]
}
const DELETED = 'All content successfully deleted, may be waiting on finalization'
const NO_FINALIZERS = 'All content-preserving finalizers finished'
const condition = (type: string, status: 'True' | 'False', reason: string, message: string): JsonObject => ({
  type,
  status,
  reason,
  message,
})

/** Writes nothing when no more than numbers have changed, unless something was refused. */
function say(
  { store, clock }: Engine,
  namespace: KubeObject,
  conditions: readonly JsonObject[],
  isExact: boolean,
): void {
  const known = asList(at(namespace, 'status', 'conditions')).map(asObject)
  const said = conditions.map((next): JsonObject => {
    const before = known.find(({ type }) => type === next['type'])
    const since = before?.['status'] === next['status'] ? asString(before?.['lastTransitionTime']) : ''
    return { ...next, lastTransitionTime: since || toSeconds(clock.now()) }
  })
  const isKnown = (one: JsonObject) =>
    known.some((before) =>
      ['type', 'status', 'reason', ...(isExact ? ['message'] : [])].every((field) => before[field] === one[field]),
    )
  if (said.every(isKnown)) return
  const wanted = [...known.filter(({ type }) => !said.some((one) => one['type'] === type)), ...said]
  const status = { ...asObject(at(namespace, 'status')), conditions: wanted }
  store.put(NAMESPACES, namespace.metadata.name, { ...namespace, status })
}
