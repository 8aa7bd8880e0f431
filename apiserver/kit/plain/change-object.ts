/** Changes of stored objects that start no operation. */
import type { Transaction } from 'kysely'
import type { AuditChange } from '../../../domain/audit/entry.ts'
import type { Tables } from '../../../db/tables.ts'
import { defined } from '../../../domain/defined.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import { requireMatch } from '../../../kit/http/conditional.ts'
import type { Route } from '../../../kit/http/route.ts'
import { keyOf, type KubeObject } from '../../../kit/kube/object.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import { accept, type Acceptance, commitEarlier } from '../change/accept.ts'
import { auditEntryOf } from '../change/audit.ts'
import { idOf } from '../change/id-of.ts'
import type { Parts } from '../parts.ts'
import { etagOfObject, type Objects } from './objects.ts'

export interface Edit<Spec, Status> {
  /** The object that the audit entry names, when it is another. */
  readonly resourceId?: string
  readonly changes: (object: KubeObject<Spec, Status>) => readonly AuditChange[]
  /** Merge patch of the spec; throws a Problem to refuse. */
  readonly patch: (object: KubeObject<Spec, Status>) => Readonly<Record<string, unknown>>
  /** Claims what the change needs, and releases it when the change was not made. */
  readonly claim?: (tx: Transaction<Tables>) => Promise<void>
  readonly release?: Acceptance<void, Spec, Status>['release']
}

/** One conditional write, retried after conflicts. Returns the object as it is then. Throws 404, and 409 for another
 *  version than the one that the request names, and for objects that customers see but must not change. */
export async function changeObject<R extends Route, Spec, Status, View>(
  parts: Parts,
  objects: Objects<Spec, Status, View>,
  call: Call<R, Customer>,
  edit: Edit<Spec, Status>,
  objectId = idOf(call),
): Promise<KubeObject<Spec, Status>> {
  const {
    caller: { accountId },
    request,
  } = call
  const { name: type, resource } = objects
  const before = await objects.read(accountId, objectId)
  requireMatch(request, etagOfObject(before))
  objects.requireOwn(before)
  const id = newUuid(parts.random)
  const read = readAgain(objects, { accountId, id: objectId }, before)
  const written = await accept(parts, {
    id,
    accountId,
    resource: { type, id: objectId },
    audit: auditEntryOf(call, { resourceId: edit.resourceId ?? objectId, changes: edit.changes(before) }),
    ...defined({ claim: edit.claim, release: edit.release }),
    write: async () => {
      const object = await read()
      requireMatch(request, etagOfObject(object))
      const earlier = object.metadata.annotations?.[LAST_CHANGE_ANNOTATION]
      if (earlier !== undefined) await commitEarlier(parts, earlier)
      return parts.store.patch(resource, keyOf(object), {
        metadata: { resourceVersion: object.metadata.resourceVersion, annotations: { [LAST_CHANGE_ANNOTATION]: id } },
        spec: edit.patch(object),
      })
    },
    read: () => parts.store.get(resource, { namespace: accountNamespace(accountId), name: objectId }),
    wasApplied: ({ metadata }) => metadata.annotations?.[LAST_CHANGE_ANNOTATION] === id,
  })
  objects.cache.apply(written)
  return written
}

/** The object that was read already; after a conflict, the one that the store has by then. */
export function readAgain<Spec, Status>(
  objects: Pick<Objects<Spec, Status, unknown>, 'read'>,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  first: KubeObject<Spec, Status>,
): () => Promise<KubeObject<Spec, Status>> {
  let known: KubeObject<Spec, Status> | undefined = first
  return async () => {
    const object = known ?? (await objects.read(accountId, id))
    known = undefined
    return object
  }
}
