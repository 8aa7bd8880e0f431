/** Deletes the contents of a namespace as far as admission allows. The namespace's conditions report what remains, as
 *  in a cluster. */
import { toSeconds } from '../../../kit/sys/clock.ts'
import { removeWithNamespace } from './asked.ts'
import type { Definition } from './definition.ts'
import type { Engine } from './engine.ts'
import { asList, asObject, asString, at, type JsonObject } from './json.ts'
import type { KubeObject } from './object.ts'

const NAMESPACES = '/namespaces'

/** Number of remaining objects: by resource (`servers.svccloud.dev`), or by finalizer. */
type Counts = Map<string, number>

/** Deletes the remaining objects of the namespace, and the namespace when none are left. Returns whether something was
 *  refused; then the caller retries. */
export async function emptyNamespace(engine: Engine, { metadata: { name } }: KubeObject): Promise<boolean> {
  const all: Promise<EmptyResult>[] = []
  for (const [storageKey, table] of engine.store.tables()) {
    const definition = engine.registry.ofStored(storageKey)
    if (definition && !definition.isNamespaced) continue
    const here = [...table.scan(`${name}/`)]
    if (definition) all.push(emptyResource(engine, definition, name))
    else for (const [key] of here) engine.store.remove(storageKey, key)
  }
  return finish(engine, name, await Promise.all(all))
}

/** The result of deleting the objects of one resource. */
interface EmptyResult {
  readonly storageKey: string
  readonly refusal?: string
}

/** Deletes one by one; the first refusal stops it, as in a collection delete. */
async function emptyResource(engine: Engine, definition: Definition, namespace: string): Promise<EmptyResult> {
  const { storageKey } = definition
  const left = () =>
    [...engine.store.table(storageKey).scan(`${namespace}/`)]
      .map(([, object]) => object)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  for (const object of left()) {
    const refusal = await removeWithNamespace(engine, definition, object)
    if (refusal !== undefined) return { storageKey, refusal }
  }
  const { group, version, resource } = definition
  return left().length === 0
    ? { storageKey }
    : {
        storageKey,
        refusal:
          `unexpected items still remain in namespace: ${namespace} for gvr: ` +
          `${group}/${version}, Resource=${resource}`,
      }
}

/** Finishes with the current namespace, which may have changed while admission was asked. */
function finish(engine: Engine, name: string, emptied: readonly EmptyResult[]): boolean {
  const namespace = engine.store.table(NAMESPACES).get(name)
  if (namespace?.metadata.deletionTimestamp === undefined) return false
  const refused = emptied.filter(({ refusal }) => refusal !== undefined)
  const [resources, finalizers] = contentsOf(engine, name, new Set(refused.map(({ storageKey }) => storageKey)))
  if (resources.size > 0 || refused.length > 0) {
    const refusals = refused.map(({ refusal = '' }) => refusal)
    say(engine, namespace, conditionsFor(resources, finalizers, refusals), refusals.length > 0)
    return refusals.length > 0
  }
  const freed: KubeObject = {
    ...namespace,
    spec: {
      ...asObject(at(namespace, 'spec')),
      finalizers: asList(at(namespace, 'spec', 'finalizers')).filter((finalizer) => finalizer !== 'kubernetes'),
    },
  }
  const isFree =
    (namespace.metadata.finalizers ?? []).length === 0 && asList(at(freed, 'spec', 'finalizers')).length === 0
  if (isFree) engine.store.remove(NAMESPACES, name, freed)
  else if (asList(at(namespace, 'spec', 'finalizers')).includes('kubernetes')) engine.store.put(NAMESPACES, name, freed)
  return false
}

/** Remaining objects, by resource and by finalizer. Refused objects are not counted, as in a cluster. */
function contentsOf(
  { store, registry }: Engine,
  name: string,
  isRefused: ReadonlySet<string>,
): readonly [Counts, Counts] {
  const [resources, finalizers]: [Counts, Counts] = [new Map(), new Map()]
  const count = (counts: Counts, what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  for (const [storageKey, table] of store.tables()) {
    const definition = registry.ofStored(storageKey)
    if ((definition && !definition.isNamespaced) || isRefused.has(storageKey)) continue
    const [group = '', resource = ''] = storageKey.split('/')
    for (const [, object] of table.scan(`${name}/`)) {
      count(resources, `${resource}.${group}`)
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

/** Types, reasons and messages are those of a cluster, in its order. Discovery and parsing of resources always succeed
 *  here. */
const conditionsFor = (resources: Counts, finalizers: Counts, refusals: readonly string[]): readonly JsonObject[] => [
  fine('NamespaceDeletionDiscoveryFailure', 'ResourcesDiscovered', 'All resources successfully discovered'),
  fine(
    'NamespaceDeletionGroupVersionParsingFailure',
    'ParsedGroupVersions',
    'All legacy kube types successfully parsed',
  ),
  refusals.length === 0
    ? fine(
        'NamespaceDeletionContentFailure',
        'ContentDeleted',
        'All content successfully deleted, may be waiting on finalization',
      )
    : failing(
        'NamespaceDeletionContentFailure',
        'ContentDeletionFailed',
        `Failed to delete all resource types, ${refusals.length} remaining: ${refusals.toSorted().join(', ')}`,
      ),
  resources.size === 0
    ? fine('NamespaceContentRemaining', 'ContentRemoved', 'All content successfully removed')
    : failing(
        'NamespaceContentRemaining',
        'SomeResourcesRemain',
        `Some resources are remaining: ${listed(resources, 'has')}`,
      ),
  finalizers.size === 0
    ? fine('NamespaceFinalizersRemaining', 'ContentHasNoFinalizers', 'All content-preserving finalizers finished')
    : failing(
        'NamespaceFinalizersRemaining',
        'SomeFinalizersRemain',
        `Some content in the namespace has finalizers remaining: ${listed(finalizers, 'in')}`,
      ),
]
const fine = (type: string, reason: string, message: string): JsonObject => ({ type, status: 'False', reason, message })
const failing = (type: string, reason: string, message: string): JsonObject => ({
  ...fine(type, reason, message),
  status: 'True',
})

/** Writes nothing when only numbers have changed, unless something was refused. */
function say(
  { store, clock }: Engine,
  namespace: KubeObject,
  conditions: readonly JsonObject[],
  isExact: boolean,
): void {
  const known = asList(at(namespace, 'status', 'conditions')).map(asObject)
  const news = conditions.map((next): JsonObject => {
    const before = known.find(({ type }) => type === next['type'])
    const since = before?.['status'] === next['status'] ? asString(before?.['lastTransitionTime']) : ''
    return { ...next, lastTransitionTime: since || toSeconds(clock.now()) }
  })
  const isKnown = (one: JsonObject) =>
    known.some((before) =>
      ['type', 'status', 'reason', ...(isExact ? ['message'] : [])].every((field) => before[field] === one[field]),
    )
  if (news.every(isKnown)) return
  const wanted = [...known.filter(({ type }) => !news.some((one) => one['type'] === type)), ...news]
  const status = { ...asObject(at(namespace, 'status')), conditions: wanted }
  store.put(NAMESPACES, namespace.metadata.name, { ...namespace, status })
}
