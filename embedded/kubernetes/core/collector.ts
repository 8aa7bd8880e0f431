/** Does the work of a cluster's controllers: deletes owned objects with their owners, the contents of namespaces and
 *  definitions that are being deleted, and expired events. It asks admission as they do. A refused object stays, is
 *  logged, and is retried with growing intervals. Changes trigger it. All its work is derived from the state, so it can
 *  stop at any moment and continue at the next start. */
import { changeAsked, removeAsked } from './asked.ts'
import { CLEANUP, CRD_KEY } from './crd.ts'
import type { Definition } from './definition.ts'
import type { Engine } from './engine.ts'
import { asString, at } from './json.ts'
import { openTurns } from './collector-turns.ts'
import { emptyNamespace } from './empty-namespace.ts'
import { withMetadata, type KubeObject, type OwnerReference } from './object.ts'
import { openOwnership, type ObjectRef, type Ownership } from './ownership.ts'
import { FOREGROUND, ORPHAN, removeNow, type Propagation } from './remove.ts'

const EVENT_SWEEP_MILLISECONDS = 60_000

export interface Collector {
  stop(): void
}

/** Removes, in the background, objects without any existing owner. */
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

/** The removal of the last object of a namespace or definition completes its deletion. */
function wakeContainers(
  { store }: Engine,
  { storageKey }: ObjectRef,
  owner: KubeObject,
  enqueue: (ref: ObjectRef) => void,
): void {
  const { namespace } = owner.metadata
  if (namespace !== undefined && store.table('/namespaces').get(namespace)?.metadata.deletionTimestamp !== undefined)
    enqueue({ storageKey: '/namespaces', key: namespace })
  const [group = '', resource = ''] = storageKey.split('/')
  const crd = `${resource}.${group}`
  if (store.table(CRD_KEY).get(crd)?.metadata.deletionTimestamp !== undefined)
    enqueue({ storageKey: CRD_KEY, key: crd })
}

type Enqueue = (ref: ObjectRef) => void

/** One step of collecting an object; its changes queue the dependent objects. Returns whether admission refused
 *  something. */
async function collect(engine: Engine, ref: ObjectRef, ownership: Ownership, enqueue: Enqueue): Promise<boolean> {
  const object = engine.store.table(ref.storageKey).get(ref.key)
  const definition = engine.registry.ofStored(ref.storageKey)
  if (!object || !definition) return false
  if (object.metadata.deletionTimestamp !== undefined) {
    if (ref.storageKey === '/namespaces') return emptyNamespace(engine, object)
    const finalizers = object.metadata.finalizers ?? []
    if (ref.storageKey === CRD_KEY) emptyDefinition(engine, object)
    else if (finalizers.includes(ORPHAN)) return orphanDependents(engine, object, definition, ownership)
    else if (finalizers.includes(FOREGROUND)) return waitForDependents(engine, object, definition, ownership, enqueue)
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
  // Only an owner in the same namespace, or a cluster-wide one, counts.
  return found && (found.metadata.namespace === undefined || found.metadata.namespace === namespace) ? found : undefined
}

const isWaiting = (owner: KubeObject): boolean =>
  owner.metadata.deletionTimestamp !== undefined && (owner.metadata.finalizers ?? []).includes(FOREGROUND)

/** Deletes an object without remaining owners. If an owner remains, only references to deleted owners are removed. */
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
    const stays = new Set(solid.map(({ reference }) => reference.uid))
    return (
      solid.length < owners.length && dropOwners(engine, object, definition, (reference) => stays.has(reference.uid))
    )
  }
  const hasWaiting = owners.some(({ owner }) => owner !== undefined)
  const finalizers = object.metadata.finalizers ?? []
  const propagation: Propagation = finalizers.includes(ORPHAN)
    ? 'Orphan'
    : (hasWaiting && ownership.dependentsOf(uid).length > 0) || finalizers.includes(FOREGROUND)
      ? 'Foreground'
      : 'Background'
  return isRefused(engine, object, await removeAsked(engine, definition, object, { propagation }))
}

/** Logs a refusal; the object stays and is retried. A cluster also only logs this. */
function isRefused({ log }: Engine, { kind, metadata }: KubeObject, refusal: string | undefined): boolean {
  if (refusal === undefined) return false
  const { namespace, name } = metadata
  log.info('an object is kept as it is, for its collection was refused', { kind, namespace, name, refusal })
  return true
}

/** Returns whether it was refused. */
const dropOwners = async (
  engine: Engine,
  object: KubeObject,
  definition: Definition,
  stays: (owner: OwnerReference) => boolean,
): Promise<boolean> =>
  isRefused(
    engine,
    object,
    await changeAsked(engine, definition, object, ({ metadata: { ownerReferences = [] } }) => {
      const left = ownerReferences.filter(stays)
      if (left.length === ownerReferences.length) return undefined
      return { ownerReferences: left.length === 0 ? undefined : left }
    }),
  )

/** Returns whether it was refused. */
const dropFinalizer = async (
  engine: Engine,
  object: KubeObject,
  definition: Definition,
  finalizer: string,
): Promise<boolean> =>
  isRefused(
    engine,
    object,
    await changeAsked(engine, definition, object, ({ metadata: { finalizers = [] } }) => {
      const left = finalizers.filter((one) => one !== finalizer)
      if (left.length === finalizers.length) return undefined
      return { finalizers: left.length === 0 ? undefined : left }
    }),
  )

/** Removes the owner reference of dependents, then the owner. Returns whether something was refused. */
async function orphanDependents(
  engine: Engine,
  owner: KubeObject,
  definition: Definition,
  ownership: Ownership,
): Promise<boolean> {
  const { uid } = owner.metadata
  let wasRefused = false
  for (const dependent of ownership.dependentsOf(uid)) {
    const object = engine.store.table(dependent.storageKey).get(dependent.key)
    const itsDefinition = engine.registry.ofStored(dependent.storageKey)
    if (object && itsDefinition && (await dropOwners(engine, object, itsDefinition, (one) => one.uid !== uid)))
      wasRefused = true
  }
  return wasRefused || dropFinalizer(engine, owner, definition, ORPHAN)
}

/** Foreground deletion: dependents are deleted first; the owner waits for those that block it. Returns whether the
 *  owner's deletion was refused. */
async function waitForDependents(
  engine: Engine,
  owner: KubeObject,
  definition: Definition,
  ownership: Ownership,
  enqueue: Enqueue,
): Promise<boolean> {
  const dependents = ownership.dependentsOf(owner.metadata.uid)
  const isBlocked = dependents.some(({ storageKey, key }) => {
    const object = engine.store.table(storageKey).get(key)
    return (
      object?.metadata.ownerReferences?.some(
        ({ uid, blockOwnerDeletion }) => uid === owner.metadata.uid && blockOwnerDeletion === true,
      ) === true
    )
  })
  if (!isBlocked) return dropFinalizer(engine, owner, definition, FOREGROUND)
  for (const dependent of dependents) {
    if (engine.store.table(dependent.storageKey).get(dependent.key)?.metadata.deletionTimestamp === undefined)
      enqueue(dependent)
  }
  return false
}

/** Deletes all objects of a definition; afterwards the definition can be deleted. */
function emptyDefinition(engine: Engine, crd: KubeObject): void {
  if (!(crd.metadata.finalizers ?? []).includes(CLEANUP)) return
  const storageKey = `${asString(at(crd, 'spec', 'group'))}/${asString(at(crd, 'spec', 'names', 'plural'))}`
  const table = engine.store.table(storageKey)
  const definition = engine.registry.ofStored(storageKey)
  for (const [key, object] of Array.from(table.entries())) {
    const { namespace = '', name } = object.metadata
    if (definition) removeNow(engine, definition, namespace, name, { propagation: 'Background' })
    else engine.store.remove(storageKey, key)
  }
  const held = (crd.metadata.finalizers ?? []).filter((one) => one !== CLEANUP)
  if (table.size() > 0) return
  const { name } = crd.metadata
  if (held.length === 0) engine.store.remove(CRD_KEY, name, crd)
  else engine.store.put(CRD_KEY, name, withMetadata(crd, { finalizers: held }))
}

/** Deletes events an hour after their last change. Returns a function that stops it. */
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
      for (const [key, object] of Array.from(store.table(definition.storageKey).entries()))
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

/** When the object was last written, in milliseconds. */
const lastChange = ({ metadata }: KubeObject): number =>
  Math.max(
    Date.parse(metadata.creationTimestamp),
    ...(metadata.managedFields ?? []).map(({ time }) => Date.parse(time ?? metadata.creationTimestamp)),
  )
