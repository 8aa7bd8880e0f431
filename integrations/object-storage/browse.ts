/** Buckets and objects of a tenant as people look at them: names, and one page of a folder at a time. Bodies are never
 *  part of it. */
import type { StoreExchange, StoreRequest } from '../../kit/s3/exchange.ts'
import { unescapeXml } from '../../kit/s3/encoded-list.ts'
import { S3Refusal } from '../../kit/s3/refusal.ts'
import { Unavailable } from '../../domain/problem.ts'
import { readList, valueOf, type ListedObject } from './s3.ts'

export interface ListedBucket {
  readonly name: string
  readonly createdAt: Date
}

export interface ObjectQuery {
  readonly prefix: string
  /** Keys that continue beyond the next "/" are shown as one folder. */
  readonly hasFolders: boolean
  /** `next` of the page before; undefined for the first one. */
  readonly after: string | undefined
  readonly count: number
}

export interface ObjectPage {
  readonly objects: readonly ListedObject[]
  /** Beginnings of keys, with the "/" at their end. */
  readonly folders: readonly string[]
  /** Undefined for the last page. */
  readonly next: string | undefined
}

export interface Browser {
  buckets(): Promise<readonly ListedBucket[]>
  createBucket(bucket: string): Promise<void>
  /** Refused while it has objects. */
  deleteBucket(bucket: string): Promise<void>
  /** Refused when there is no such bucket. */
  requireBucket(bucket: string): Promise<void>
  page(bucket: string, query: ObjectQuery): Promise<ObjectPage>
  /** Does nothing when it does not exist. */
  deleteObject(bucket: string, key: string): Promise<void>
}

const MESSAGE_CHARACTERS_MAXIMUM = 300
const RETRIED = ['SlowDown', 'ServiceUnavailable']

/** Everything throws S3Refusal, and Unavailable when the store does not answer. */
export function openBrowser(exchange: StoreExchange): Browser {
  const ask = async (request: StoreRequest): Promise<string> => {
    const { status, text } = await exchange.askWhole(request).catch((error: unknown) => {
      throw new Unavailable('the object storage', error)
    })
    if (status < 300) return text
    const code = valueOf(text, 'Code') ?? ''
    const message = (valueOf(text, 'Message') ?? '').slice(0, MESSAGE_CHARACTERS_MAXIMUM)
    if (status >= 500 || RETRIED.includes(code))
      throw new Unavailable('the object storage', new Error(`${request.method}: status ${status} ${code}`))
    throw new S3Refusal(status, code, message)
  }
  const send = async (request: StoreRequest): Promise<void> => void (await ask(request))
  return {
    buckets: async () => readBuckets(await ask({ method: 'GET' })),
    createBucket: (bucket) => send({ method: 'PUT', path: bucket }),
    deleteBucket: (bucket) => send({ method: 'DELETE', path: bucket }),
    requireBucket: (bucket) =>
      send({ method: 'GET', path: bucket, query: { 'list-type': '2', 'max-keys': '1', 'encoding-type': 'url' } }),
    async page(bucket, { prefix, hasFolders, after, count }) {
      const query = {
        'list-type': '2',
        'max-keys': String(count),
        'encoding-type': 'url',
        ...(prefix === '' ? {} : { prefix }),
        ...(hasFolders ? { delimiter: '/' } : {}),
        ...(after === undefined ? {} : { 'continuation-token': after }),
      }
      return readPage(await ask({ method: 'GET', path: bucket, query }))
    },
    deleteObject: (bucket, key) => send({ method: 'DELETE', path: `${bucket}/${key}` }),
  }
}

/** Throws Unavailable when the list cannot be parsed. */
function readBuckets(xml: string): readonly ListedBucket[] {
  if (!xml.includes('ListAllMyBucketsResult')) throw unreadable()
  return [...xml.matchAll(/<Bucket>(.*?)<\/Bucket>/gs)].map(([, bucket = '']) => {
    const name = valueOf(bucket, 'Name')
    const createdAt = new Date(valueOf(bucket, 'CreationDate') ?? '')
    if (name === undefined || Number.isNaN(createdAt.getTime())) throw unreadable()
    return { name, createdAt }
  })
}

const unreadable = () => new Unavailable('the object storage', new Error('a list cannot be read'))

/** Throws Unavailable when the list cannot be parsed completely. */
function readPage(xml: string): ObjectPage {
  try {
    return pageIn(xml)
  } catch (error) {
    throw new Unavailable('the object storage', error)
  }
}

function pageIn(xml: string): ObjectPage {
  const isEscaped = valueOf(xml, 'EncodingType') === 'url'
  const folders = [...xml.matchAll(/<CommonPrefixes>\s*<Prefix>([^<]*)<\/Prefix>\s*<\/CommonPrefixes>/g)].map(
    ([, text = '']) => {
      const name = unescapeXml(text)
      return isEscaped ? decodeURIComponent(name.replaceAll('+', ' ')) : name
    },
  )
  const isTruncated = valueOf(xml, 'IsTruncated') === 'true'
  const next = isTruncated ? valueOf(xml, 'NextContinuationToken') : undefined
  if (isTruncated && next === undefined) throw new Error('a list has more and does not say how to go on')
  return { objects: readList(xml, folders.length > 0), folders, next }
}
