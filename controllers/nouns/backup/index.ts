/** The backup controller: its watches, what it reads, and its effects. `plan.ts` decides. */
import { backupChanges } from '../../../changes/backup.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { claimBackup, releaseBackup } from '../../../db/backup/index.ts'
import { listOwnerMails } from '../../../db/account/index.ts'
import { listToldZones } from '../../../db/internal-tenant/index.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { keyOf, type KubeObject, Secret } from '../../../kit/kube/object.ts'
import { type Watch, watch } from '../../../kit/reconcile/reconciler.ts'
import { Backup, type BackupSpec, type BackupStatus } from '../../../resources/backup/index.ts'
import { BackupJob } from '../../../resources/backup-job/index.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { finalizerOf } from '../../../resources/kit/define.ts'
import { Instance, nodeOf, NodeReport, Volume } from '../../../resources/instance/index.ts'
import { Node } from '../../../resources/node/index.ts'
import { Snapshot } from '../../../resources/snapshot/index.ts'
import { diskGibibytesOf, Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { findAccountOf } from '../../kit/account.ts'
import { auditEffect } from '../../kit/audit.ts'
import { type BackupAccess, shareBackupKey } from '../../kit/backup-key.ts'
import { backupHosts, isObjectStorageChosen, objectBackupHosts } from '../../kit/backup-hosts.ts'
import { intentOf } from '../../kit/changes.ts'
import { controller } from '../../kit/controller.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { EffectsOn } from '../../kit/effects.ts'
import { hasObjectStorage, openInternalTenant } from '../../kit/internal-tenant.ts'
import { requireNewest } from '../../kit/newest.ts'
import type { Parts } from '../../kit/parts.ts'
import { readPointEdits } from '../../kit/point.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { grantedCondition, withRefusalCondition } from '../../kit/refusal.ts'
import { hasEnded } from '../server/index.ts'
import { requireStandingOfEdit } from '../../kit/standing.ts'
import { type BackupEffects, CLAIMED, KEY_SHARED, PLACES_OPENED } from './actions.ts'
import { copyName } from './copy.ts'
import { safetyName } from './before-restore.ts'
import { type BackupObject, KINDS, type Observed, plan } from './plan.ts'

export const backupController = controller<BackupEffects>()({
  name: 'backup',
  resource: Backup,
  sharding: 'common',
  finalizer: finalizerOf(Backup),
  intent: intentOf(backupChanges),
  plan,
  reads: [Storage, Volume, Instance, Node, NodeReport, Zone],
  writes: [Backup, BackupJob, Secret, Snapshot],
  open: (parts: Parts & BackupAccess) => ({
    watches: watches(parts),
    observe: (backup) => observe(parts, backup),
    effects: backupEffects(parts),
  }),
})

function watches({ caches }: Parts): readonly Watch[] {
  const backups = caches.of(Backup)
  caches.of(BackupJob).addIndex('backup', ({ spec }) => [spec.backup.uid])
  caches.of(Volume).addIndex('backed-up-storage', ({ spec }) => [spec.storage.uid])
  caches.of(Instance).addIndex('backed-up-volume', ({ spec }) => spec.disks.map(({ volume }) => volume))
  backups.addIndex('of-storage', ({ metadata, spec }) => [`${metadata.namespace}/${spec.storageId}`])
  caches
    .of(Storage)
    .addIndex('made-from-backup', ({ metadata, spec: { source } }) =>
      source?.kind === 'backup' ? [`${metadata.namespace}/${source.id}`] : [],
    )
  const active = (namespace: string | undefined, storageId: string) =>
    backups
      .by('of-storage', `${namespace}/${storageId}`)
      .filter(({ status }) => status?.state !== 'online' || status.operation?.status === 'running')
      .map(keyOf)
  return [
    // A backup waits for its copy.
    watch(Backup, ({ metadata: { namespace = '' }, spec: { copyOf } }) =>
      copyOf === undefined ? [] : [{ namespace, name: copyOf.name }],
    ),
    watch(BackupJob, ({ spec }) => [{ namespace: spec.backup.namespace, name: spec.backup.name }]),
    watch(Storage, ({ metadata: { namespace = '', name }, spec: { source } }) => [
      ...active(namespace, name),
      ...(source?.kind === 'backup' ? [{ namespace, name: source.id }] : []),
    ]),
    watch(Volume, ({ spec: { storage } }) => active(storage.namespace, storage.name)),
    watch(Snapshot, ({ metadata: { namespace = '' }, spec: { restoredBackupId } }) =>
      restoredBackupId === undefined ? [] : [{ namespace, name: restoredBackupId }],
    ),
    watch(Instance, () => []),
    watch(Node, () => []),
    watch(NodeReport, () => []),
    watch(Zone, () => []),
  ]
}

async function observe(parts: Parts & BackupAccess, backup: BackupObject): Promise<Observed> {
  const { caches, db } = parts
  const { namespace = '', name, uid = '' } = backup.metadata
  const { spec } = backup
  const accountId = await findAccountOf(db, namespace)
  const storage = caches.of(Storage).get({ namespace, name: spec.storageId })
  const zone = zoneOf(caches, backup)
  const isInObjectStorage = backup.status?.place === 'object-storage'
  const hosts = isInObjectStorage ? objectBackupHosts(caches, zone) : backupHosts(caches, zone)
  const volume = caches
    .of(Volume)
    .by('backed-up-storage', storage?.metadata.uid ?? '')
    .find(
      (each) =>
        each.status?.state === 'ready' &&
        each.metadata.deletionTimestamp === undefined &&
        each.spec.isRetained !== true &&
        hosts.includes(nodeOf(each)),
    )
  const disk = volume && { volume: volume.metadata.name, node: nodeOf(volume), origin: volume.status?.origin }
  // Each zone has its own store, independent of the others.
  const complete = caches
    .of(Backup)
    .inNamespace(namespace)
    .filter((each) => each.metadata.name !== name && each.status?.state === 'online' && zoneOf(caches, each) === zone)
  return {
    accountId,
    zone,
    region: zone === undefined ? undefined : caches.of(Zone).get({ name: zone })?.spec.region,
    sizeGibibytes: sizeOf(caches, backup, storage),
    hasStorage: storage !== undefined && storage.metadata.deletionTimestamp === undefined,
    hasLeftZone: storage !== undefined && storage.spec.zone !== zone,
    notedRestore: storage?.status?.restore?.operationId,
    safety: caches.of(Snapshot).get({ namespace, name: safetyName(spec.operation?.id ?? '') }),
    isKeepable: storage?.spec.tier !== 'local-nvme' && storage?.status?.restore?.wasBroken !== true,
    ...copiesOf(caches, backup, { zone, copyZone: storage?.spec.backupCopyZone }),
    readers: caches
      .of(Storage)
      .by('made-from-backup', `${namespace}/${name}`)
      .filter((each) => each.status?.state === 'creating' || each.status?.state === undefined)
      .map(({ metadata }) => metadata.name),
    disk,
    isDiskFree: caches
      .of(Instance)
      .by('backed-up-volume', disk?.volume ?? '')
      // A guest that crashed has ended as well.
      .every((instance) => instance.spec.power === 'stopped' && hasEnded(instance)),
    host: disk?.node ?? hosts[0],
    jobs: caches.of(BackupJob).by('backup', uid),
    siblings: complete
      .filter((each) => each.spec.storageId === spec.storageId)
      .sort((one, other) => ((one.status?.completedAt ?? '') < (other.status?.completedAt ?? '') ? 1 : -1)),
    complete,
    ...(hasObjectStorage(parts, zone ?? '') ? { isPlaceOpen: await placesOf(parts, accountId) } : {}),
    isObjectStorageUsed: (host) => hasObjectStorage(parts, zone ?? '') && isObjectStorageChosen(caches, host),
    ...(await readPointEdits(parts, Backup, backup, KINDS)),
  }
}

async function placesOf({ db }: Parts, owner: string | undefined): Promise<(zone: string) => boolean> {
  const zones = owner === undefined ? [] : await orUnavailable(listToldZones(db, { purpose: 'backups', owner }))
  return (zone) => zones.includes(zone)
}

const copiesOf = (
  caches: Parts['caches'],
  { metadata: { namespace = '', uid = '' }, spec: { copyOf } }: BackupObject,
  { zone, copyZone }: { readonly zone: string | undefined; readonly copyZone: string | undefined },
): Pick<Observed, 'copyZone' | 'copy' | 'original' | 'copyingHost'> =>
  copyOf === undefined
    ? {
        copyZone: copyZone === zone ? undefined : copyZone,
        copy: caches.of(Backup).get({ namespace, name: copyName(uid) }),
      }
    : copyingFrom(caches, caches.of(Backup).get({ namespace, name: copyOf.name }), { zone, from: copyOf.zone })

/** A copy is as large as its original, and any other backup as its storage. */
function sizeOf(
  caches: Parts['caches'],
  { metadata: { namespace = '' }, spec: { copyOf } }: BackupObject,
  storage: KubeObject<StorageSpec, StorageStatus> | undefined,
): number | undefined {
  if (copyOf !== undefined) return caches.of(Backup).get({ namespace, name: copyOf.name })?.status?.sizeGibibytes
  return storage && diskGibibytesOf(storage)
}

/** Every host that can use the object storage of its own zone reaches that of the others. */
const copyingFrom = (
  caches: Parts['caches'],
  original: BackupObject | undefined,
  { zone, from }: { readonly zone: string | undefined; readonly from: string },
): Pick<Observed, 'original' | 'copyingHost'> => ({
  original,
  copyingHost: (original?.status?.place === 'object-storage'
    ? objectBackupHosts(caches, zone)
    : backupHosts(caches, zone, from))[0],
})

/** Its storage may have moved to another zone since, and a name may have been reused. */
const zoneOf = (
  caches: Parts['caches'],
  { metadata: { namespace = '' }, spec, status }: BackupObject,
): string | undefined =>
  status?.zone ??
  (spec.copyOf === undefined ? undefined : spec.zone) ??
  caches.of(Storage).get({ namespace, name: spec.storageId })?.spec.zone ??
  spec.zone

const backupEffects = (parts: Parts & BackupAccess): EffectsOn<BackupEffects, BackupSpec, BackupStatus> => ({
  claim: withRefusalCondition(CLAIMED, async (id, backup) => {
    await requireNewest(parts.store, Backup, backup)
    await requireStandingOfEdit(parts, backup, id.accountId)
    await orUnavailable(parts.db.transaction().execute((tx) => claimBackup(tx, id)))
    return grantedCondition(CLAIMED)
  }),
  async release(id) {
    await orUnavailable(parts.db.transaction().execute((tx) => releaseBackup(tx, id)))
    return undefined
  },
  shareKey: withRefusalCondition(KEY_SHARED, async (input) => {
    await shareBackupKey(parts, input)
    return grantedCondition(KEY_SHARED)
  }),
  async openPlaces({ accountId: owner, zones }) {
    for (const zone of zones)
      try {
        await openInternalTenant(parts, { purpose: 'backups', owner, zone })
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        const message = `Waiting for the object storage of zone ${zone} to answer; nothing is backed up before.`
        return { conditions: [{ type: PLACES_OPENED, status: 'False', reason: 'Unreachable', message }] }
      }
    return grantedCondition(PLACES_OPENED)
  },
  reportDamage: (input, backup) => reportDamage(parts, input, backup),
  audit: auditEffect(parts),
})

/** One mail to each owner for each verification. */
async function reportDamage(
  { db, clock }: Parts,
  { accountId, damage, operationId }: BackupEffects['reportDamage'],
  { metadata: { name }, spec: { storageId } }: KubeObject<BackupSpec>,
): Promise<undefined> {
  for (const recipient of await orUnavailable(listOwnerMails(db, accountId)))
    await orUnavailable(
      enqueueMail(db, {
        id: derivedId(`${operationId}/${recipient}`),
        recipient,
        mail: mail('backup_damaged', { backup: name, storage: storageId, damage }),
        createdAt: clock.now(),
      }),
    )
  return undefined
}
