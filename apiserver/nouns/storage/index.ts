/** Storages: their changes are in `changes/storage.ts`. */
import { storageChanges } from '../../../changes/storage.ts'
import { getStorage, listStorages, Storage } from '../../../resources/storage/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { admissionOf } from '../../kit/admission/changes.ts'
import { changeEndpoints } from '../../kit/rest.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import { getObject, labelsOfQuery, listObjects } from '../../kit/plain/objects.ts'
import { openStorages, type Storages } from './objects.ts'

export type { Storages }

export const storage = noun<Parts & { readonly storages: Storages }, { readonly storages: Storages }>({
  name: 'storage',
  kinds: [
    kind(Storage, {
      access: 'write',
      target: 'storage',
      // A protected storage is kept, even when a garbage collector deletes it.
      admission: { ...admissionOf(storageChanges), validatesCleanUp: true },
    }),
  ],
  open: (parts) => ({ storages: openStorages(parts) }),
  endpoints: ({ storages, ...parts }) => [
    getObject(storages, getStorage),
    listObjects(parts, storages, listStorages, ({ zone, server_id, label }) => ({
      labels: labelsOfQuery(label),
      fields: { zone, server_id },
    })),
    ...changeEndpoints(parts, storageChanges, storages),
  ],
})
