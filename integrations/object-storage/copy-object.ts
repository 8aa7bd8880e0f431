/** Copies one object between S3 servers unchanged: bytes, metadata, tags. The target's response is compared with the
 *  source data, so that a copy that ends is correct. */
import { createHash, type Hash } from 'node:crypto'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import {
  headOf,
  type ListedObject,
  storeRefusal,
  type S3,
  StoreRefused,
  responseText,
  valueOf,
  withoutQuotes,
} from './s3.ts'

const GIBIBYTE = 1024 ** 3
/** Larger objects are copied in parts. */
const SINGLE_BYTES_MAXIMUM = GIBIBYTE
const PART_BYTES_MINIMUM = GIBIBYTE / 4
const PARTS_MAXIMUM = 9_000

export interface Stores {
  readonly source: S3
  readonly target: S3
}

/** Does nothing when the source no longer has the object. */
export async function copyObject(stores: Stores, bucket: string, { key, bytes }: ListedObject): Promise<void> {
  const isThere =
    bytes > SINGLE_BYTES_MAXIMUM ? await copyInParts(stores, bucket, key) : await copyWhole(stores, bucket, key)
  if (isThere) await copyTags(stores, bucket, key)
}

async function copyWhole({ source, target }: Stores, bucket: string, key: string): Promise<boolean> {
  const path = `${bucket}/${key}`
  const answer = await source.exchange.ask({ method: 'GET', path })
  if (answer.statusCode === 404) {
    answer.destroy()
    return false
  }
  if (answer.statusCode !== 200)
    throw storeRefusal({ method: 'GET', path }, answer.statusCode ?? 0, await responseText(answer))
  const { bytes, objectHeaders } = headOf(answer.headers)
  await send(target, { path, headers: objectHeaders }, { answer, bytes })
  return true
}

interface Sending {
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

/** Returns the digest, after comparing it with the target's. */
async function send(
  target: S3,
  { path, query = {}, headers = {} }: Sending,
  { answer, bytes }: { readonly answer: NodeJS.ReadableStream; readonly bytes: number },
): Promise<string> {
  const digest = createHash('md5')
  const request = { method: 'PUT', path, query, headers } as const
  const content = digesting(digest)
  // If the source breaks off, the upload breaks off too.
  pipeline(answer, content).catch(() => {})
  const stored = await target.exchange.ask({ ...request, stream: { content, bytes } })
  const text = await responseText(stored)
  if (stored.statusCode !== 200) throw storeRefusal(request, stored.statusCode ?? 0, text)
  const held = digest.digest('hex')
  if (withoutQuotes(stored.headers.etag ?? '') !== held)
    throw new StoreRefused(`the target holds other bytes of ${path} than were sent`)
  return held
}

const digesting = (digest: Hash): Transform =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      digest.update(chunk)
      done(null, chunk)
    },
  })

/** Throws when the object changes meanwhile. */
async function copyInParts({ source, target }: Stores, bucket: string, key: string): Promise<boolean> {
  const path = `${bucket}/${key}`
  const head = await source.head(bucket, key)
  if (head === undefined) return false
  const begun = await target.ask({ method: 'POST', path, query: { uploads: '' }, headers: head.objectHeaders })
  const uploadId = valueOf(begun.text, 'UploadId')
  if (uploadId === undefined) throw new StoreRefused(`the target begins no upload of ${path}`)
  try {
    const size = Math.max(PART_BYTES_MINIMUM, Math.ceil(head.bytes / PARTS_MAXIMUM))
    const parts: string[] = []
    for (let start = 0; start < head.bytes; start += size) {
      const bytes = Math.min(size, head.bytes - start)
      const headers = { range: `bytes=${start}-${start + bytes - 1}`, 'if-match': `"${head.etag}"` }
      const answer = await source.exchange.ask({ method: 'GET', path, headers })
      if (answer.statusCode !== 206)
        throw storeRefusal({ method: 'GET', path }, answer.statusCode ?? 0, await responseText(answer))
      const query = { partNumber: String(parts.length + 1), uploadId }
      const digest = await send(target, { path, query }, { answer, bytes })
      parts.push(`<Part><PartNumber>${parts.length + 1}</PartNumber><ETag>"${digest}"</ETag></Part>`)
    }
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
    await target.ask({ method: 'POST', path, query: { uploadId }, body })
    return true
  } catch (error) {
    await target.ask({ method: 'DELETE', path, query: { uploadId } }, 404).catch(() => {}) // the first error is thrown
    throw error
  }
}

async function copyTags({ source, target }: Stores, bucket: string, key: string): Promise<void> {
  const tags = await source.tagsOf(bucket, key)
  if (tags.length === 0) return
  const rows: string[] = []
  for (let index = 0; index < tags.length; index += 2)
    rows.push(`<Tag><Key>${escapeXml(tags[index])}</Key><Value>${escapeXml(tags[index + 1])}</Value></Tag>`)
  const body = Buffer.from(`<Tagging><TagSet>${rows.join('')}</TagSet></Tagging>`)
  const headers = { 'content-md5': createHash('md5').update(body).digest('base64') }
  await target.ask({ method: 'PUT', path: `${bucket}/${key}`, query: { tagging: '' }, headers, body })
}

const escapeXml = (text = ''): string => text.replaceAll(/[<>&"]/g, (sign) => `&#${sign.codePointAt(0)};`)
