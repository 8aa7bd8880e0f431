/** Backups for requests, with what their view shows in addition. */
import type { BackupFacts } from '../../../domain/backup/rules.ts'
import type { KubeObject } from '../../../kit/kube/object.ts'
import {
  Backup,
  type BackupSpec,
  type BackupStatus,
  type BackupSurroundings,
  type BackupView,
  backupFactsOf,
  toBackupView,
} from '../../../resources/backup/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { type OperatedObjects, openOperated } from '../../kit/change/operate.ts'
import type { ObjectParts } from '../../kit/plain/objects.ts'

export type BackupObject = KubeObject<BackupSpec, BackupStatus>
export type Backups = OperatedObjects<BackupSpec, BackupStatus, BackupView, BackupFacts>

export function openBackups(parts: ObjectParts): Backups {
  const zones = parts.caches.of(Zone)
  return openOperated(parts, {
    name: 'backup',
    title: 'backup',
    resource: Backup,
    surroundingsOf: ({ spec, status }: BackupObject): BackupSurroundings => ({
      region: zones.get({ name: status?.zone ?? spec.zone ?? '' })?.spec.region,
    }),
    toView: toBackupView,
    factsOf: backupFactsOf,
    fields: { storage_id: ({ storageId }) => storageId },
  })
}
