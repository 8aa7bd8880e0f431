/** Object storage that people enable and remove past the API must satisfy its rules: everything is checked, nothing is
 *  claimed. */
import { conflict } from '../../../domain/problem.ts'
import { addObjectStorage, findObjectStorage } from '../../../db/object-storage/index.ts'
import { accountExists } from '../../../db/server/index.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import {
  ObjectStorage,
  type ObjectStorageSpec,
  type ObjectStorageStatus,
} from '../../../resources/object-storage/index.ts'
import { requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { requireOffering } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'object storage',
  finalizer: finalizerOf(ObjectStorage),
  goesWhen: 'the object storage has no buckets',
}

type ObjectStorageObject = KubeObject<ObjectStorageSpec, ObjectStorageStatus>

/** Throws the Problem that the API would answer. */
async function validateCreation(
  parts: AdmissionParts,
  object: ObjectStorageObject,
): Promise<readonly AdmittedChange[]> {
  const accountId = await requireAccount(parts, object, 'object storages')
  denyPlatformFields(object, undefined, PLATFORM)
  const backend = requireOffering(parts, object.spec.zone)
  await requireStanding(parts, accountId)
  const { secretAccessKey: _never, ...keys } = newTenantKeys(parts.random)
  await rehearse(parts, (tx) =>
    addObjectStorage(tx, {
      ...keys,
      id: object.metadata.name,
      accountId,
      zone: object.spec.zone,
      backend,
      sealedSecret: '',
      createdAt: parts.clock.now(),
    }),
  )
  return [{ action: 'object_storage.enable', changes: [] }]
}

/** The kind itself refuses every change of the spec. */
function validateChange(
  _parts: AdmissionParts,
  object: ObjectStorageObject,
  before: ObjectStorageObject,
): readonly AdmittedChange[] {
  denyPlatformFields(object, before, PLATFORM)
  return []
}

/** Throws 409 while it is known to contain anything. Its controller checks again. */
async function validateDeletion(
  { db }: AdmissionParts,
  { metadata: { name, namespace = '', deletionTimestamp } }: ObjectStorageObject,
): Promise<readonly AdmittedChange[]> {
  const accountId = accountOfNamespace(namespace)
  if (deletionTimestamp !== undefined || accountId === undefined || !(await accountExists(db, accountId))) return []
  const row = await findObjectStorage(db, accountId, name)
  if (row !== undefined && row.objectCount > 0)
    throw conflict('in_use', 'The object storage holds objects. Delete them and their buckets first.', {
      resource: { type: 'object_storage', id: name },
    })
  return [{ action: 'object_storage.disable', changes: [] }]
}

export const objectStorageAdmission: AdmissionRules<ObjectStorageSpec, ObjectStorageStatus> = {
  create: validateCreation,
  update: validateChange,
  delete: validateDeletion,
  actionsOf: (after, before) =>
    before === undefined ? ['object_storage.enable'] : after === undefined ? ['object_storage.disable'] : [],
  reads: [Zone],
}
