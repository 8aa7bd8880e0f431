/** The fields of an S3 request that the front end needs: the claimed caller, the operation, and what it would add.
 *  Pure. */
import { escapeForSignature } from '../../kit/s3/signature.ts'
import { engineKeyRefusal } from '../../kit/s3/names.ts'
import { type S3Operation, readOperation } from '../../kit/s3/operation.ts'
import { accessDenied, invalidRequest, missingLength, notOffered, S3Refusal, slowDown } from '../../kit/s3/refusal.ts'
import { readSignature, type Signature } from '../../kit/s3/signature.ts'
import type { RawRequest } from '../../kit/s3/target.ts'

export { accessDenied, missingLength, S3Refusal, slowDown }
export type { RawRequest }

export interface StorageRequest {
  readonly operation: S3Operation
  readonly signature: Signature
  /** Declared size of the body of an object or a part; 0 for everything else. */
  readonly bytes: number
  /** Maximum number of files and folders that it creates. */
  readonly files: number
  /** The body is stored unchanged: a success means that it was read completely. */
  readonly isWhole: boolean
}

const EXPECTED_OWNERS = ['x-amz-expected-bucket-owner', 'x-amz-source-expected-bucket-owner']
/** Operations that create an object or a part. */
const MAKES_FILES: readonly string[] = [
  'PutObject',
  'CopyObject',
  'CreateMultipartUpload',
  'UploadPart',
  'UploadPartCopy',
]

/** Throws the Refusal when the request cannot be forwarded. */
export function readRequest(raw: RawRequest): StorageRequest {
  const operation = readOperation(raw)
  if (operation instanceof S3Refusal) throw operation
  const { headers, parameters, rule, name, key = '' } = operation
  const signature = readSignature(headers, parameters)
  checkSigned(headers, signature)
  for (const header of EXPECTED_OWNERS)
    if ((headers.get(header) ?? signature.accessKeyId) !== signature.accessKeyId) throw accessDenied()
  const isUpload = rule.body === 'bytes'
  if (headers.has('transfer-encoding') && !isUpload) throw missingLength()
  const length = headers.get('content-length') ?? '0'
  if (rule.body === undefined && Number(length) > 0) throw invalidRequest(`${name} has no body.`)
  return {
    operation,
    signature,
    bytes: isUpload ? readLength(operation) : 0,
    files: MAKES_FILES.includes(name) ? 1 + key.split('/').length : 0,
    isWhole: isUpload && !isInChunks(operation),
  }
}

/** Whoever has a signed address may send what was signed, and not copy from elsewhere with it or open the object to
 *  others. */
function checkSigned(headers: S3Operation['headers'], { kind, signedHeaders }: Signature): void {
  if (kind !== 'address') return
  const unsigned = [...headers.keys()].filter((name) => name.startsWith('x-amz-') && !signedHeaders.includes(name))
  if (unsigned.length > 0)
    throw accessDenied(`There were headers present in the request which were not signed: ${unsigned.join(', ')}`)
}

/** Throws the Refusal for requests that the engine would ignore in part, or could not isolate. */
export function checkForEngine({ operation }: StorageRequest): void {
  const { name, rule, key, copy } = operation
  if (rule.isElsewhere) throw notOffered(name)
  for (const each of [key, copy?.key])
    if (each !== undefined) throwIf(engineKeyRefusal(each, rule.class === 'adds' && each === key))
}

export const serviceUnavailable = () => new S3Refusal(503, 'ServiceUnavailable', 'Please try again in a moment.')

/** Stored as attributes of a file or a folder, for which file systems have little space: 4 KiB on ext4. */
const ATTRIBUTES =
  /^(?:x-amz-meta-.*|x-amz-tagging|cache-control|content-(?:disposition|encoding|language|type)|expires)$/
const ATTRIBUTE_BYTES_MINIMUM = 2_048
const KEPT_AS_ATTRIBUTES: readonly string[] = ['PutBucketTagging', 'PutBucketCors', 'PutObjectTagging']

/** The client's response when the engine has failed: either that the request was too large, or to retry. */
export function engineFailure({ operation: { name, headers } }: Pick<StorageRequest, 'operation'>): S3Refusal {
  const attributes = [...headers].filter(([header]) => ATTRIBUTES.test(header))
  const bytes = attributes.reduce((sum, [header, value]) => sum + header.length + value.length, 0)
  if (!KEPT_AS_ATTRIBUTES.includes(name) && bytes < ATTRIBUTE_BYTES_MINIMUM) return serviceUnavailable()
  return new S3Refusal(
    400,
    'MetadataTooLarge',
    'Metadata, tags and rules of one object or bucket are more than the file system here has room for: some 4 KiB.',
  )
}

export function throwIf(refusal: S3Refusal | undefined): void {
  if (refusal !== undefined) throw refusal
}

const isInChunks = ({ headers }: S3Operation): boolean =>
  headers.has('transfer-encoding') ||
  headers.has('content-encoding') ||
  (headers.get('x-amz-content-sha256') ?? '').startsWith('STREAMING-')

/** A chunked body declares its length without the framing. */
function readLength({ headers }: S3Operation): number {
  const name = headers.has('transfer-encoding') ? 'x-amz-decoded-content-length' : 'content-length'
  const text = headers.get(name) ?? ''
  if (!/^\d{1,15}$/.test(text)) throw missingLength()
  return Number(text)
}

/** Maximum length of a body of this many bytes in transit. Each chunk has a line and possibly a signature, and
 *  checksums follow the last one. */
export const wireBytesMaximum = (bytes: number): number => bytes + Math.ceil(bytes / 16) + 65_536

/** Path and version of the source of a copy, for the engine. */
export const sourcePath = ({ bucket, key, versionId }: NonNullable<S3Operation['copy']>): string => {
  const path = [bucket, ...key.split('/')].map(escapeForSignature).join('/')
  return `/${path}${versionId === undefined ? '' : `?versionId=${versionId}`}`
}
