/** The source of a copy operation. Pure. */
import { checkBucket, checkKey } from './names.ts'
import { invalidArgument, invalidRequest } from './refusal.ts'

export interface CopySource {
  readonly bucket: string
  readonly key: string
  readonly versionId: string | undefined
  /** The range of bytes to copy, if given. */
  readonly bytes: number | undefined
}

const VERSION = /^versionId=((?!\.+$)[A-Za-z0-9._-]{1,64})$/
const RANGE = /^bytes=(\d{1,15})-(\d{1,15})$/

/** Throws the Refusal. Some servers read a "+" as one, others as a space. */
export function readCopySource(source: string, range: string | undefined): CopySource {
  const index = source.indexOf('?')
  const [path, version] = index < 0 ? [source] : [source.slice(0, index), source.slice(index + 1)]
  if (/[^!-~]|[+#\\]/.test(source)) throw invalidRequest('x-amz-copy-source is not encoded as a URL.')
  const versionId = version === undefined ? undefined : VERSION.exec(version)?.[1]
  if (version !== undefined && versionId === undefined) throw invalidRequest('x-amz-copy-source names no version.')
  const plain = decode(path)
  if (plain.includes('?versionId=')) throw invalidRequest('A key with "?versionId=" cannot be copied.')
  // Clients may encode the slash after the bucket, and may omit the first slash.
  const rest = plain.startsWith('/') ? plain.slice(1) : plain
  const slash = rest.indexOf('/')
  if (slash < 0 || slash === rest.length - 1) throw invalidRequest('x-amz-copy-source names no object.')
  const [bucket, key] = [rest.slice(0, slash), rest.slice(slash + 1)]
  checkBucket(bucket)
  checkKey(key)
  return { bucket, key, versionId, bytes: range === undefined ? undefined : lengthOf(range) }
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw invalidRequest('x-amz-copy-source is not encoded as a URL.')
  }
}

function lengthOf(range: string): number {
  const [, first, last] = RANGE.exec(range) ?? []
  const bytes = Number(last) - Number(first) + 1
  if (!(bytes > 0)) throw invalidArgument('x-amz-copy-source-range is bytes=first-last.')
  return bytes
}
