/** The snapshot controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { snapshotChanges } from '../../../changes/snapshot.ts'
import { wasRemovalOrdered } from '../../../db/removal/index.ts'
import { accountExists } from '../../../db/server/index.ts'
import { claimSnapshot, holdForSafety, releaseSnapshot } from '../../../db/snapshot/index.ts'
import { hasHold, releaseHold } from '../../../db/storage-hold/index.ts'
import { conflict } from '../../../domain/problem.ts'
import { requireStaying } from '../../../domain/snapshot/rules.ts'
import { keyOf } from '../../../kit/kube/object.ts'
import { type Watch, watch } from '../../../kit/reconcile/reconciler.ts'
import { Backup, readsDisk } from '../../../resources/backup/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Volume, type VolumeSpec, type VolumeStatus } from '../../../resources/instance/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { isForSafety, Snapshot, type SnapshotSpec, type SnapshotStatus } from '../../../resources/snapshot/index.ts'
import { Storage } from '../../../resources/storage/index.ts'
import { auditEffect } from '../../kit/audit.ts'
import { intentOf } from '../../kit/changes.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectOn, EffectsOn } from '../../kit/effects.ts'
import { requireNewest } from '../../kit/newest.ts'
import { activeOperation } from '../../kit/operation/stanza.ts'
import type { Parts } from '../../kit/parts.ts'
import { readPointEdits } from '../../kit/point.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { requireStandingOfEdit } from '../../kit/standing.ts'
import { CLAIMED, holderOf, type SnapshotEffects } from './actions.ts'
import type { Observed, SnapshotObject } from './observed.ts'
import { KINDS, plan } from './plan.ts'

const OF_STORAGE = 'snapshots of a storage'
const VOLUMES_OF = 'volumes of a snapshotted storage'
const BACKUPS_OF = 'backups of a snapshotted storage'
const MADE_FROM = 'storages made from a snapshot'

export const snapshotController = controller<SnapshotEffects>()({
  name: 'snapshot',
  resource: Snapshot,
  sharding: 'common',
  finalizer: finalizerOf(Snapshot),
  intent: intentOf(snapshotChanges),
  plan,
  reads: [Backup, Server, Storage, Volume, Zone],
  writes: [Snapshot],
  open: (parts: Parts) => ({
    watches: watches(parts),
    observe: (snapshot) => observe(parts, snapshot),
    effects: snapshotEffects(parts),
  }),
})

function watches({ caches }: Parts): readonly Watch[] {
  const snapshots = caches.of(Snapshot)
  snapshots.addIndex(OF_STORAGE, ({ metadata, spec }) => [`${metadata.namespace}/${spec.storageId}`])
  caches.of(Volume).addIndex(VOLUMES_OF, ({ spec }) => [spec.storage.uid])
  caches.of(Backup).addIndex(BACKUPS_OF, ({ metadata, spec }) => [`${metadata.namespace}/${spec.storageId}`])
  caches
    .of(Storage)
    .addIndex(MADE_FROM, ({ metadata, spec }) =>
      spec.source?.kind === 'snapshot' ? [`${metadata.namespace}/${spec.source.id}`] : [],
    )
  const active = (namespace: string | undefined, storageId: string) =>
    snapshots
      .by(OF_STORAGE, `${namespace}/${storageId}`)
      .filter(({ spec, status }) => status?.state !== 'online' || isForSafety(spec))
      .map(keyOf)
  /** Snapshots whose size, as reported by the host, differs from their status. */
  const measuredAnew = ({ namespace, name }: VolumeSpec['storage'], status: VolumeStatus | undefined) =>
    (status?.snapshots ?? []).some(({ usedBytes }) => usedBytes !== undefined)
      ? snapshots
          .by(OF_STORAGE, `${namespace}/${name}`)
          .filter(({ metadata, status: shown }) => {
            const report = status?.snapshots?.find((each) => each.name === metadata.uid)
            return report?.usedBytes !== undefined && report.usedBytes !== shown?.usedBytes
          })
          .map(keyOf)
      : []
  return [
    watch(Volume, ({ spec: { storage }, status }) => [
      ...active(storage.namespace, storage.name),
      ...measuredAnew(storage, status),
    ]),
    watch(Storage, ({ metadata: { namespace = '', name }, spec: { source } }) => [
      ...active(namespace, name),
      ...(source?.kind === 'snapshot' ? [{ namespace, name: source.id }] : []),
    ]),
    watch(Backup, ({ metadata, spec }) => active(metadata.namespace, spec.storageId)),
    watch(Server, () => []),
    watch(Zone, () => []),
  ]
}

async function observe({ caches, db, store }: Parts, snapshot: SnapshotObject): Promise<Observed> {
  const { namespace = '', name } = snapshot.metadata
  const account = accountOfNamespace(namespace)
  const accountId = account !== undefined && (await orUnavailable(accountExists(db, account))) ? account : undefined
  const storage = caches.of(Storage).get({ namespace, name: snapshot.spec.storageId })
  const { isBoot = false, serverId = '' } = storage?.spec ?? {}
  return {
    accountId,
    storage,
    isServerLeaving:
      isBoot && caches.of(Server).get({ namespace, name: serverId })?.metadata.deletionTimestamp !== undefined,
    holdsForNothing:
      snapshot.status?.state === 'error' &&
      accountId !== undefined &&
      (await orUnavailable(hasHold(db, { accountId, holder: holderOf(snapshot) }))),
    region: caches.of(Zone).get({ name: storage?.spec.zone ?? '' })?.spec.region,
    volumes: caches.of(Volume).by(VOLUMES_OF, storage?.metadata.uid ?? ''),
    runningBackup: caches
      .of(Backup)
      .by(BACKUPS_OF, `${namespace}/${snapshot.spec.storageId}`)
      .find((backup) => activeOperation(backup)?.kind === 'storage.backup' && readsDisk(backup))?.metadata.name,
    isCloned: caches
      .of(Storage)
      .by(MADE_FROM, `${namespace}/${name}`)
      .some(
        ({ metadata, status }) =>
          metadata.deletionTimestamp === undefined && (status?.state ?? 'creating') === 'creating',
      ),
    ...(await readPointEdits({ db, store }, Snapshot, snapshot, KINDS)),
  }
}

/** A deletion of the disk from before the hold shows in the store by now, but maybe not in caches. Throws 409. */
async function requireStays(
  store: Parts['store'],
  namespace: string,
  { storageId, bootServerId }: SnapshotEffects['claim'],
): Promise<void> {
  const storage = await store.get(Storage, { namespace, name: storageId })
  const isLeaving = storage?.metadata.deletionTimestamp !== undefined
  if (storage === undefined || isLeaving || activeOperation(storage)?.kind === 'storage.delete')
    throw conflict('state_not_allowed', 'The storage is being deleted.', {
      resource: { type: 'storage', id: storageId },
    })
  if (bootServerId === undefined) return
  const server = await store.get(Server, { namespace, name: bootServerId })
  requireStaying(
    storageId,
    server && {
      id: bootServerId,
      isDeleting: server.metadata.deletionTimestamp !== undefined,
      activeOperation: activeOperation(server),
      bootStorageId: server.spec.bootStorageId,
    },
  )
}

const claiming = (
  parts: Parts,
  claim: typeof claimSnapshot,
): EffectOn<SnapshotEffects['claim'], SnapshotSpec, SnapshotStatus> =>
  withRefusalCondition(CLAIMED, async (demand, snapshot) => {
    const { store, db } = parts
    await requireNewest(store, Snapshot, snapshot)
    await requireStandingOfEdit(parts, snapshot, demand.accountId)
    await orUnavailable(db.transaction().execute((tx) => claim(tx, demand)))
    // A deletion meanwhile has released only what was claimed by then. If another snapshot has the name now, it takes
    // this claim over. One that is missing without an order keeps its claim.
    if ((await store.get(Snapshot, keyOf(snapshot))) === undefined) {
      if (await orUnavailable(wasRemovalOrdered(db, snapshot.metadata.uid ?? '')))
        await orUnavailable(db.transaction().execute((tx) => releaseSnapshot(tx, demand)))
      return undefined
    }
    await requireStays(store, snapshot.metadata.namespace ?? '', demand)
    return grantedCondition(CLAIMED)
  })

const snapshotEffects = (parts: Parts): EffectsOn<SnapshotEffects, SnapshotSpec, SnapshotStatus> => ({
  claim: claiming(parts, claimSnapshot),
  holdForSafety: claiming(parts, holdForSafety),
  async releaseHold(hold) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseHold(tx, hold)))
    return undefined
  },
  async release(id) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseSnapshot(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})
