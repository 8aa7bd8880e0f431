/** Backups that people create, rename and delete past the API must satisfy its rules. Everything is checked and nothing
 *  is claimed: the controller claims, once the object exists. */
import { requireBackupZone } from '../../../changes/kit/backups.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { requireDeletable } from '../../../domain/backup/rules.ts'
import { badField, forbidden } from '../../../domain/problem.ts'
import { claimBackup } from '../../../db/backup/index.ts'
import { Backup, backupFactsOf, type BackupSpec, type BackupStatus } from '../../../resources/backup/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { diskGibibytesOf, Storage } from '../../../resources/storage/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { requirePrintableTitle } from '../../kit/admission/readable-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import type { BackupObject } from './objects.ts'
import { requireUnreadBackup } from './rules.ts'

const PLATFORM: PlatformFields = {
  noun: 'backup',
  finalizer: finalizerOf(Backup),
  goesWhen: 'nothing of the backup is left in its store',
}

/** Throws the Problem that the API would answer. The storage may be created later: the backup waits for it. */
async function validateCreation(parts: AdmissionParts, backup: BackupObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: backupId, namespace = '' },
    spec,
  } = backup
  const accountId = await requireAccount(parts, backup, 'backups')
  denyPlatformFields(backup, undefined, PLATFORM)
  if (spec.copyOf !== undefined)
    throw forbidden('Copies are made by the platform only, for storages that ask for them.')
  if (spec.kind !== 'manual') throw forbidden('Scheduled backups are made by the platform only.')
  requireReadable(spec)
  if (spec.expiresAt !== undefined && new Date(spec.expiresAt) <= parts.clock.now())
    throw badField('spec.expiresAt', 'must be in the future')
  const storage = parts.caches.of(Storage).get({ namespace, name: spec.storageId })
  if (storage !== undefined) requireBackupZone(worldOf(parts.caches), storage.spec.zone)
  await requireStanding(parts, accountId)
  const sizeGibibytes = storage === undefined ? 0 : diskGibibytesOf(storage)
  await rehearse(parts, (tx) => claimBackup(tx, { accountId, backupId, sizeGibibytes }))
  return [{ action: 'storage.backup', changes: [] }]
}

/** Throws the Problem that the API would answer. The kind itself refuses another storage. */
function validateChange(backup: BackupObject, before: BackupObject): readonly AdmittedChange[] {
  denyPlatformFields(backup, before, PLATFORM)
  if (before.spec.zone !== undefined && backup.spec.zone !== before.spec.zone)
    throw badField('spec.zone', 'cannot be changed')
  requireReadable(backup.spec)
  return []
}

function requireReadable(spec: BackupSpec): void {
  requirePrintableTitle(spec)
  const { expiresAt } = spec
  if (expiresAt !== undefined && Number.isNaN(Date.parse(expiresAt)))
    throw badField('spec.expiresAt', 'must be an instant such as 2027-01-01T00:00:00Z')
}

export const backupAdmission: AdmissionRules<BackupSpec, BackupStatus> = {
  create: validateCreation,
  update: (_parts, after, before) => validateChange(after, before),
  actionsOf: (_after, before) => (before === undefined ? ['storage.backup'] : []),
  delete: admitDeletion('backup.delete', (before, parts) => {
    requireDeletable(backupFactsOf(storedOf(before)))
    requireUnreadBackup(parts, before)
  }),
  reads: [Storage, Zone],
}
