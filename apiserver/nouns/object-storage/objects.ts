/** Object storages as objects that have operations; what customers see of them is in rows. */
import type { IdleFacts } from '../../../domain/idle-rules.ts'
import {
  ObjectStorage,
  type ObjectStorageSpec,
  type ObjectStorageStatus,
} from '../../../resources/object-storage/index.ts'
import { idleFactsOf } from '../../../resources/operation/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type ObjectStorages = OperatedObjects<ObjectStorageSpec, ObjectStorageStatus, null, IdleFacts>

export const openObjectStorages = (parts: ObjectParts): ObjectStorages =>
  openOperated(parts, {
    name: 'object_storage',
    title: 'object storage',
    resource: ObjectStorage,
    surroundingsOf: () => ({}),
    toView: () => null,
    factsOf: idleFactsOf,
  })
