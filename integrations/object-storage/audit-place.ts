/** The location of checkpoints of the audit log. Its keys are derived from the sealing keys and not from a record. So a
 *  deleted or forged record cannot direct the platform to an empty place. */
import type { ObjectStore } from '../../kit/chunks/object-store.ts'
import { openS3Store } from '../../kit/chunks/s3-store.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { type ObjectStorageOffer, offerIn } from './configuration.ts'
import type { ObjectStorage } from './control.ts'
import { derivedTenantKeys, type TenantKeys } from './keys.ts'

export const AUDIT_PURPOSE = 'audit'

export const auditTenantKeys = (sealing: Sealing): readonly TenantKeys[] => derivedTenantKeys(sealing, AUDIT_PURPOSE)

/** Content of its record. */
export interface AuditTenant {
  readonly zone: string
  readonly backend: ObjectStorage['backend']
  readonly bucketPrefix: string
  readonly bucket: string
}

/** Undefined when the zone no longer has this object storage. Throws for a record that is not ours. */
export function openAuditStore(
  { objectStorage, sealing, clock }: AuditStoreParts,
  { zone, backend, bucketPrefix, bucket }: AuditTenant,
): ObjectStore | undefined {
  const store = offerIn(objectStorage, zone, backend)
  if ('obstacle' in store) return undefined
  const keys = auditTenantKeys(sealing).find((each) => each.bucketPrefix === bucketPrefix)
  if (keys === undefined) throw new Error('the place of audit checkpoints is not one that follows from a sealing key')
  return openS3Store({
    url: new URL(`${store.upstreamOf(zone).url}/${bucket}`),
    authority: store.certificateAuthority,
    credentials: keys,
    clock,
  })
}

export interface AuditStoreParts {
  readonly objectStorage: ObjectStorageOffer
  readonly sealing: Sealing
  readonly clock: Clock
}
