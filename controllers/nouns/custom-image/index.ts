/** The custom image controller: what it reads, and its effects in PostgreSQL. `plan.ts` decides. */
import { customImageChanges } from '../../../changes/custom-image.ts'
import {
  claimCustomImage,
  findCustomImageClaim,
  recordCustomImageSize,
  releaseCustomImage,
} from '../../../db/custom-image/index.ts'
import { defined } from '../../../domain/defined.ts'
import { keyOf, type KubeObject, Secret } from '../../../kit/kube/object.ts'
import { watch } from '../../../kit/reconcile/reconciler.ts'
import { Backup, type BackupSpec, type BackupStatus, objectStorageZoneOf } from '../../../resources/backup/index.ts'
import { Template, Zone } from '../../../resources/catalog/index.ts'
import { CustomImage, type CustomImageSpec, type CustomImageStatus } from '../../../resources/custom-image/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Image, nodeNamespace, nodeOf, NodeReport, Volume } from '../../../resources/instance/index.ts'
import { accountOfNamespace } from '../../../resources/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { Server } from '../../../resources/server/index.ts'
import { Snapshot, type SnapshotSpec, type SnapshotStatus } from '../../../resources/snapshot/index.ts'
import { diskGibibytesOf, Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { auditEffect } from '../../kit/audit.ts'
import { type BackupAccess, backupKeyKey, shareBackupKey } from '../../kit/backup-key.ts'
import { creationsFrom } from '../../kit/being-made.ts'
import { reachableNodes } from '../../kit/reachable-nodes.ts'
import { backupHosts, objectBackupHosts } from '../../kit/backup-hosts.ts'
import { intentOf } from '../../kit/changes.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { requireNewest } from '../../kit/newest.ts'
import { findEditor, requesterOf } from '../../kit/operation/direct-edit.ts'
import type { Parts } from '../../kit/parts.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { shareKey } from '../../kit/shared-key.ts'
import { requireStandingOfEdit } from '../../kit/standing.ts'
import { editsOf, newRequests } from '../../kit/synced.ts'
import type { CustomImageEffects, CustomImageObject, DiskSource, ImageObject, Observed } from './observed.ts'
import { CLAIMED, detectEdit, isLeaving, plan } from './plan.ts'

const IMAGE_INDEX = 'custom-image'
const SOURCE_INDEX = 'custom-image-source'
const VOLUMES_OF = 'volumes of an imaged storage'

export const customImageController = controller<CustomImageEffects>()({
  name: 'custom-image',
  resource: CustomImage,
  sharding: 'by-zone',
  finalizer: finalizerOf(CustomImage),
  intent: intentOf(customImageChanges),
  plan,
  reads: [Node, NodeReport, Zone, Template, Server, Storage, Snapshot, Backup, Volume],
  writes: [Image, CustomImage, Secret],
  open(parts: Parts & BackupAccess) {
    const images = parts.caches.of(CustomImage)
    images.addIndex(SOURCE_INDEX, ({ metadata: { namespace }, spec: { source } }) => [
      ...(source.storageId === undefined ? [] : [`${namespace}/storage/${source.storageId}`]),
      ...(source.snapshotId === undefined ? [] : [`${namespace}/snapshot/${source.snapshotId}`]),
      ...(source.backupId === undefined ? [] : [`${namespace}/backup/${source.backupId}`]),
      ...(source.imageId === undefined ? [] : [`${namespace}/image/${source.imageId}`]),
    ])
    parts.caches.of(Volume).addIndex(VOLUMES_OF, ({ spec }) => [spec.storage.uid])
    parts.caches.of(Image).addIndex(IMAGE_INDEX, ({ spec }) => [spec.image.uid])
    return {
      watches: [
        watch(
          Image,
          ({
            spec: {
              image: { namespace, name },
            },
          }: ImageObject) =>
            namespace === '' // an Image of a template
              ? []
              : [{ namespace, name }, ...images.by(SOURCE_INDEX, `${namespace}/image/${name}`).map(keyOf)],
        ),
        watch(Node, ({ spec: { zone } }) =>
          images
            .list()
            .filter(({ spec }) => spec.zone === zone)
            .map(keyOf),
        ),
        watch(Zone, () => []),
        watch(Template, () => []),
        watch(Server, () => []),
        watch(Volume, () => []),
        watch(Storage, ({ metadata: { namespace, name } }) =>
          images.by(SOURCE_INDEX, `${namespace}/storage/${name}`).map(keyOf),
        ),
        watch(Snapshot, ({ metadata: { namespace, name } }) =>
          images.by(SOURCE_INDEX, `${namespace}/snapshot/${name}`).map(keyOf),
        ),
        watch(Backup, ({ metadata: { namespace, name } }) =>
          images.by(SOURCE_INDEX, `${namespace}/backup/${name}`).map(keyOf),
        ),
        watch(NodeReport, () => []),
        // Its original serves it, and its copies wait for that.
        watch(CustomImage, ({ metadata: { namespace = '', name }, spec: { source } }) => [
          ...(source.imageId === undefined ? [] : [{ namespace, name: source.imageId }]),
          ...images.by(SOURCE_INDEX, `${namespace}/image/${name}`).map(keyOf),
        ]),
      ],
      observe: (image) => observe(parts, image),
      effects: effectsOf(parts),
    }
  },
})

/** Where its data comes from, when that is a storage or another image. A cache may be behind: nothing is abandoned
 *  because it is missing in a cache. */
async function sourceOf(
  { caches, store }: Pick<Parts, 'caches' | 'store'>,
  { metadata: { namespace = '' }, spec: { zone, source } }: CustomImageObject,
): Promise<Pick<Observed, 'disk' | 'origin' | 'sourceGibibytes'>> {
  if (source.storageId !== undefined) {
    const key = { namespace, name: source.storageId }
    const storage = caches.of(Storage).get(key) ?? (await store.get(Storage, key))
    return {
      disk: diskOf(caches, storage, { zone, id: source.storageId }),
      sourceGibibytes: storage && diskGibibytesOf(storage),
    }
  }
  if (source.snapshotId !== undefined) {
    const key = { namespace, name: source.snapshotId }
    const snapshot = caches.of(Snapshot).get(key) ?? (await store.get(Snapshot, key))
    return {
      disk: snapshotOf(caches, snapshot, { zone, id: source.snapshotId }),
      sourceGibibytes: snapshot?.status?.sizeGibibytes,
    }
  }
  if (source.backupId !== undefined) {
    const key = { namespace, name: source.backupId }
    const backup = caches.of(Backup).get(key) ?? (await store.get(Backup, key))
    return {
      disk: backupOf(caches, backup, { zone, id: source.backupId }),
      sourceGibibytes: backup?.status?.sizeGibibytes,
    }
  }
  if (source.imageId === undefined) return {}
  const key = { namespace, name: source.imageId }
  const other = caches.of(CustomImage).get(key) ?? (await store.get(CustomImage, key))
  if (other === undefined) return {}
  return {
    sourceGibibytes: other.status?.sizeGibibytes,
    origin: {
      images: caches.of(Image).by(IMAGE_INDEX, other.metadata.uid ?? ''),
      nodes: reachableNodes(caches, other.spec.zone),
    },
  }
}

function diskOf(
  caches: Parts['caches'],
  storage: KubeObject<StorageSpec, StorageStatus> | undefined,
  { zone, id }: SourceId,
): DiskSource {
  if (storage === undefined || storage.metadata.deletionTimestamp !== undefined)
    return { is: 'refused', why: `There is no storage ${id}.` }
  if (storage.spec.zone !== zone) return { is: 'refused', why: `The storage is in zone ${storage.spec.zone}.` }
  const volume = storage.metadata.uid ?? ''
  const node = storage.status?.nodeName
  const isHeld =
    node !== undefined && caches.of(Volume).get({ namespace: nodeNamespace(node), name: volume }) !== undefined
  if (storage.status?.state !== 'online' || !isHeld) return { is: 'waiting', for: 'the storage to be online' }
  return { is: 'known', node, content: { volume } }
}

interface SourceId {
  readonly zone: string
  readonly id: string
}

/** The node that holds the disk reads the snapshot, also while a guest uses the disk. */
function snapshotOf(
  caches: Parts['caches'],
  snapshot: KubeObject<SnapshotSpec, SnapshotStatus> | undefined,
  { zone, id }: SourceId,
): DiskSource {
  if (snapshot === undefined || snapshot.metadata.deletionTimestamp !== undefined || snapshot.status?.state === 'error')
    return { is: 'refused', why: `There is no snapshot ${id} that can be read.` }
  const {
    metadata: { namespace = '', uid = '' },
    spec: { storageId },
    status,
  } = snapshot
  if (status?.zone !== undefined && status.zone !== zone)
    return { is: 'refused', why: `The snapshot is in zone ${status.zone}.` }
  const storage = caches.of(Storage).get({ namespace, name: storageId })
  const holder = caches
    .of(Volume)
    .by(VOLUMES_OF, storage?.metadata.uid ?? '')
    .find((one) => one.status?.snapshots?.some(({ name }) => name === uid) === true)
  if (status?.state !== 'online' || holder === undefined)
    return { is: 'waiting', for: 'the snapshot to be in the disk of its storage' }
  const { pool } = holder.spec
  const origin = holder.status?.origin ?? holder.spec.origin
  return {
    is: 'known',
    node: nodeOf(holder),
    content: {
      snapshot: { name: uid, volume: holder.metadata.name, ...defined({ pool }) },
      ...defined({ origin }),
    },
  }
}

/** A node that reaches the store of the zone reads the backup. */
function backupOf(
  caches: Parts['caches'],
  backup: KubeObject<BackupSpec, BackupStatus> | undefined,
  { zone, id }: SourceId,
): DiskSource {
  const { namespace = '', deletionTimestamp } = backup?.metadata ?? {}
  const { state, sizeGibibytes, origin } = backup?.status ?? {}
  const accountId = accountOfNamespace(namespace)
  if (accountId === undefined || deletionTimestamp !== undefined || state === 'error')
    return { is: 'refused', why: `There is no backup ${id} that is complete.` }
  if (backup?.status?.zone !== undefined && backup.status.zone !== zone)
    return { is: 'refused', why: `The backup is in zone ${backup.status.zone}.` }
  if (state !== 'online' || sizeGibibytes === undefined) return { is: 'waiting', for: 'the backup to be complete' }
  const objectStorageZone = backup === undefined ? undefined : objectStorageZoneOf(backup)
  const [node] = (objectStorageZone === undefined ? backupHosts : objectBackupHosts)(caches, zone)
  if (node === undefined) return { is: 'waiting', for: 'a node that reaches the backups of the zone' }
  const secretName = backupKeyKey(accountId, node).name
  return {
    is: 'known',
    node,
    content: {
      backup: {
        name: id,
        sizeGibibytes,
        accountId,
        secretName,
        ...defined({ objectStorageZone }),
      },
      ...defined({ origin }),
    },
  }
}

/** What is being created from the image, and its copies. */
async function usersOf(store: Parts['store'], { metadata: { namespace = '', name } }: CustomImageObject) {
  const [creations, copies] = await Promise.all([
    creationsFrom(store, { kind: 'image', id: name, namespace }),
    store.list(CustomImage, { namespace }),
  ])
  return [
    ...creations,
    ...copies.items
      .filter((copy) => copy.spec.source.imageId === name && isBeingCopied(copy))
      .map(({ metadata }) => `custom image ${metadata.name}`),
  ]
}

const isBeingCopied = (copy: CustomImageObject): boolean =>
  !isLeaving(copy) && (copy.status?.state ?? 'creating') === 'creating'

async function observe({ caches, db, store }: Parts, image: CustomImageObject): Promise<Observed> {
  const {
    metadata: { namespace = '', name: imageId, uid = '' },
    spec: { zone },
  } = image
  const held = caches.of(Image).by(IMAGE_INDEX, uid)
  const templateName = held.find(({ status }) => status?.origin !== undefined)?.status?.origin?.name
  const accountId = await findAccountOf(db, namespace)
  const claim =
    accountId === undefined ? undefined : await orUnavailable(findCustomImageClaim(db, { accountId, imageId }))
  const [requests, edit] = [await newRequests(db, image), detectEdit(image)]
  return {
    accountId,
    isClaimed: claim !== undefined,
    claimedGibibytes: claim?.sizeGibibytes ?? 0,
    isZoneKnown: caches.of(Zone).get({ name: zone }) !== undefined,
    nodes: reachableNodes(caches, zone),
    images: held,
    ...(await sourceOf({ caches, store }, image)),
    isCopied: caches.of(CustomImage).by(SOURCE_INDEX, `${namespace}/image/${imageId}`).some(isBeingCopied),
    minMemoryMebibytes:
      templateName === undefined ? undefined : caches.of(Template).get({ name: templateName })?.spec.minMemoryMebibytes,
    // An API server that is not upgraded yet records creations and deletions too, in the words of the audit log.
    edits: editsOf(requests).filter(({ action }) => action === 'custom_image.update'),
    ...(isLeaving(image) ? { users: await usersOf(store, image) } : {}),
    editor:
      edit === undefined ? '' : (requesterOf(requests, edit) ?? (await findEditor(store, CustomImage, image, ''))),
  }
}

const effectsOf = (parts: Parts & BackupAccess): EffectsOn<CustomImageEffects, CustomImageSpec, CustomImageStatus> => ({
  // A claim for an image that is deleted meanwhile would never be released.
  claim: withRefusalCondition(CLAIMED, async (id, image) => {
    await requireNewest(parts.store, CustomImage, image)
    await requireStandingOfEdit(parts, image, id.accountId)
    await orUnavailable(parts.db.transaction().execute((tx) => claimCustomImage(tx, id)))
    return grantedCondition(CLAIMED)
  }),
  async recordSize(claim) {
    await orUnavailable(parts.db.transaction().execute((tx) => recordCustomImageSize(tx, claim)))
    return undefined
  },
  async shareKey({ keys }, image) {
    await requireNewest(parts.store, CustomImage, image)
    await shareKey(parts, keys)
    return undefined
  },
  async shareBackupKey(input, image) {
    await requireNewest(parts.store, CustomImage, image)
    await shareBackupKey(parts, input)
    return undefined
  },
  async giveBack(id) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseCustomImage(tx, id)))
    return undefined
  },
  audit: auditEffect(parts),
})
