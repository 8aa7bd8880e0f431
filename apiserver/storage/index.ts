import { Storage } from '../../resources/storage/index.ts'
import { kind } from '../admission/kind.ts'
import { noun } from '../noun.ts'
import { storageAdmission } from './admission.ts'
import { storageEndpoints, type StorageParts } from './endpoints.ts'
import { openStorages, type Storages } from './storages.ts'

export { heldOf } from './held.ts'
export { judgeSource, SOURCE_READS } from './sources.ts'
export type { Storages }

export const storage = noun<StorageParts, { readonly storages: Storages }>({
  name: 'storage',
  kinds: [kind(Storage, { access: 'write', target: 'storage', admission: storageAdmission })],
  open: (parts) => ({ storages: openStorages(parts) }),
  endpoints: storageEndpoints,
})
