/** Creates objects of accounts: what one needs is claimed with the intent in one transaction, and ONE write creates
 *  it, with the operation that its creation is, if any. */
import type { Transaction } from 'kysely'
import type { UnsealedAuditEntry } from '../../../domain/audit/entry.ts'
import { defined } from '../../../domain/defined.ts'
import type { OperationKind } from '../../../domain/operations.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { KubeObject, ResourceType } from '../../../kit/kube/object.ts'
import { newOrderedUuid } from '../../../kit/sys/random.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { ACCOUNT_LABEL, LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import type { Operable } from '../../../resources/operation/index.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { Parts } from '../parts.ts'
import { accept, type Acceptance, newStanza } from './accept.ts'
import { auditEntryOf } from './audit.ts'
import { begunView } from './begun.ts'
import { ensureNamespace } from './namespaces.ts'
import type { OperatedObjects } from './operate.ts'

interface NewObject<Spec, Status, Claims> {
  /** Also the id of the operation, if there is one. */
  readonly changeId: string
  /** Kind and name of the object, as operations name it. */
  readonly reference: Acceptance<Claims, Spec, Status>['resource']
  readonly resource: ResourceType<Spec, Status>
  /** Undefined when the creation takes effect with the write. */
  readonly operation?: OperationStanza | undefined
  readonly audit: UnsealedAuditEntry
  readonly specOf: (claims: Claims) => Spec
  /** Claims what the new object needs, and releases it when the object was not created. */
  readonly claim: (tx: Transaction<Tables>) => Promise<Claims>
  readonly release: (tx: Transaction<Tables>) => Promise<void>
  /** Called once everything is claimed, right before the write: throws the Problem that refuses it by then. */
  readonly requireStill?: (() => Promise<void>) | undefined
}

/** Returns the object as it was written. Throws what `claim` and `requireStill` throw. */
export function createObject<Spec, Status, Claims>(
  parts: Parts,
  accountId: string,
  {
    changeId,
    reference,
    resource,
    operation,
    audit,
    specOf,
    claim,
    release,
    requireStill,
  }: NewObject<Spec, Status, Claims>,
): Promise<KubeObject<Spec, Status>> {
  const key = { namespace: accountNamespace(accountId), name: reference.id }
  return accept<Claims, Spec, Status>(parts, {
    id: changeId,
    accountId,
    resource: reference,
    ...defined({ operation }),
    audit,
    claim,
    release,
    write: async (claimed) => {
      await ensureNamespace(parts, accountId)
      await requireStill?.()
      return parts.store.create(resource, {
        metadata: {
          ...key,
          labels: { [ACCOUNT_LABEL]: accountId },
          ...(operation === undefined ? { annotations: { [LAST_CHANGE_ANNOTATION]: changeId } } : {}),
          finalizers: [finalizerOf(resource)],
        },
        spec: specOf(claimed as Claims), // what `claim` has returned
      })
    },
    read: () => parts.store.get(resource, key),
    wasApplied: () => true, // nobody else has the id
  })
}

interface Creation<Spec> {
  readonly kind: OperationKind
  readonly specOf: (operation: OperationStanza) => Spec
  readonly arguments?: Readonly<Record<string, string>>
  /** For the audit log. */
  readonly detail: Readonly<Record<string, string>>
  /** Claims what the new object needs, and releases it when the object was not created. */
  readonly claim: (tx: Transaction<Tables>, id: string) => Promise<void>
  readonly release: (tx: Transaction<Tables>, id: string) => Promise<void>
}

/** Answers 202 with the object and the operation. Throws what `claim` does. For creations that are no change of their
 *  noun. */
export async function create<
  R extends Route,
  Spec extends Operable['spec'],
  Status extends Operable['status'],
  View,
  Facts,
>(
  parts: Parts,
  objects: OperatedObjects<Spec, Status, View, Facts>,
  call: Call<R, Customer>,
  creation: Creation<Spec>,
): Promise<Answer> {
  const {
    caller: { accountId, actor },
    request: { requestId },
    now,
  } = call
  const { name: type, resource } = objects
  // Lists are newest first by second of creation, then by id: the id keeps the order within the second.
  const id = newOrderedUuid(parts.random, now)
  const operation = newStanza(parts, creation.kind, {
    actor,
    requestId,
    now,
    ...defined({ arguments: creation.arguments }),
  })
  const written = await createObject(parts, accountId, {
    changeId: operation.id,
    reference: { type, id },
    resource,
    operation,
    audit: auditEntryOf(call, { resourceId: id, detail: creation.detail }),
    specOf: () => creation.specOf(operation),
    claim: (tx) => creation.claim(tx, id),
    release: (tx) => creation.release(tx, id),
  })
  objects.cache.apply(written)
  return { status: 202, body: { [type]: objects.viewOf(written), operation: begunView(written, { type, id }) } }
}
