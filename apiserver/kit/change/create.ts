/** Creates objects whose creation is an operation: the object and the operation are one write. */
import type { Transaction } from 'kysely'
import type { Extent, OperationKind } from '../../../domain/operations.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import type { Route } from '../../../kit/http/route.ts'
import { newOrderedUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import type { Operable } from '../../../resources/operation/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../parts.ts'
import { accept, newStanza } from './accept.ts'
import { auditEntryOf } from './audit.ts'
import { begunView } from './begun.ts'
import { ensureNamespace } from './namespaces.ts'
import type { OperatedObjects } from './operate.ts'

export interface Creation<Spec, Claims = void> extends Extent {
  readonly kind: OperationKind
  /** The controller removes it once nothing of the object is left. */
  readonly finalizer: string
  readonly specOf: (operation: OperationStanza, claims: Claims) => Spec
  readonly arguments?: Readonly<Record<string, string>>
  /** For the audit log. */
  readonly detail: Readonly<Record<string, string>> | ((id: string) => Readonly<Record<string, string>>)
  /** The subject of the audit entry, when it is not the new object: the source of a backup. */
  readonly auditedId?: string
  /** The name of the object in the answer, when it differs from that in operations. */
  readonly envelope?: string
  /** Claims what the new object needs, and releases it when the object was not created. */
  readonly claim: (tx: Transaction<Tables>, id: string) => Promise<Claims>
  readonly release: (tx: Transaction<Tables>, id: string) => Promise<void>
  /** Called once everything is claimed, right before the write: throws a Problem to refuse. */
  readonly validate?: () => Promise<void>
}

/** Answers 202 with the object, under the name of its noun or its own, and the operation. Throws what `claim` does. */
export async function create<
  R extends Route,
  Spec extends Operable['spec'],
  Status extends Operable['status'],
  View,
  Facts,
  Claims = void,
>(
  parts: Parts,
  objects: OperatedObjects<Spec, Status, View, Facts>,
  call: Call<R, Customer>,
  creation: Creation<Spec, Claims>,
): Promise<Answer> {
  const {
    caller: { accountId, actor },
    request,
    now,
  } = call
  const { name: type, resource } = objects
  // Lists are newest first by second of creation, then by id: the id keeps the order within the second.
  const id = newOrderedUuid(parts.random, now)
  const operation = newStanza(parts, creation.kind, {
    ...creation,
    actor,
    requestId: request.requestId,
    now,
  })
  const detail = typeof creation.detail === 'function' ? creation.detail(id) : creation.detail
  const key = { namespace: accountNamespace(accountId), name: id }
  const written = await accept(parts, {
    id: operation.id,
    accountId,
    resource: { type, id },
    operation,
    audit: auditEntryOf(call, { resourceId: creation.auditedId ?? id, detail }),
    claim: (tx) => creation.claim(tx, id),
    release: (tx) => creation.release(tx, id),
    write: async (claimed) => {
      await ensureNamespace(parts, accountId)
      await creation.validate?.()
      return parts.store.create(resource, {
        metadata: { ...key, labels: { [ACCOUNT_LABEL]: accountId }, finalizers: [creation.finalizer] },
        spec: creation.specOf(operation, claimed as Claims), // what its own `claim` has returned
      })
    },
    read: () => parts.store.get(resource, key),
    wasApplied: () => true, // nobody else has the id
  })
  objects.cache.apply(written)
  const { envelope = type } = creation
  return { status: 202, body: { [envelope]: objects.viewOf(written), operation: begunView(written, { type, id }) } }
}
