/** Names of buckets and objects: their exact format, and names that the engine of a single host cannot distinguish.
 *  Pure. */
import { invalidArgument, invalidRequest, type S3Refusal, S3Refusal as Refused } from './refusal.ts'

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const ADDRESS = /^\d{1,3}(?:\.\d{1,3}){3}$/
const KEY_BYTES_MAXIMUM = 1_024
/** Limits of file systems on Linux. */
const SEGMENT_BYTES_MAXIMUM = 255
/** Characters that XML 1.0 cannot contain, even escaped: no list could show such a key. */
const UNLISTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/
/** Folders and files that the engine creates for itself beside objects. */
const RESERVED = /\.sgwtmp(?:$|\.)/i

/** Throws the Refusal for an invalid name of a bucket. */
export function checkBucket(bucket: string): void {
  if (!BUCKET.test(bucket) || bucket.includes('..') || ADDRESS.test(bucket))
    throw new Refused(400, 'InvalidBucketName', 'The specified bucket is not valid.')
}

/** Throws the Refusal for a key that no server accepts. */
export function checkKey(key: string): void {
  if (key === '') throw invalidArgument('A key has at least one character.')
  if (!key.isWellFormed() || key.includes('\0')) throw invalidRequest('A key is UTF-8 without the byte 0.')
  if (Buffer.byteLength(key) > KEY_BYTES_MAXIMUM)
    throw new Refused(400, 'KeyTooLongError', `Your key is too long: it may have ${KEY_BYTES_MAXIMUM} bytes.`)
  if (key.split('/').some(isClimbing)) throw invalidRequest('A key has no segments that are "." or "..".')
}

const isClimbing = (segment: string): boolean => segment === '.' || segment === '..'

/** Why the engine of a single host, where an object is a file, cannot store this key; undefined when it can. `isAdded`:
 *  objects that were stored under a name before it was reserved can still be read and deleted. */
export function engineKeyRefusal(key: string, isAdded: boolean): S3Refusal | undefined {
  const segments = key.split('/')
  if (segments[0] === '') return invalidRequest('A key does not begin with "/" here.')
  if (segments.slice(1, -1).includes('')) return invalidRequest('A key has no empty segments ("//") here.')
  if (RESERVED.test(segments[0] ?? '') || (isAdded && segments.some((segment) => RESERVED.test(segment))))
    return invalidRequest('Names with ".sgwtmp" are reserved here.')
  if (segments.some((segment) => Buffer.byteLength(segment) > SEGMENT_BYTES_MAXIMUM))
    return new Refused(
      400,
      'KeyTooLongError',
      `Your key is too long: between slashes it may have ${SEGMENT_BYTES_MAXIMUM} bytes here.`,
    )
  if (isAdded && UNLISTABLE.test(key))
    return invalidRequest('A key has no control characters here but tab, line feed and carriage return.')
  return undefined
}
