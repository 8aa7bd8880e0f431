/** The source of a custom image, for every interface: it must be the account's and readable now. */
import { isMachineId } from '../../../domain/managed-machine/rules.ts'
import { requireStopped } from '../../../domain/backup/rules.ts'
import { requireOnlineImage } from '../../../domain/custom-image/rules.ts'
import { badField, conflict, notFound } from '../../../domain/problem.ts'
import { UNKNOWN_IMAGE_GIBIBYTES } from '../../../domain/account/quota.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { ResourceType } from '../../../kit/kube/object.ts'
import { CustomImage, customImageFactsOf, type CustomImageSpec } from '../../../resources/custom-image/index.ts'
import { IMAGE_GIBIBYTES_MAXIMUM } from '../../../resources/instance/index.ts'
import { Server } from '../../../resources/server/index.ts'
import { diskGibibytesOf, Storage } from '../../../resources/storage/index.ts'
import { judgeSource, SOURCE_READS } from '../../../changes/kit/source.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { storedOf } from '../../../resources/kit/shapes.ts'

export interface SourceReading {
  readonly caches: Caches
  /** Of the requesting account. */
  readonly namespace: string
}

/** Kinds that are looked up in the caches. */
export const IMAGE_SOURCE_READS: readonly ResourceType[] = [Server, ...SOURCE_READS]

/** The fields in which a request names the source of the image. */
export type SourceFields = { readonly [Field in 'storage' | 'snapshot' | 'backup' | 'zone']: string }

/** The GiB of its disk, as far as they are known. Throws 404 for a source that is not the account's, 400 for one that
 *  does not fit the zone, and 409 for one that cannot be read now. `fields` are where the request names them. */
export function requireSource(
  reading: SourceReading,
  { source: { storageId, snapshotId, backupId, imageId }, zone }: Pick<CustomImageSpec, 'source' | 'zone'>,
  fields: SourceFields,
): number {
  if (snapshotId !== undefined) return requireReadable(reading, { kind: 'snapshot', id: snapshotId, zone }, fields)
  if (backupId !== undefined) return requireReadable(reading, { kind: 'backup', id: backupId, zone }, fields)
  if (storageId !== undefined) return requireStorage(reading, { storageId, zone }, fields)
  return imageId === undefined ? UNKNOWN_IMAGE_GIBIBYTES : requireImage(reading, { imageId, zone }, fields)
}

/** A snapshot or a backup: storages are created from these too. */
function requireReadable(
  reading: SourceReading,
  { kind, id, zone }: { readonly kind: 'snapshot' | 'backup'; readonly id: string; readonly zone: string },
  fields: SourceFields,
): number {
  const judged = judgeSource({ ...reading, world: worldOf(reading.caches) }, { kind, id })
  if (judged.zone !== zone) throw badField(fields.zone, `the ${kind} is in zone ${judged.zone}, and its image too`)
  requireFitSize(judged.sizeGibibytes, fields[kind])
  return judged.sizeGibibytes
}

function requireFitSize(sizeGibibytes: number, field: string): void {
  if (sizeGibibytes > IMAGE_GIBIBYTES_MAXIMUM)
    throw badField(field, `it has ${sizeGibibytes} GiB; images have at most ${IMAGE_GIBIBYTES_MAXIMUM}`)
}

function requireStorage(
  { caches, namespace }: SourceReading,
  { storageId, zone }: { readonly storageId: string; readonly zone: string },
  fields: SourceFields,
): number {
  const storage = isMachineId(storageId) ? undefined : caches.of(Storage).get({ namespace, name: storageId })
  if (storage === undefined || storage.metadata.deletionTimestamp !== undefined) throw notFound('storage')
  const { spec, status } = storage
  if (spec.zone !== zone) throw badField(fields.zone, `the storage is in zone ${spec.zone}, and its image too`)
  requireFitSize(spec.sizeGibibytes, fields.storage)
  const serverId = spec.serverId ?? status?.serverId
  const server = serverId === undefined ? undefined : caches.of(Server).get({ namespace, name: serverId })
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
  { caches, namespace }: SourceReading,
  { imageId, zone }: { readonly imageId: string; readonly zone: string },
  fields: SourceFields,
): number {
  const image = caches.of(CustomImage).get({ namespace, name: imageId })
  if (image === undefined) throw notFound('custom image')
  if (image.spec.zone === zone) throw badField(fields.zone, 'the image is in this zone already')
  requireOnlineImage(customImageFactsOf(storedOf(image)))
  return image.status?.sizeGibibytes ?? UNKNOWN_IMAGE_GIBIBYTES
}
