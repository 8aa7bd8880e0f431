/** Does what a cluster's controllers do: deletes owned objects with their owners, the contents of namespaces and
 *  definitions that are deleted, and expired events. It asks admission as they do; what is refused stays, says so, and
 *  is tried again ever more rarely. Changes wake it; all it does follows from the state, so it can stop at any moment
 *  and continue at the next start. */
import { hash } from 'node:crypto'
import { GARBAGE_COLLECTOR, removeAsked } from './asked-removal.ts'
import { CLEANUP, CRD_KEY } from './crd.ts'
import type { Definition } from './definition.ts'
import type { Engine } from './engine.ts'
import { toSeconds } from '../../../kit/sys/clock.ts'
import { asString, at, type JsonObject } from './json.ts'
import { openTurns } from './collector-turns.ts'
import { shape } from './shape.ts'
import { emptyNamespace } from './empty-namespace.ts'
import { withMetadata, type KubeObject, type OwnerReference } from './object.ts'
import { openOwnership, type ObjectRef, type Ownership } from './ownership.ts'
import { FOREGROUND, ORPHAN, removeNow, type Propagation } from './remove.ts'

const EVENT_SWEEP_MILLISECONDS = 60_000

export interface Collector {
  stop(): void
}

/** Removes, in the background, objects whose owners are all gone. */
export function startCollector(engine: Engine): Collector {
  const { store } = engine
  const ownership = openOwnership(store)
  const { enqueue, stop } = openTurns(engine, (ref) => collect(engine, ref, ownership, enqueue))
  const notice = (ref: ObjectRef, object: KubeObject | undefined, old: KubeObject | undefined) => {
    if (object?.metadata.deletionTimestamp !== undefined || object?.metadata.ownerReferences !== undefined) enqueue(ref)
    const changed = object ?? old
    if (!changed) return
    const isLeaving = object === undefined || object.metadata.deletionTimestamp !== undefined
    if (!isLeaving) return
    for (const dependent of ownership.dependentsOf(changed.metadata.uid)) enqueue(dependent)
    for (const { uid } of changed.metadata.ownerReferences ?? []) {
      const owner = ownership.find(uid)
      if (owner) enqueue(owner)
    }
    if (object === undefined) wakeContainers(engine, ref, changed, enqueue)
  }
  store.onApplied((storageKey, { key, object, old }) => notice({ storageKey, key }, object, old))
  for (const [storageKey, table] of store.tables())
    for (const [key, object] of table.entries()) notice({ storageKey, key }, object, undefined)

  const cancel = sweepEvents(engine)
  return {
    stop() {
      stop()
      cancel()
    },
  }
}

/** The last object of a namespace or of a definition that is going away completes its deletion. */
function wakeContainers(
  { store }: Engine,
  { storageKey }: ObjectRef,
  gone: KubeObject,
  enqueue: (ref: ObjectRef) => void,
): void {
  const { namespace } = gone.metadata
  if (namespace !== undefined && store.table('/namespaces').get(namespace)?.metadata.deletionTimestamp !== undefined)
    enqueue({ storageKey: '/namespaces', key: namespace })
  const [group = '', resource = ''] = storageKey.split('/')
  const crd = `${resource}.${group}`
  if (store.table(CRD_KEY).get(crd)?.metadata.deletionTimestamp !== undefined)
    enqueue({ storageKey: CRD_KEY, key: crd })
}

type Enqueue = (ref: ObjectRef) => void

/** One step of collecting an object; the changes that it makes queue the objects that depend on it. Answers whether
 *  admission has refused something. */
async function collect(engine: Engine, ref: ObjectRef, ownership: Ownership, enqueue: Enqueue): Promise<boolean> {
  const object = engine.store.table(ref.storageKey).get(ref.key)
  const definition = engine.registry.ofStored(ref.storageKey)
  if (!object || !definition) return false
  if (object.metadata.deletionTimestamp !== undefined) {
    if (ref.storageKey === '/namespaces') return emptyNamespace(engine, object)
    const finalizers = object.metadata.finalizers ?? []
    if (ref.storageKey === CRD_KEY) emptyDefinition(engine, object)
    else if (finalizers.includes(ORPHAN)) orphanDependents(engine, ref, object, definition, ownership)
    else if (finalizers.includes(FOREGROUND)) waitForDependents(engine, ref, object, definition, ownership, enqueue)
    return false
  }
  return checkOwners(engine, object, definition, ownership)
}

function ownerOf(
  engine: Engine,
  owner: OwnerReference,
  namespace: string | undefined,
  ownership: Ownership,
): KubeObject | undefined {
  const ref = ownership.find(owner.uid)
  const found = ref && engine.store.table(ref.storageKey).get(ref.key)
  // Only an owner of the same namespace, or of none, counts.
  return found && (found.metadata.namespace === undefined || found.metadata.namespace === namespace) ? found : undefined
}

const isWaiting = (owner: KubeObject): boolean =>
  owner.metadata.deletionTimestamp !== undefined && (owner.metadata.finalizers ?? []).includes(FOREGROUND)

/** An object goes when none of its owners stays; references to owners that are gone are dropped while another stays. */
async function checkOwners(
  engine: Engine,
  object: KubeObject,
  definition: Definition,
  ownership: Ownership,
): Promise<boolean> {
  const { ownerReferences = [], uid } = object.metadata
  if (ownerReferences.length === 0) return false
  const owners = ownerReferences.map((reference) => ({
    reference,
    owner: ownerOf(engine, reference, object.metadata.namespace, ownership),
  }))
  const solid = owners.filter(({ owner }) => owner !== undefined && !isWaiting(owner))
  if (solid.length > 0) {
    if (solid.length < owners.length)
      rewrite(engine, definition, object, { ownerReferences: solid.map(({ reference }) => reference) })
    return false
  }
  const hasWaiting = owners.some(({ owner }) => owner !== undefined)
  const finalizers = object.metadata.finalizers ?? []
  const propagation: Propagation = finalizers.includes(ORPHAN)
    ? 'Orphan'
    : (hasWaiting && ownership.dependentsOf(uid).length > 0) || finalizers.includes(FOREGROUND)
      ? 'Foreground'
      : 'Background'
  const refusal = await removeAsked(engine, definition, object, { propagation }, GARBAGE_COLLECTOR)
  if (refusal !== undefined) tellRefusal(engine, object, refusal)
  return refusal !== undefined
}

/** Its owner is gone, and it stays: an Event says why, one for each reason. */
function tellRefusal(engine: Engine, { apiVersion, kind, metadata }: KubeObject, refusal: string): void {
  const { store, registry, clock, random, log } = engine
  const { namespace = 'default', name, uid } = metadata
  log.warn('what has no owner is kept: its deletion was refused', { kind, namespace, name, refusal })
  const definition = registry.findKind('', 'v1', 'Event')
  if (!definition) return
  const event = `${name}.${hash('sha256', `${uid} ${refusal}`).slice(0, EVENT_NAME_LENGTH)}`
  const now = clock.now()
  const old = store.table(definition.storageKey).get(`${namespace}/${event}`)
  const given: JsonObject = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: event, namespace },
    involvedObject: { apiVersion, kind, name, uid, ...(metadata.namespace === undefined ? {} : { namespace }) },
    type: 'Warning',
    reason: 'DeletionRefused',
    message: `Its owners are gone, and its deletion was refused: ${refusal}`,
    source: { component: 'garbage-collector' },
    firstTimestamp: asString(at(old, 'firstTimestamp')) || toSeconds(now),
    lastTimestamp: toSeconds(now),
    count: Number(at(old, 'count') ?? 0) + 1,
  }
  store.put(
    definition.storageKey,
    `${namespace}/${event}`,
    shape({ definition, given, old, namespace, name: event, subresource: '', now, random }).object,
  )
}
const EVENT_NAME_LENGTH = 16

function orphanDependents(
  engine: Engine,
  ref: ObjectRef,
  owner: KubeObject,
  definition: Definition,
  ownership: Ownership,
): void {
  for (const dependent of ownership.dependentsOf(owner.metadata.uid)) {
    const object = engine.store.table(dependent.storageKey).get(dependent.key)
    const itsDefinition = engine.registry.ofStored(dependent.storageKey)
    if (!object || !itsDefinition) continue
    const left = (object.metadata.ownerReferences ?? []).filter(({ uid }) => uid !== owner.metadata.uid)
    rewrite(engine, itsDefinition, object, { ownerReferences: left.length === 0 ? undefined : left })
  }
  dropFinalizer(engine, ref, definition, ORPHAN)
}

/** Foreground: dependents go first; the owner waits for those that block it. */
function waitForDependents(
  engine: Engine,
  ref: ObjectRef,
  owner: KubeObject,
  definition: Definition,
  ownership: Ownership,
  enqueue: Enqueue,
): void {
  const dependents = ownership.dependentsOf(owner.metadata.uid)
  const isBlocked = dependents.some(({ storageKey, key }) => {
    const object = engine.store.table(storageKey).get(key)
    return (
      object?.metadata.ownerReferences?.some(
        ({ uid, blockOwnerDeletion }) => uid === owner.metadata.uid && blockOwnerDeletion === true,
      ) === true
    )
  })
  if (!isBlocked) return dropFinalizer(engine, ref, definition, FOREGROUND)
  for (const dependent of dependents) {
    if (engine.store.table(dependent.storageKey).get(dependent.key)?.metadata.deletionTimestamp === undefined)
      enqueue(dependent)
  }
}

function dropFinalizer(
  engine: Engine,
  { storageKey, key }: ObjectRef,
  definition: Definition,
  finalizer: string,
): void {
  const object = engine.store.table(storageKey).get(key)
  if (!object) return
  const left = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer)
  const changed = withMetadata(object, { finalizers: left.length === 0 ? undefined : left })
  if (left.length === 0 && definition.hooks.isHeld?.(changed) !== true) engine.store.remove(storageKey, key, changed)
  else engine.store.put(storageKey, key, changed)
}

function rewrite(
  engine: Engine,
  definition: Definition,
  object: KubeObject,
  changes: { readonly ownerReferences: readonly OwnerReference[] | undefined },
): void {
  const { namespace, name } = object.metadata
  engine.store.put(
    definition.storageKey,
    namespace === undefined ? name : `${namespace}/${name}`,
    withMetadata(object, changes),
  )
}

/** Deletes all objects of a definition; when none is left, the definition may go. */
function emptyDefinition(engine: Engine, crd: KubeObject): void {
  if (!(crd.metadata.finalizers ?? []).includes(CLEANUP)) return
  const storageKey = `${asString(at(crd, 'spec', 'group'))}/${asString(at(crd, 'spec', 'names', 'plural'))}`
  const table = engine.store.table(storageKey)
  const definition = engine.registry.ofStored(storageKey)
  for (const [key, object] of [...table.entries()]) {
    const { namespace = '', name } = object.metadata
    if (definition) removeNow(engine, definition, namespace, name, { propagation: 'Background' })
    else engine.store.remove(storageKey, key)
  }
  const crds = engine.registry.ofStored(CRD_KEY)
  if (table.size() === 0 && crds) dropFinalizer(engine, { storageKey: CRD_KEY, key: crd.metadata.name }, crds, CLEANUP)
}

/** Events vanish an hour after their last change. Answers how to stop. */
function sweepEvents(engine: Engine): () => void {
  const { clock, registry, store } = engine
  let stop = () => {}
  const sweep = () => {
    for (const definition of new Set(
      registry
        .all()
        .filter(({ hooks }) => hooks.keepsSeconds !== undefined)
        .map(({ storageKey }) => registry.ofStored(storageKey)),
    )) {
      if (!definition?.hooks.keepsSeconds) continue
      const before = clock.now().getTime() - definition.hooks.keepsSeconds * 1000
      for (const [key, object] of [...store.table(definition.storageKey).entries()])
        if (lastChange(object) < before) store.remove(definition.storageKey, key)
    }
  }
  const next = () => {
    stop = clock.after(EVENT_SWEEP_MILLISECONDS, () => {
      sweep()
      next()
    })
  }
  next()
  return () => stop()
}

/** When the newest part of the object was written, in milliseconds. */
const lastChange = ({ metadata }: KubeObject): number =>
  Math.max(
    Date.parse(metadata.creationTimestamp),
    ...(metadata.managedFields ?? []).map(({ time }) => Date.parse(time ?? metadata.creationTimestamp)),
  )
