/** The effects of the storage controller in PostgreSQL and on the keys of copies, by name. Each does nothing when it
 *  has happened already. */
import { storageChanges } from '../../../changes/storage.ts'
import { carriedBy } from '../../../resources/operation/index.ts'
import {
  deleteStorageClaim,
  detachStorage,
  findStorageClaim,
  holdSize,
  keepStorage,
  landStorage,
  landStorageMove,
  releaseSource,
  releaseStorage,
  releaseStorageMove,
  reserveStorageMove,
} from '../../../db/storage/index.ts'
import type { Database } from '../../../db/kit/open.ts'
import { isAlreadyExists } from '../../../kit/kube/store.ts'
import { Backup } from '../../../resources/backup/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { nodeNamespace, Volume } from '../../../resources/instance/index.ts'
import { ACCOUNT_LABEL } from '../../../resources/kit/labels.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { auditEffect } from '../../kit/audit.ts'
import { type BackupAccess, shareBackupKey } from '../../kit/backup-key.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectOn, EffectsOn } from '../../kit/effects.ts'
import { requireNewest, requireStaying } from '../../kit/newest.ts'
import { wasBegun } from '../../kit/operation/intent.ts'
import { derivedStanza } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'
import { claimEffect } from '../../kit/changes.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { serverOperationEffect } from '../../kit/platform-operation.ts'
import { shareKey } from '../../kit/shared-key.ts'
import type { StorageEffects } from './actions.ts'
import { ATTACHED, KEY_SHARED, RESERVED, RESIZED } from './conditions.ts'

type Transact = Parameters<ReturnType<Database['transaction']>['execute']>[0]

export function storageEffects(parts: Parts & BackupAccess): EffectsOn<StorageEffects, StorageSpec, StorageStatus> {
  const { db, store } = parts
  const transact = (work: Transact) => orUnavailable(db.transaction().execute(work))
  /** For the newest object only: a stale one may have been deleted or detached since. */
  const granting = <Input>(
    condition: string,
    work: (tx: Parameters<Transact>[0], input: Input) => Promise<unknown>,
  ): EffectOn<Input, StorageSpec, StorageStatus> =>
    withRefusalCondition(condition, async (input, storage) => {
      await requireNewest(store, Storage, storage)
      await transact((tx) => work(tx, input))
      return grantedCondition(condition)
    })
  const doing =
    <Input>(
      work: (tx: Parameters<Transact>[0], input: Input) => Promise<unknown>,
    ): EffectOn<Input, StorageSpec, StorageStatus> =>
    async (input, storage) => {
      await requireNewest(store, Storage, storage)
      await transact((tx) => work(tx, input))
      return undefined
    }
  /** After these, the volume on that node is the only one that keeps the data. */
  const landing =
    <Input extends { readonly node: string }>(
      effect: EffectOn<Input, StorageSpec, StorageStatus>,
    ): EffectOn<Input, StorageSpec, StorageStatus> =>
    async (input, storage) => {
      const name = storage.metadata.uid ?? ''
      await requireStaying(store, Volume, { namespace: nodeNamespace(input.node), name })
      return effect(input, storage)
    }
  return {
    claim: claimEffect(parts, storageChanges),
    land: landing(granting(ATTACHED, landStorage)),
    release: granting(ATTACHED, releaseStorage),
    keep: doing(keepStorage),
    detach: doing(detachStorage),
    fit: granting(RESIZED, (tx, { size, ...id }) => holdSize(tx, id, size)),
    giveBack: giveBackEffect(parts),
    reserveMove: granting(RESERVED, reserveStorageMove),
    landMove: landing(doing(landStorageMove)),
    releaseMove: doing(releaseStorageMove),
    order: serverOperationEffect(parts),
    backUp: backUpEffect(parts),
    shareBackupKey: withRefusalCondition(KEY_SHARED, async (input, storage) => {
      await requireNewest(store, Storage, storage)
      await shareBackupKey(parts, input)
      return grantedCondition(KEY_SHARED)
    }),
    releaseSource: doing(releaseSource),
    async shareKey({ keys }, storage) {
      await requireNewest(store, Storage, storage)
      await shareKey(parts, keys)
      return undefined
    },
    audit: auditEffect(parts),
  }
}

const SCHEDULE_ACTOR = 'system:backup_schedule'

/** For the newest object only. Does nothing when the backup exists, or existed: a process may have died between its
 *  creation and the storage's record of it, and it may have been deleted since. */
const backUpEffect =
  ({ store, db, clock }: Parts): EffectOn<StorageEffects['backUp'], StorageSpec, StorageStatus> =>
  async ({ backup, accountId, zone, expiresAt }, storage) => {
    await requireNewest(store, Storage, storage)
    const { namespace = '', name: storageId } = storage.metadata
    const operation = derivedStanza('storage.backup', {
      seed: backup,
      actor: SCHEDULE_ACTOR,
      now: clock.now(),
      arguments: carriedBy('storage.backup', storageId),
    })
    if (await wasBegun({ db, store }, { accountId, operationId: operation.id })) return undefined
    await store
      .create(Backup, {
        metadata: {
          namespace,
          name: backup,
          labels: { [ACCOUNT_LABEL]: accountId },
          finalizers: [finalizerOf(Backup)],
        },
        spec: {
          storageId,
          zone,
          title: '',
          kind: 'scheduled',
          expiresAt,
          operation,
        },
      })
      .catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error
      })
    return undefined
  }

/** Does nothing when nothing is claimed. */
const giveBackEffect =
  ({ store, db }: Parts): EffectOn<StorageEffects['giveBack'], StorageSpec, StorageStatus> =>
  async (id, storage) => {
    await requireNewest(store, Storage, storage)
    if ((await orUnavailable(findStorageClaim(db, id))) === undefined) return undefined
    await orUnavailable(db.transaction().execute((tx) => deleteStorageClaim(tx, id)))
    return undefined
  }
