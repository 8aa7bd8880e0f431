/** Snapshots that people create and delete past the API must satisfy its rules. Everything is checked and nothing is
 *  claimed: the controller claims, once the object exists. */
import { requireDeletableSnapshot, requireSnapshotTier } from '../../../domain/snapshot/rules.ts'
import { forbidden } from '../../../domain/problem.ts'
import { claimSnapshot } from '../../../db/snapshot/index.ts'
import { CustomImage } from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Server } from '../../../resources/server/index.ts'
import { Snapshot, snapshotFactsOf, type SnapshotSpec, type SnapshotStatus } from '../../../resources/snapshot/index.ts'
import { diskGibibytesOf, Storage } from '../../../resources/storage/index.ts'
import { admitDeletion, requireAccount, requireStanding } from '../../kit/admission/account-objects.ts'
import type { AdmissionParts, AdmissionRules, AdmittedChange } from '../../kit/admission/kind.ts'
import { denyPlatformFields, type PlatformFields } from '../../kit/admission/platform-fields.ts'
import { requireLabels, requirePrintableTitle } from '../../kit/admission/readable-fields.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'
import { heldOf } from '../../../changes/kit/source.ts'
import { isCloned, requireStayingWith } from './rules.ts'
import type { SnapshotObject } from './objects.ts'

const PLATFORM: PlatformFields = {
  noun: 'snapshot',
  finalizer: finalizerOf(Snapshot),
  goesWhen: 'nothing of the snapshot is left in the disk of its storage',
}

/** Throws the Problem that the API would answer. The storage may be created later: the snapshot waits for it. */
async function validateCreation(parts: AdmissionParts, snapshot: SnapshotObject): Promise<readonly AdmittedChange[]> {
  const {
    metadata: { name: snapshotId, namespace = '' },
    spec,
  } = snapshot
  const accountId = await requireAccount(parts, snapshot, 'snapshots')
  denyPlatformFields(snapshot, undefined, PLATFORM)
  if (spec.restoredBackupId !== undefined || spec.expiresAt !== undefined)
    throw forbidden('spec.restoredBackupId and spec.expiresAt are written by the platform only.')
  requirePrintableTitle(spec)
  requireLabels(spec)
  await requireStanding(parts, accountId)
  const storage = parts.caches.of(Storage).get({ namespace, name: spec.storageId })
  if (storage?.status?.state === 'online') {
    requireSnapshotTier(storage.spec.tier)
    requireStayingWith(parts.caches.of(Server).get({ namespace, name: storage.spec.serverId ?? '' }), storage)
    await rehearse(parts, (tx) =>
      claimSnapshot(tx, { accountId, snapshotId, sizeGibibytes: diskGibibytesOf(storage), ...heldOf(storage) }),
    )
  }
  return [{ action: 'snapshot.create', changes: [] }]
}

export const snapshotAdmission: AdmissionRules<SnapshotSpec, SnapshotStatus> = {
  create: validateCreation,
  /** The kind itself refuses every change of the fields that people write. */
  update(_parts, after, before) {
    denyPlatformFields(after, before, PLATFORM)
    return []
  },
  delete: admitDeletion('snapshot.delete', (before, { caches }) => {
    const { namespace = '', name } = before.metadata
    requireDeletableSnapshot(snapshotFactsOf(storedOf(before)), isCloned(caches, namespace, name))
  }),
  reads: [Server, Storage, CustomImage],
}
