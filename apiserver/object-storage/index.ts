import { ObjectStorage } from '../../resources/object-storage/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { objectStorageAdmission } from './admission.ts'
import { objectStorageEndpoints, type ObjectStorageParts } from './endpoints.ts'

export const objectStorage = noun<ObjectStorageParts>({
  name: 'object_storage',
  kinds: [kind(ObjectStorage, { access: 'write', admission: objectStorageAdmission })],
  endpoints: objectStorageEndpoints,
})
