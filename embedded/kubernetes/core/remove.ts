/** Deletion: preconditions, finalizers, and propagation to owned objects. */
import { defined } from '../../../domain/defined.ts'
import { toSeconds } from '../../../kit/sys/clock.ts'
import { parseObject } from './body.ts'
import type { Definition } from './definition.ts'
import { json, entryKey, type Answer, type Engine } from './engine.ts'
import { filterOf } from './filter.ts'
import { asObject, asString, type JsonObject } from './json.ts'
import { withMetadata, type KubeObject, type User } from './object.ts'
import { selectAll } from './read.ts'
import { rendererOf } from './render.ts'
import { isDryRun, type Query, type Request } from './request.ts'
import { badRequest, conflict, fieldInvalid, fieldNotSupported, forbidden, invalid, notFound } from './status.ts'
import type { Write } from './change.ts'
import { versionView } from './view.ts'

export type Propagation = 'Background' | 'Foreground' | 'Orphan'

export interface DeleteOptions {
  readonly propagation?: Propagation | undefined
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
  readonly isDryRun?: boolean
}

/** The options as they are sent to webhooks. */
export const shownOptions = ({ propagation, uid, resourceVersion }: DeleteOptions): JsonObject => ({
  ...defined({ propagationPolicy: propagation }),
  ...(uid === undefined && resourceVersion === undefined
    ? {}
    : {
        preconditions: defined({ uid, resourceVersion }),
      }),
})

export const FOREGROUND = 'foregroundDeletion'
export const ORPHAN = 'orphan'

const OPTIONS = { group: 'meta.k8s.io', kind: 'DeleteOptions' }

function deleteOptions(request: Request, query: Query): DeleteOptions {
  const body: JsonObject =
    request.body === undefined || request.body === ''
      ? {}
      : parseObject(request.body, request.headers['content-type']).object
  const requested = asString(body.propagationPolicy) || query.get('propagationPolicy') || ''
  const orphans = body.orphanDependents ?? query.get('orphanDependents') ?? undefined
  const legacy = orphans === undefined || orphans === null ? '' : String(orphans) === 'true' ? 'Orphan' : 'Background'
  const propagation = requested || legacy
  if (requested !== '' && legacy !== '') {
    throw invalid(OPTIONS, '', [
      fieldInvalid('propagationPolicy', requested, 'orphanDependents and deletionPropagation cannot be both set'),
    ])
  }
  if (propagation !== '' && propagation !== 'Background' && propagation !== 'Foreground' && propagation !== 'Orphan') {
    throw invalid(OPTIONS, '', [
      fieldNotSupported('propagationPolicy', propagation, ['Foreground', 'Background', 'Orphan', 'nil']),
    ])
  }
  const preconditions = asObject(body.preconditions)
  const dryRun = Array.isArray(body.dryRun) ? body.dryRun.map(String) : []
  if (dryRun.some((value) => value !== 'All')) throw badRequest('dryRun: supported values: "All"')
  return {
    propagation: propagation === '' ? undefined : propagation,
    uid: asString(preconditions.uid) || undefined,
    resourceVersion: asString(preconditions.resourceVersion) || undefined,
    isDryRun: dryRun.length > 0 || isDryRun(query, 'DeleteOptions'),
  }
}

export async function remove(engine: Engine, { target, request, query, user }: Write): Promise<Answer> {
  const { definition, namespace, name } = target
  const options = deleteOptions(request, query)
  const outcome = await removeOne(engine, { definition, namespace, name, options, user })
  await engine.store.durable()
  const { object } = outcome
  if (outcome.isGone && !ANSWERS_OBJECT.has(definition.storageKey)) {
    const { group, resource } = definition
    const details = { name, ...(group === '' ? {} : { group }), kind: resource, uid: object.metadata.uid }
    return json(200, JSON.stringify({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }))
  }
  return json(200, rendererOf(definition, {}, '', engine.clock).object(versionView(definition, object)))
}

/** Kinds whose deletion returns the object even when it is removed. */
const ANSWERS_OBJECT = new Set([
  '/pods',
  '/services',
  '/serviceaccounts',
  '/persistentvolumeclaims',
  '/persistentvolumes',
])

export async function removeCollection(engine: Engine, { target, request, query, user }: Write): Promise<Answer> {
  const { definition, namespace } = target
  const options = deleteOptions(request, query)
  const selected = selectAll(engine, definition, filterOf(definition, namespace, '', query))
  const answered: KubeObject[] = []
  for (const stored of selected) {
    const { name, namespace: home = '', uid } = stored.metadata
    if (engine.store.table(definition.storageKey).get(entryKey(home, name))?.metadata.uid !== uid) continue
    const removal = { definition, namespace: home, name, options, user, uidInCollection: uid }
    answered.push(versionView(definition, (await removeOne(engine, removal)).object))
  }
  await engine.store.durable()
  const metadata = { resourceVersion: String(engine.store.revision()) }
  return json(200, rendererOf(definition, {}, '', engine.clock).list(answered, metadata))
}

const LASTING_NAMESPACES = new Set(['default', 'kube-system', 'kube-public'])

interface Removal {
  readonly object: KubeObject
  readonly isGone: boolean
}

interface Removing {
  readonly definition: Definition
  readonly namespace: string
  readonly name: string
  readonly options: DeleteOptions
  readonly user: User
  /** The uid of the object in a collection delete: then webhooks do not see its name. */
  readonly uidInCollection?: string
}

async function removeOne(engine: Engine, removing: Removing): Promise<Removal> {
  const { definition, namespace, name, options, user, uidInCollection } = removing
  const stored = engine.store.table(definition.storageKey).get(entryKey(namespace, name))
  if (!stored) throw notFound(definition, name)
  if (definition.storageKey === '/namespaces' && LASTING_NAMESPACES.has(name))
    throw forbidden(definition, name, 'this namespace may not be deleted')
  const admission = engine.admit({
    operation: 'DELETE',
    definition,
    namespace,
    name: uidInCollection === undefined ? name : '',
    subresource: '',
    object: undefined,
    old: versionView(definition, stored),
    user,
    isDryRun: options.isDryRun === true,
    fieldManager: '',
    deleteOptions: shownOptions(options),
  })
  if (admission) await admission
  return removeNow(engine, definition, namespace, name, { ...options, uid: uidInCollection ?? options.uid })
}

/** Deletes without admission: for the server's own collectors, and for deletions that were already admitted. */
export function removeNow(
  engine: Engine,
  definition: Definition,
  namespace: string,
  name: string,
  options: DeleteOptions,
): Removal {
  const key = entryKey(namespace, name)
  const stored = engine.store.table(definition.storageKey).get(key)
  if (!stored) throw notFound(definition, name)
  const { uid, resourceVersion } = stored.metadata
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      asKind(definition),
      name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`,
    )
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    throw conflict(
      asKind(definition),
      name,
      `Precondition failed: ResourceVersion in precondition: ${options.resourceVersion}, ResourceVersion in ` +
        `object meta: ${resourceVersion}`,
    )
  }
  const own = stored.metadata.deletionTimestamp === undefined ? (definition.hooks.holdsOnDelete ?? []) : []
  const finalizers = finalizersAfter([...new Set([...(stored.metadata.finalizers ?? []), ...own])], options.propagation)
  if (finalizers.length === 0 && definition.hooks.isHeld?.(stored) !== true) {
    return { object: options.isDryRun ? stored : engine.store.remove(definition.storageKey, key), isGone: true }
  }
  const marked = deleting(engine, definition, stored, finalizers)
  if (options.isDryRun || marked === stored) return { object: marked, isGone: false }
  return { object: engine.store.put(definition.storageKey, key, marked), isGone: false }
}

/** A failed precondition names the kind; other refusals name the resource. */
const asKind = ({ group, kind }: Definition) => ({ group, resource: kind })

function finalizersAfter(finalizers: readonly string[], propagation: Propagation | undefined): readonly string[] {
  if (propagation === undefined) return finalizers
  const others = finalizers.filter((finalizer) => finalizer !== FOREGROUND && finalizer !== ORPHAN)
  return propagation === 'Foreground'
    ? [...others, FOREGROUND]
    : propagation === 'Orphan'
      ? [...others, ORPHAN]
      : others
}

/** The object marked as being deleted; the same object if it was marked before. */
function deleting(
  engine: Engine,
  definition: Definition,
  stored: KubeObject,
  finalizers: readonly string[],
): KubeObject {
  const { metadata } = stored
  const isMarked = metadata.deletionTimestamp !== undefined
  if (isMarked && finalizers.join() === (metadata.finalizers ?? []).join()) return stored
  const marked = withMetadata(stored, {
    finalizers: finalizers.length === 0 ? undefined : finalizers,
    ...(isMarked
      ? {}
      : {
          deletionTimestamp: toSeconds(engine.clock.now()),
          deletionGracePeriodSeconds: 0,
          ...(definition.hasGeneration ? { generation: (metadata.generation ?? 0) + 1 } : {}),
        }),
  })
  return definition.hooks.prepare?.(marked, stored, { now: engine.clock.now(), subresource: 'delete' }) ?? marked
}
