/** How a change of a storage that was left half-way shows, and what of it is given back. */
import { deleteStorageClaim, type StorageId, withdrawAttachment, withdrawResize } from '../../db/storage/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Storage } from '../../resources/storage/index.ts'
import type { IntentHandler } from '../controller.ts'
import { wasOperationApplied } from '../operation/intent.ts'
import type { Parts } from '../parts.ts'

export const storageIntents: IntentHandler = {
  resourceType: 'storage',
  wasApplied: wasOperationApplied(Storage),
  async release(tx, { accountId, resource, audit: { action, changes } }, parts) {
    const id = { accountId, storageId: resource.id }
    if (action === 'storage.create') await deleteStorageClaim(tx, id)
    const [change] = changes
    if (action === 'storage.attach' && typeof change?.after === 'string') {
      const { after: serverId } = change
      const isDesired = async () => (await readStorage(parts, id))?.spec.serverId === serverId
      await withdrawAttachment(tx, { ...id, serverId }, isDesired)
    }
    if (action === 'storage.resize') await withdrawResize(tx, id, (await readStorage(parts, id))?.spec)
  },
}

const readStorage = ({ store }: Parts, { accountId, storageId }: StorageId) =>
  store.get(Storage, { namespace: accountNamespace(accountId), name: storageId })
