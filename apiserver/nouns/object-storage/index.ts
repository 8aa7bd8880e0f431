import { listObjectStorage, ObjectStorage } from '../../../resources/object-storage/index.ts'
import { kind } from '../../kit/admission/kind.ts'
import { besides, rowFeed, sourceOf } from '../../kit/feed.ts'
import { noun } from '../../kit/noun.ts'
import { objectStorageAdmission } from './admission.ts'
import { objectStorageEndpoints, objectStorageOf } from './endpoints.ts'
import { type ObjectStorages, openObjectStorages } from './objects.ts'
import type { ObjectStorageParts } from './tenant.ts'

export { type ObjectStorages } from './objects.ts'

export const objectStorage = noun<ObjectStorageParts, { readonly objectStorages: ObjectStorages }>({
  name: 'object_storage',
  kinds: [kind(ObjectStorage, { access: 'write', target: 'object_storage', admission: objectStorageAdmission })],
  open: (parts) => ({ objectStorages: openObjectStorages(parts) }),
  endpoints: objectStorageEndpoints,
  feeds: (parts) => [
    rowFeed('object_storage', listObjectStorage, (accountId, id) => objectStorageOf(parts, accountId, id), [
      sourceOf(
        parts.caches.of(ObjectStorage),
        besides(({ metadata: { name } }) => [name]),
        { isOwn: true },
      ),
    ]),
  ],
})
