/** How an accepted change shows on an object with operations. */
import { findOperation } from '../../../db/operation/index.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { LAST_CHANGE_ANNOTATION } from '../../../resources/kit/labels.ts'
import { Operation, type Operable } from '../../../resources/operation/index.ts'
import type { IntentHandler } from '../controller.ts'
import { orUnavailable } from '../outage.ts'
import type { Parts } from '../parts.ts'

/** For kinds in the namespace of an account. A write that happened shows on its object, or in the operation that it
 *  started: the object may have been deleted since, and another operation may have followed. */
export const wasOperationApplied =
  (type: ResourceType<Operable['spec'], Operable['status']>): IntentHandler['wasApplied'] =>
  async ({ db, store }, { operationId, accountId, resource }) => {
    const namespace = accountNamespace(accountId)
    const object = await store.get(type, { namespace, name: resource.id })
    const changes = [
      object?.spec.operation?.id,
      object?.status?.operation?.id,
      object?.metadata.annotations?.[LAST_CHANGE_ANNOTATION],
    ]
    return changes.includes(operationId) || (await wasBegun({ db, store }, { accountId, operationId }))
  }

/** Also when its target no longer exists. */
export const wasBegun = async (
  { db, store }: Pick<Parts, 'db' | 'store'>,
  { accountId, operationId }: { readonly accountId: string; readonly operationId: string },
): Promise<boolean> =>
  (await store.get(Operation, { namespace: accountNamespace(accountId), name: operationId })) !== undefined ||
  (await orUnavailable(findOperation(db, accountId, operationId))) !== undefined
