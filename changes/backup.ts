/** The changes of a backup. Restoring and verifying it sets no field. */
import { requireDeletable, requireUnread } from '../domain/backup/rules.ts'
import { badField, forbidden } from '../domain/problem.ts'
import { claimBackup, releaseBackup } from '../db/backup/index.ts'
import * as routes from '../resources/backup/index.ts'
import { Backup, backupFactsOf } from '../resources/backup/index.ts'
import { Zone } from '../resources/catalog/index.ts'
import { CustomImage, isReading } from '../resources/custom-image/index.ts'
import { accountNamespace } from '../resources/index.ts'
import { Printable } from '../resources/kit/shapes.ts'
import { carriedBy } from '../resources/operation/index.ts'
import { diskGibibytesOf, Storage } from '../resources/storage/index.ts'
import { requireBackupZone } from './kit/backups.ts'
import { changesOf, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { type World, worldOf } from './kit/world.ts'

const backupOf = ({ accountId, id }: Target) => ({ accountId, backupId: id })

/** Throws 409 while a storage or a custom image is being created from the backup. */
function requireUnreadBackup(world: World, { accountId, id }: Target): void {
  const namespace = accountNamespace(accountId)
  requireUnread({ id }, [
    ...[...world.list(Storage, namespace)]
      .filter(({ spec: { source }, status }) => source?.kind === 'backup' && source.id === id && isNew(status))
      .map(({ metadata }) => `storage ${metadata.name}`),
    ...[...world.list(CustomImage, namespace)]
      .filter((image) => isReading(image, { backupId: id }))
      .map(({ metadata }) => `custom image ${metadata.name}`),
  ])
}
const isNew = (status: { readonly state?: string | undefined } | undefined): boolean =>
  (status?.state ?? 'creating') === 'creating'

export const backupChanges = changesOf(Backup, {
  name: 'backup',
  title: 'backup',
  finalizedWhen: 'nothing of the backup is left in its store',
  factsOf: backupFactsOf,
  reads: [Storage, Zone, CustomImage],
  readable({ title, expiresAt }) {
    requireReadable('title', Printable, title)
    if (expiresAt !== undefined && Number.isNaN(Date.parse(expiresAt)))
      throw badField('expiresAt', 'must be an instant such as 2027-01-01T00:00:00Z')
  },
  create: {
    name: 'create',
    operation: 'storage.backup',
    audit: { action: 'storage.backup', idOf: ({ storageId }) => storageId },
    needs: 'standing',
    allow({ accountId, spec: { copyOf, kind, storageId } }, world) {
      if (copyOf !== undefined) throw forbidden('Copies are made by the platform only, for storages that ask for them.')
      if (kind !== 'manual') throw forbidden('Scheduled backups are made by the platform only.')
      // One that kubectl names may be created later.
      const storage = world.find(Storage, { namespace: accountNamespace(accountId), name: storageId })
      if (storage !== undefined) requireBackupZone(world, storage.spec.zone)
    },
    async claim(tx, { spec: { storageId, expiresAt }, ...target }, { caches, clock, storage: judged }) {
      if (expiresAt !== undefined && new Date(expiresAt) <= clock.now())
        throw badField('expiresAt', 'must be in the future')
      const key = { namespace: accountNamespace(target.accountId), name: storageId }
      const storage = judged ?? worldOf(caches).find(Storage, key)
      const sizeGibibytes = storage === undefined ? 0 : diskGibibytesOf(storage)
      await claimBackup(tx, { ...backupOf(target), sizeGibibytes })
    },
    release: (tx, target) => releaseBackup(tx, backupOf(target)),
    stanza: ({ spec: { storageId } }) => ({ arguments: carriedBy('storage.backup', storageId) }),
    detail: (_spec, id) => ({ backup_id: id }),
    by: { route: routes.createBackup },
  },
  changes: {
    /** The platform writes it when it is absent. */
    place: {
      sets: ['zone'],
      action: 'update',
      allow({ before }) {
        if (before?.zone !== undefined) throw badField('zone', 'cannot be changed')
      },
    },
    describe: { sets: ['title', 'expiresAt'], action: 'update' },
  },
  remove: {
    name: 'delete',
    operation: 'backup.delete',
    allow({ facts, ...target }, world) {
      requireDeletable(facts)
      requireUnreadBackup(world, target)
    },
    by: { route: routes.deleteBackup },
  },
})
