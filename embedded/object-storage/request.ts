/** What the door reads of an S3 request before it passes it on: who says to ask, for which bucket, and what it would
 *  add. Whether the caller is who they say, the engine finds out by the signature. Whatever two readers could
 *  understand differently is refused. Pure. */

export interface RawRequest {
  readonly method: string
  /** As in the request line. */
  readonly target: string
  /** Names and values by turns, as they came. */
  readonly rawHeaders: readonly string[]
}

export interface StorageRequest {
  readonly accessKeyId: string
  readonly action: 'read' | 'write' | 'delete'
  /** Undefined for the list of buckets. */
  readonly bucket: string | undefined
  readonly hasKey: boolean
  /** Of the body of an object or a part, as its client says; 0 for anything else. */
  readonly bytes: number
  /** Stores the body as it is: who has stored it has read it all. */
  readonly isWhole: boolean
  /** Object that is copied: its bucket, its path and version for the engine, and how much of it when that is told. */
  readonly copy?: { readonly bucket: string; readonly path: string; readonly bytes?: number }
}

/** What the client is told, in S3's words. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export const accessDenied = () => new Refusal(403, 'AccessDenied', 'Access Denied')
export const slowDown = () => new Refusal(503, 'SlowDown', 'Please reduce your request rate.')
const invalid = (message: string) => new Refusal(400, 'InvalidRequest', message)
const missingLength = () => new Refusal(411, 'MissingContentLength', 'You must provide the Content-Length HTTP header.')
const notOffered = (what: string) => new Refusal(501, 'NotImplemented', `${what} is not offered.`)

/** A second one of these could be read by one of us and overlooked by the other. */
const SINGLE_HEADERS = [
  'authorization',
  'content-length',
  'expect',
  'host',
  'transfer-encoding',
  'x-amz-acl',
  'x-amz-content-sha256',
  'x-amz-copy-source',
  'x-amz-copy-source-range',
  'x-amz-date',
  'x-amz-decoded-content-length',
]
/** Whoever else could be let in by them is kept out by the door; who locks themselves out would stay outside. */
const SHARING_PARTS = ['policy', 'acl', 'publicAccessBlock', 'ownershipControls', 'website']
const SEALING = /^x-amz-(?:copy-source-)?server-side-encryption/
const PRIVATE_ACLS = ['private', 'bucket-owner-full-control']
/** Parts of an address that do not make it a request for something else; the second is of some clients. */
const OF_UPLOADS = /^(?:partNumber|uploadId|x-id|X-Amz-[A-Za-z0-9-]+)$/
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const CREDENTIAL = /^AWS4-HMAC-SHA256 +[^]*?\bCredential=([A-Za-z0-9]{1,128})\//
const VERSION = /^versionId=[A-Za-z0-9._-]{1,64}$/
/** Segments that are "." or "..". */
const CLIMBING = /(?:^|[/\\])\.\.?(?:$|[/\\])/
const RANGE = /^bytes=(\d{1,15})-(\d{1,15})$/

/** Throws the Refusal for what cannot be passed on. */
export function readRequest({ method, target, rawHeaders }: RawRequest): StorageRequest {
  const headers = readHeaders(rawHeaders)
  const [path, search = ''] = splitOnce(target, '?')
  const query = new URLSearchParams(search)
  const accessKeyId = readAccessKeyId(headers, query)
  const action = readAction(method, query)
  const { bucket, hasKey } = readPath(path)
  refuseSharing(method, headers, query)
  if (action === 'write') refuseSealing(headers, query)
  const copySource = headers.get('x-amz-copy-source')
  const isUpload = method === 'PUT' && hasKey && copySource === undefined
  if (headers.has('transfer-encoding') && !isUpload) throw missingLength()
  return {
    accessKeyId,
    action,
    bucket,
    hasKey,
    bytes: isUpload ? readLength(headers) : 0,
    isWhole: isUpload && !isInChunks(headers) && [...query.keys()].every((name) => OF_UPLOADS.test(name)),
    ...(copySource === undefined ? {} : { copy: readCopy(copySource, headers.get('x-amz-copy-source-range')) }),
  }
}

const splitOnce = (text: string, at: string): [string, string?] => {
  const index = text.indexOf(at)
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + at.length)]
}

function readHeaders(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const headers = new Map<string, string>()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase()
    if (headers.has(name) && SINGLE_HEADERS.includes(name)) throw invalid(`${name} may be sent once.`)
    headers.set(name, rawHeaders[index + 1] ?? '')
  }
  return headers
}

function readAccessKeyId(headers: ReadonlyMap<string, string>, query: URLSearchParams): string {
  const authorization = headers.get('authorization')
  const presigned =
    query.size === 0
      ? []
      : [...query].filter(([name]) => name.toLowerCase() === 'x-amz-credential').map(([, value]) => value)
  if (presigned.length > 1 || (presigned.length > 0 && authorization !== undefined))
    throw invalid('Sign a request once.')
  if (authorization === undefined && presigned.length === 0) throw accessDenied()
  const [inUrl] = presigned
  const id =
    inUrl === undefined ? CREDENTIAL.exec(authorization ?? '')?.[1] : /^([A-Za-z0-9]{1,128})\//.exec(inUrl)?.[1]
  if (id === undefined || (authorization ?? '').split('Credential=').length > 2)
    throw invalid('Please use AWS4-HMAC-SHA256.')
  return id
}

function readAction(method: string, query: URLSearchParams): StorageRequest['action'] {
  if (method === 'GET' || method === 'HEAD') return 'read'
  if (method === 'DELETE' || (method === 'POST' && query.has('delete'))) return 'delete'
  if (method === 'POST' && query.has('select')) return 'read'
  if (method === 'PUT' || method === 'POST') return 'write'
  throw new Refusal(405, 'MethodNotAllowed', 'The specified method is not allowed against this resource.')
}

/** The bucket stands in the path as it is, so that nobody decodes it into another one. */
function readPath(path: string): { readonly bucket: string | undefined; readonly hasKey: boolean } {
  if (!path.startsWith('/')) throw invalid('The path must be absolute.')
  if (path === '/') return { bucket: undefined, hasKey: false }
  const [bucket, key = ''] = splitOnce(path.slice(1), '/')
  if (!BUCKET.test(bucket) || bucket.includes('..'))
    throw new Refusal(400, 'InvalidBucketName', 'The specified bucket is not valid.')
  refuseClimbing(key)
  return { bucket, hasKey: key !== '' }
}

/** Keys are paths in the end, and may be decoded once more than we think. */
function refuseClimbing(key: string): void {
  let decoded = key
  for (let rounds = 0; rounds < 3; rounds++) {
    if (decoded.includes('\0') || CLIMBING.test(decoded)) throw invalid('A key has no segments that are "." or "..".')
    if (!decoded.includes('%')) return
    try {
      decoded = decodeURIComponent(decoded)
    } catch {
      if (rounds === 0) throw invalid('The path is not encoded as a URL.')
      return
    }
  }
}

function refuseSharing(method: string, headers: ReadonlyMap<string, string>, query: URLSearchParams): void {
  const part = SHARING_PARTS.find((name) => query.has(name))
  if (part !== undefined && method !== 'GET' && method !== 'HEAD') throw notOffered(`Changing ${part}`)
  const acl = headers.get('x-amz-acl')
  if (acl !== undefined && !PRIVATE_ACLS.includes(acl)) throw notOffered(`The ACL ${acl}`)
  if ([...headers.keys()].some((name) => name.startsWith('x-amz-grant-'))) throw notOffered('Granting access')
}

/** The engine overlooks it and stores what it gets: nobody is to believe that it is sealed. */
function refuseSealing(headers: ReadonlyMap<string, string>, query: URLSearchParams): void {
  const isSealed =
    [...headers.keys()].some((name) => SEALING.test(name)) ||
    [...query.keys()].some((name) => SEALING.test(name.toLowerCase()))
  if (isSealed || query.has('encryption')) throw notOffered('Encryption by the server')
}

const isInChunks = (headers: ReadonlyMap<string, string>): boolean =>
  headers.has('transfer-encoding') ||
  headers.has('content-encoding') ||
  (headers.get('x-amz-content-sha256') ?? '').startsWith('STREAMING-')

/** A body in chunks says how long it is without what is around them. */
function readLength(headers: ReadonlyMap<string, string>): number {
  const text = headers.get(headers.has('transfer-encoding') ? 'x-amz-decoded-content-length' : 'content-length') ?? ''
  if (!/^\d{1,15}$/.test(text)) throw missingLength()
  return Number(text)
}

/** What the body of so many bytes may take on its way. Chunks have a line and perhaps a signature each, and checksums
 *  come behind the last. */
export const wireBytesMaximum = (bytes: number): number => bytes + Math.ceil(bytes / 16) + 65_536

function readCopy(source: string, range: string | undefined): NonNullable<StorageRequest['copy']> {
  const [path, version] = splitOnce(source, '?')
  if (version !== undefined && !VERSION.test(version)) throw invalid('x-amz-copy-source names no version.')
  let plain: string
  try {
    // Clients encode the slashes around the bucket or leave them, and the first one out.
    plain = decodeURIComponent(path)
  } catch {
    throw invalid('x-amz-copy-source is not encoded as a URL.')
  }
  if (!plain.startsWith('/')) plain = `/${plain}`
  const { bucket, hasKey } = readPath(plain.split('/').map(encodeURIComponent).join('/'))
  if (bucket === undefined || !hasKey) throw invalid('x-amz-copy-source names no object.')
  const [, first, last] = RANGE.exec(range ?? '') ?? []
  const bytes = first === undefined ? undefined : Number(last) - Number(first) + 1
  return {
    bucket,
    path: `${plain.split('/').map(encodeAsSigned).join('/')}${version === undefined ? '' : `?${version}`}`,
    ...(bytes === undefined || bytes < 0 ? {} : { bytes }),
  }
}

/** As signatures need it: everything but letters, digits and `-_.~`. */
const encodeAsSigned = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
