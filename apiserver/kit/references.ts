/** Other objects of the account that a spec names. */
import type { Changeable } from '../../changes/kit/define.ts'
import { isDeletion } from '../../domain/operations.ts'
import { notFound } from '../../domain/problem.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { isBeingDeleted, type Operable } from '../../resources/operation/index.ts'
import type { Parts } from '../parts.ts'

/** Throws 404 for another object of the account that is not there or is being deleted, and what it throws itself. */
export async function requireReferences<Spec extends object>(
  { store }: Pick<Parts, 'store'>,
  { refers }: Pick<Changeable<Spec, never, never>, 'refers'>,
  accountId: string,
  { spec, before, fields }: { readonly spec: Spec; readonly before?: Spec; readonly fields: readonly string[] },
): Promise<void> {
  for (const { field, type, title, requireUsable } of refers.filter((each) => fields.includes(each.field)))
    for (const id of namesIn(spec[field], before?.[field])) {
      const object = await store.get(type, { namespace: accountNamespace(accountId), name: id })
      if (object === undefined || isLeaving(object)) throw notFound(title)
      requireUsable?.(object, spec)
    }
}

/** The name in the field, or those that were added to its list. */
const namesIn = (value: unknown, before: unknown): readonly string[] =>
  (Array.isArray(value) ? value.filter((name) => !Array.isArray(before) || !before.includes(name)) : [value]).filter(
    (name) => typeof name === 'string',
  )

function isLeaving(object: KubeObject): boolean {
  const operable = object as KubeObject & Operable // what has no operations has no such member
  const kind = operable.spec.operation?.kind
  return isBeingDeleted(operable) || (kind !== undefined && isDeletion(kind))
}
