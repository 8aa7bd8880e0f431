/** The part of S3 for moving a tenant, for any server. Names in lists are requested in escaped form, because XML cannot
 *  contain all of them. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { readWhole } from '../../kit/http/bounded.ts'
import type { StoreAnswer, StoreExchange, StoreRequest } from '../../kit/s3/exchange.ts'
import { unescapeXml } from '../../kit/s3/encoded-list.ts'

/** The server's response differs from what was requested. */
export class StoreRefused extends Error {
  /** Method, status and S3's code, without the object: the same for every object with this refusal. */
  readonly answer: string | undefined
  readonly status: number | undefined
  constructor(message: string, answer?: string, status?: number) {
    super(message)
    this.answer = answer
    this.status = status
  }
}

export interface ListedObject {
  readonly key: string
  readonly bytes: number
  /** Without quotes. */
  readonly etag: string
  readonly modifiedAt: Date
}

export interface Head {
  readonly bytes: number
  readonly etag: string
  /** Metadata of the stored object, by lower-case name. */
  readonly objectHeaders: Readonly<Record<string, string>>
}

export type BucketSetting = 'cors' | 'tagging' | 'versioning' | 'object-lock'

export interface S3 {
  readonly exchange: StoreExchange
  /** Names in order, and the server's time. */
  buckets(): Promise<{ readonly names: readonly string[]; readonly at: Date }>
  /** As XML; undefined if the setting is not set, or unknown to the server. */
  settingOf(bucket: string, setting: BucketSetting): Promise<string | undefined>
  /** Undefined removes the setting. */
  putSetting(bucket: string, setting: 'cors' | 'tagging', xml: string | undefined): Promise<void>
  /** At most `count` objects with keys after that one, in the server's order. */
  list(bucket: string, after: string, count: number): Promise<readonly ListedObject[]>
  head(bucket: string, key: string): Promise<Head | undefined>
  /** Names and values alternate, in order. */
  tagsOf(bucket: string, key: string): Promise<readonly string[]>
  ensureBucket(bucket: string): Promise<void>
  /** Does nothing when it does not exist. */
  removeObject(bucket: string, key: string): Promise<void>
  removeBucket(bucket: string): Promise<void>
  /** Throws StoreRefused unless the status is a success or one of the accepted ones. */
  ask(request: StoreRequest, ...accepted: readonly number[]): Promise<StoreAnswer>
}

const OBJECT_HEADERS = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'expires',
]
const ERROR_CHARACTERS = 300

export function openS3(exchange: StoreExchange): S3 {
  const ask = async (request: StoreRequest, ...accepted: readonly number[]): Promise<StoreAnswer> => {
    const answer = await exchange.askWhole(request)
    if (answer.status < 300 || accepted.includes(answer.status)) return answer
    throw storeRefusal(request, answer.status, answer.text)
  }
  const send = async (request: StoreRequest, ...accepted: readonly number[]) => void (await ask(request, ...accepted))
  return {
    exchange,
    ask,
    async buckets() {
      const { text, headers } = await ask({ method: 'GET' })
      if (!text.includes('ListAllMyBucketsResult')) throw new StoreRefused('a list of buckets is something else')
      const names = [...text.matchAll(/<Name>([^<]*)<\/Name>/g)].map(([, name = '']) => name)
      return { names: names.toSorted(), at: new Date(headers.date ?? Number.NaN) }
    },
    async settingOf(bucket, setting) {
      const { status, text } = await ask({ method: 'GET', path: bucket, query: { [setting]: '' } }, 404, 501)
      return status < 300 ? text : undefined
    },
    async putSetting(path, setting, xml) {
      const query = { [setting]: '' }
      if (xml === undefined) return send({ method: 'DELETE', path, query }, 404)
      const body = Buffer.from(xml)
      const headers = { 'content-md5': createHash('md5').update(body).digest('base64') }
      await send({ method: 'PUT', path, query, headers, body })
    },
    async list(bucket, after, count) {
      const query = {
        'list-type': '2',
        'max-keys': String(count),
        'encoding-type': 'url',
        ...(after === '' ? {} : { 'start-after': after }),
      }
      return readList((await ask({ method: 'GET', path: bucket, query })).text)
    },
    async head(bucket, key) {
      const { status, headers } = await ask({ method: 'HEAD', path: `${bucket}/${key}` }, 404)
      return status === 404 ? undefined : headOf(headers)
    },
    async tagsOf(bucket, key) {
      const request: StoreRequest = { method: 'GET', path: `${bucket}/${key}`, query: { tagging: '' } }
      const { status, text } = await ask(request, 404)
      return status === 404 ? [] : readTags(text)
    },
    ensureBucket: (bucket) => send({ method: 'PUT', path: bucket }),
    removeObject: (bucket, key) => send({ method: 'DELETE', path: `${bucket}/${key}` }, 404),
    removeBucket: (bucket) => send({ method: 'DELETE', path: bucket }, 404),
  }
}

export const storeRefusal = ({ method, path = '' }: StoreRequest, status: number, text: string): StoreRefused =>
  new StoreRefused(
    `${method} /${path}: status ${status}: ${text.slice(0, ERROR_CHARACTERS)}`,
    [method, status, /<Code>(\w{1,64})<\/Code>/.exec(text)?.[1] ?? []].flat().join(' '),
    status,
  )

/** The metadata in the response to a request for an object. */
export const headOf = (headers: IncomingMessage['headers']): Head => ({
  bytes: Number(headers['content-length'] ?? Number.NaN),
  etag: withoutQuotes(headers.etag ?? ''),
  objectHeaders: Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && (OBJECT_HEADERS.includes(name) || name.startsWith('x-amz-meta-'))
        ? [[name, value]]
        : [],
    ),
  ),
})

/** Reads a response that should be short. */
export async function responseText(answer: IncomingMessage): Promise<string> {
  return (await readWhole(answer, 1024 * 1024)).toString()
}

export const withoutQuotes = (etag: string): string => etag.replaceAll('"', '')

export const valueOf = (text: string, element: string): string | undefined => {
  const value = new RegExp(`<${element}>([^<]*)</${element}>`).exec(text)?.[1]
  return value === undefined ? undefined : unescapeXml(value)
}

/** Throws when the list cannot be parsed completely, because a skipped object would be lost. `hasFolders`: it may show
 *  no objects although more follow, because it shows folders. */
export function readList(xml: string, hasFolders = false): readonly ListedObject[] {
  if (!xml.includes('<ListBucketResult')) throw new StoreRefused('a list of objects is something else')
  const isEscaped = valueOf(xml, 'EncodingType') === 'url'
  const listed = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, content = '']): ListedObject => {
    const name = valueOf(content, 'Key')
    const [bytes, modifiedAt] = [
      Number(valueOf(content, 'Size') ?? Number.NaN),
      new Date(valueOf(content, 'LastModified') ?? ''),
    ]
    if (name === undefined || Number.isNaN(bytes) || Number.isNaN(modifiedAt.getTime()))
      throw new StoreRefused('a list of objects cannot be read')
    const key = isEscaped ? decodeURIComponent(name.replaceAll('+', ' ')) : name
    return { key, bytes, modifiedAt, etag: withoutQuotes(valueOf(content, 'ETag') ?? '') }
  })
  if (valueOf(xml, 'IsTruncated') === 'true' && listed.length === 0 && !hasFolders)
    throw new StoreRefused('a list of objects has more and shows nothing')
  return listed
}

const readTags = (xml: string): readonly string[] =>
  [...xml.matchAll(/<Tag>(.*?)<\/Tag>/gs)]
    .map(([, tag = '']) => [valueOf(tag, 'Key') ?? '', valueOf(tag, 'Value') ?? ''] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flat()
