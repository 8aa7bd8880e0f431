/** The changes of a custom image. */
import { requireDeletableImage, requireOnlineImage } from '../domain/custom-image/rules.ts'
import { UNKNOWN_IMAGE_GIBIBYTES } from '../domain/account/quota.ts'
import { requireStopped } from '../domain/backup/rules.ts'
import { isMachineId } from '../domain/managed-machine/rules.ts'
import { badField, conflict, notFound } from '../domain/problem.ts'
import { claimCustomImage, releaseCustomImage } from '../db/custom-image/index.ts'
import { Zone } from '../resources/catalog/index.ts'
import * as routes from '../resources/custom-image/index.ts'
import { CustomImage, customImageFactsOf, type CustomImageSpec } from '../resources/custom-image/index.ts'
import { accountNamespace } from '../resources/index.ts'
import { IMAGE_GIBIBYTES_MAXIMUM } from '../resources/instance/index.ts'
import { storedOf } from '../resources/kit/shapes.ts'
import { Server } from '../resources/server/index.ts'
import { diskGibibytesOf, Storage } from '../resources/storage/index.ts'
import { changesOf, type Creation, fromBody, type Patch, type Target } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'
import { judgeSource, SOURCE_READS, type SourceReading } from './kit/source.ts'
import { worldOf } from './kit/world.ts'

const FIELDS = routes.CreateCustomImage.shape

const imageOf = ({ accountId, id }: Target) => ({ accountId, imageId: id })

/** The GiB of its disk, as far as they are known. Throws 404 for a source that is not the account's, 400 for one that
 *  does not fit the zone, and 409 for one that cannot be read now. */
function requireSource(reading: SourceReading, { source, zone }: CustomImageSpec): number {
  const { storageId, snapshotId, backupId, imageId } = source
  if (snapshotId !== undefined) return requireCopy(reading, { kind: 'snapshot', id: snapshotId, zone })
  if (backupId !== undefined) return requireCopy(reading, { kind: 'backup', id: backupId, zone })
  if (storageId !== undefined) return requireStorage(reading, { storageId, zone })
  return imageId === undefined ? UNKNOWN_IMAGE_GIBIBYTES : requireImage(reading, { imageId, zone })
}

/** A snapshot or a backup: storages are created from these too. */
function requireCopy(
  reading: SourceReading,
  { kind, id, zone }: { readonly kind: 'snapshot' | 'backup'; readonly id: string; readonly zone: string },
): number {
  const judged = judgeSource(reading, { kind, id })
  if (judged.zone !== zone) throw badField('zone', `the ${kind} is in zone ${judged.zone}, and its image too`)
  requireFitSize(judged.sizeGibibytes, `source.${kind}Id`)
  return judged.sizeGibibytes
}

function requireFitSize(sizeGibibytes: number, field: string): void {
  if (sizeGibibytes > IMAGE_GIBIBYTES_MAXIMUM)
    throw badField(field, `it has ${sizeGibibytes} GiB; images have at most ${IMAGE_GIBIBYTES_MAXIMUM}`)
}

function requireStorage(
  { world, namespace }: SourceReading,
  { storageId, zone }: { readonly storageId: string; readonly zone: string },
): number {
  const storage = isMachineId(storageId) ? undefined : world.find(Storage, { namespace, name: storageId })
  if (storage === undefined || storage.metadata.deletionTimestamp !== undefined) throw notFound('storage')
  const { spec, status } = storage
  if (spec.zone !== zone) throw badField('zone', `the storage is in zone ${spec.zone}, and its image too`)
  requireFitSize(spec.sizeGibibytes, 'source.storageId')
  const serverId = spec.serverId ?? status?.serverId
  const server = serverId === undefined ? undefined : world.find(Server, { namespace, name: serverId })
  requireStopped(
    server && {
      id: server.metadata.name,
      isStopped: server.status?.state === 'stopped' && server.spec.desiredPower === 'stopped',
    },
  )
  if (status?.state !== 'online')
    throw conflict('state_not_allowed', `The storage is in state ${status?.state ?? 'creating'}.`, {
      resource: { type: 'storage', id: storageId },
    })
  return diskGibibytesOf(storage)
}

function requireImage(
  { world, namespace }: SourceReading,
  { imageId, zone }: { readonly imageId: string; readonly zone: string },
): number {
  const image = world.find(CustomImage, { namespace, name: imageId })
  if (image === undefined) throw notFound('custom image')
  if (image.spec.zone === zone) throw badField('zone', 'the image is in this zone already')
  requireOnlineImage(customImageFactsOf(storedOf(image)))
  return image.status?.sizeGibibytes ?? UNKNOWN_IMAGE_GIBIBYTES
}

/** The one source that a request names. Throws 400 for a file without a checksum, and for a checksum without a file. */
function sourceOf({
  source_url: url,
  checksum_sha256: checksum,
  source_storage_id: storageId,
  source_snapshot_id: snapshotId,
  source_backup_id: backupId,
}: Omit<routes.CreateCustomImage, 'zone' | 'title' | 'labels'>): CustomImageSpec['source'] {
  if (url === undefined && checksum !== undefined) throw badField('checksum_sha256', 'belongs to a source_url')
  if (typeof storageId === 'string') return { storageId }
  if (typeof snapshotId === 'string') return { snapshotId }
  if (typeof backupId === 'string') return { backupId }
  if (url === undefined) throw new Error('a body without a source') // its schema accepts none
  if (checksum === undefined) throw badField('checksum_sha256', 'is required with source_url')
  return { url, checksum: checksum.toLowerCase() }
}

const creation: Omit<Creation<CustomImageSpec>, 'by' | 'name'> = {
  needs: 'standing',
  allow({ accountId, spec }, world) {
    if (world.find(Zone, { name: spec.zone }) === undefined) throw badField('zone', 'there is no such zone')
    requireSource({ world, namespace: accountNamespace(accountId) }, spec)
  },
  async claim(tx, { spec, ...target }, { caches }) {
    const reading = { world: worldOf(caches), namespace: accountNamespace(target.accountId) }
    await claimCustomImage(tx, { ...imageOf(target), sizeGibibytes: requireSource(reading, spec) })
  },
  release: (tx, target) => releaseCustomImage(tx, imageOf(target)),
  detail: ({ zone, title }) => ({ zone, title }),
}

export const customImageChanges = changesOf(CustomImage, {
  name: 'custom_image',
  // The contract names it so.
  target: 'template',
  title: 'custom image',
  finalizedWhen: 'no node has the image',
  factsOf: customImageFactsOf,
  reads: [Server, Zone, ...SOURCE_READS],
  readable({ title, labels, source: { url, checksum } }) {
    requireReadable('title', FIELDS.title, title)
    requireReadable('labels', FIELDS.labels, labels)
    requireReadable('source.url', FIELDS.source_url, url)
    requireReadable('source.checksum', FIELDS.checksum_sha256, checksum)
  },
  create: {
    ...creation,
    name: 'create',
    operation: 'template.create',
    by: fromBody(
      routes.createCustomImage,
      ({ zone, title, labels, ...body }): CustomImageSpec => ({ zone, title, labels, source: sourceOf(body) }),
      {
        'source.storageId': 'source_storage_id',
        'source.snapshotId': 'source_snapshot_id',
        'source.backupId': 'source_backup_id',
      },
    ),
  },
  copy: {
    ...creation,
    name: 'copy',
    operation: 'template.copy',
    when: ({ source }) => source.imageId !== undefined,
    by: { route: routes.copyCustomImage },
  },
  changes: {
    edit: {
      sets: ['title', 'labels'],
      action: 'update',
      by: fromBody(
        routes.updateCustomImage,
        (body, spec: CustomImageSpec): Patch<CustomImageSpec> => ({
          title: body.title ?? spec.title,
          labels: body.labels ?? spec.labels,
        }),
      ),
    },
  },
  remove: {
    name: 'delete',
    operation: 'template.delete',
    allow: ({ facts }) => requireDeletableImage(facts),
    by: { route: routes.deleteCustomImage },
  },
})
