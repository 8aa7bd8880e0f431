/** Decides whether a proven caller may do an operation: status of the account, quota, and share of the machine. */
import type { Clock } from '../../kit/sys/clock.ts'
import { accessDenied, S3Refusal, slowDown, type StorageRequest } from './request.ts'
import { sourcePath } from './request.ts'
import type { Engines } from './engines.ts'
import type { Tenant, Tenants } from './tenants.ts'

export interface AdmissionParts {
  readonly tenants: Tenants
  readonly engines: Pick<Engines, 'sizeOf'>
  readonly clock: Clock
}

const BUCKETS_MAXIMUM = 100
/** Limit of a tenant's files and folders, regardless of their content: empty objects need space too. */
const FILES_MINIMUM = 100_000
const BYTES_FOR_EACH_FILE = 16 * 1024
/** Usage of a tenant at its quota is measured again, in case it has deleted something, but not for each request. */
const MEASURE_AGAIN_MILLISECONDS = 3_000

/** Maximum number of files and folders of a tenant with this quota in bytes. */
export const filesMaximum = (quotaBytes: number): number => FILES_MINIMUM + Math.floor(quotaBytes / BYTES_FOR_EACH_FILE)

/** Reserves space; returns the function that releases it. Throws the Refusal. Refusals do not reveal whether another
 *  tenant's bucket exists. */
export async function admit(
  { tenants, clock, engines }: AdmissionParts,
  { id, usage }: Tenant,
  { operation, bytes: ofBody, files }: StorageRequest,
): Promise<(isStored: boolean) => void> {
  const { name, bucket, copy, rule } = operation
  const own = tenants.find(id)
  if (own === undefined) throw accessDenied()
  // A tenant that has moved to another store cannot reach other tenants' buckets there.
  const isHere = own.upstream === undefined
  for (const each of isHere ? [bucket, copy?.bucket] : [])
    if (each !== undefined && !each.startsWith(own.bucketPrefix))
      throw accessDenied(`Access Denied: the names of your buckets begin with ${own.bucketPrefix}`)
  if (own.isFrozen && rule.class !== 'reads') throw slowDown()
  if (rule.class !== 'adds') return () => {}
  if (own.isSuspended)
    throw new S3Refusal(403, 'AccountProblem', 'The account is suspended: what is stored can be read and deleted.')
  if (!isHere) return () => {} // the store with the data enforces the quota
  const isBucket = name === 'CreateBucket'
  if (usage.measured === undefined) await usage.measure()
  const bytes = copy === undefined ? ofBody : (copy.bytes ?? (await engines.sizeOf(id, sourcePath(copy))))
  if (bytes === undefined) throw new S3Refusal(404, 'NoSuchKey', 'The specified key does not exist.')
  const maximum = filesMaximum(own.quotaBytes)
  const tooMuch = (): S3Refusal | undefined => {
    if (isBucket && usage.buckets() >= BUCKETS_MAXIMUM)
      return new S3Refusal(400, 'TooManyBuckets', 'You have attempted to create more buckets than allowed.')
    if (bytes > 0 && usage.bytes() + bytes > own.quotaBytes)
      return new S3Refusal(403, 'QuotaExceeded', `The quota is ${own.quotaBytes} bytes.`)
    if (files > 0 && usage.files() + files > maximum)
      return new S3Refusal(403, 'QuotaExceeded', `There is room for ${maximum} objects, parts and folders.`)
    return undefined
  }
  const isOld = () => {
    const { at } = usage.measured ?? {}
    return at === undefined || clock.now().getTime() - at.getTime() > MEASURE_AGAIN_MILLISECONDS
  }
  if (tooMuch() !== undefined && isOld()) await usage.measure()
  const refusal = tooMuch()
  if (refusal !== undefined) throw refusal
  return usage.reserve({ bytes, files, buckets: isBucket ? 1 : 0 })
}
