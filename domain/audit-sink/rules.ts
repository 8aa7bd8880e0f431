/** Audit sinks: where the audit log of an account is pushed to, in batches that a receiver can verify. Pure. */
import { badField } from '../problem.ts'
import { requirePublicUrl } from '../webhook/rules.ts'

export const BATCH_ENTRIES_MAXIMUM = 500
/** Failures are retried for ever, ever more rarely: the log is never given up. */
export const RETRY = { baseMilliseconds: 5_000, maximumMilliseconds: 900_000 } as const
/** Between batches that are not full: objects of a bucket are larger, and a collector is asked less often. */
export const PAUSE_MILLISECONDS = { https: 5_000, s3: 60_000 } as const
/** Owners get a mail when nothing has arrived for so long. */
export const NOTICE_AFTER_MILLISECONDS = 3_600_000

/** Entries of one account, in their order and without a gap. */
export interface Batch {
  readonly firstSequence: number
  readonly lastSequence: number
}

/** The id of a batch: the same however often it is sent. */
export const batchIdOf = (sinkId: string, { firstSequence, lastSequence }: Batch): string =>
  `audit-${sinkId}-${firstSequence}-${lastSequence}`

const KEY_DIGITS = 16

/** The name of the object of a batch: in the order of the log. */
export function objectNameOf(prefix: string, accountId: string, { firstSequence, lastSequence }: Batch): string {
  const range = [firstSequence, lastSequence].map((each) => String(each).padStart(KEY_DIGITS, '0')).join('-')
  return `${prefix}${accountId}/${range}.ndjson`
}

/** Throws 400 for an address that nothing is ever sent to. A bucket is at an address without a path. */
export function requireTarget({ type, url }: { readonly type: 'https' | 's3'; readonly url: string }): void {
  requirePublicUrl(url)
  if (type === 's3' && !/^https:\/\/[^/?]+\/?$/.test(url))
    throw badField('url', 'is the endpoint of the store, without a path')
}
