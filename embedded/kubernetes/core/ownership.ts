/** An index over the owner references of all objects. */
import type { KubeObject } from './object.ts'
import type { Store } from './store.ts'

export interface ObjectRef {
  readonly storageKey: string
  readonly key: string
}

export interface Ownership {
  /** Location of the object with this uid; undefined when it does not exist. */
  find(uid: string): ObjectRef | undefined
  dependentsOf(uid: string): readonly ObjectRef[]
}

export function openOwnership(store: Store): Ownership {
  const objects = new Map<string, ObjectRef>()
  const dependents = new Map<string, Map<string, ObjectRef>>()
  const forget = (ref: ObjectRef, object: KubeObject) => {
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const group = dependents.get(uid)
      group?.delete(`${ref.storageKey} ${ref.key}`)
      if (group?.size === 0) dependents.delete(uid)
    }
  }
  const learn = (ref: ObjectRef, object: KubeObject) => {
    objects.set(object.metadata.uid, ref)
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      let group = dependents.get(uid)
      if (!group) dependents.set(uid, (group = new Map()))
      group.set(`${ref.storageKey} ${ref.key}`, ref)
    }
  }
  for (const [storageKey, table] of store.tables())
    for (const [key, object] of table.entries()) learn({ storageKey, key }, object)
  store.onApplied((storageKey, { key, object, old }) => {
    const ref = { storageKey, key }
    if (old) forget(ref, old)
    if (object) learn(ref, object)
    else if (old) objects.delete(old.metadata.uid)
  })
  return {
    find: (uid) => objects.get(uid),
    dependentsOf: (uid) => [...(dependents.get(uid)?.values() ?? [])],
  }
}
