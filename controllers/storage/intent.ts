/** How a change of a storage that was left half-way shows, and what of it is given back. */
import { deleteStorageClaim, withdrawAttachment, withdrawResize } from '../../db/storage/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import type { IntentHandler } from '../controller.ts'
import { wasOperationApplied } from '../operation/intent.ts'
import type { StorageObject } from './volumes.ts'

export const storageIntents: IntentHandler<StorageObject | undefined> = {
  resourceType: 'storage',
  wasApplied: wasOperationApplied(Storage),
  look: ({ store }, { accountId, resource }) =>
    store.get(Storage, { namespace: accountNamespace(accountId), name: resource.id }),
  async release(tx, { accountId, resource, audit: { action, changes } }, stored) {
    const id = { accountId, storageId: resource.id }
    if (action === 'storage.create') await deleteStorageClaim(tx, id)
    const serverId = changes[0]?.after
    if (action === 'storage.attach' && typeof serverId === 'string')
      await withdrawAttachment(tx, { ...id, serverId }, stored?.spec.serverId === serverId)
    if (action === 'storage.resize') await withdrawResize(tx, id, stored?.spec)
  },
}
