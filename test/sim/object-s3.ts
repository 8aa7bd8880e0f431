/** S3 of a simulated store as the mover of the platform uses it. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { TenantSettings } from '../../integrations/object-storage/control.ts'
import type { StoreAnswer, StoreRequest } from '../../kit/s3/exchange.ts'
import { storeRefusal, type S3, StoreRefused } from '../../integrations/object-storage/s3.ts'
import {
  type Bucket,
  digestOf,
  type ObjectStores,
  reach,
  type SimulatedStore,
  type StoredObject,
  type StoredTenant,
  strikes,
  tenantByKey,
} from './object-stores.ts'
import type { SimulatedProcess } from './scheduler.ts'

type Credentials = Pick<TenantSettings, 'accessKeyId' | 'secretAccessKey'>

interface Reply {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: string
}

const error = (status: number, code: string): Reply => ({ status, content: `<Error><Code>${code}</Code></Error>` })
const DENIED = error(403, 'SignatureDoesNotMatch')

/** With the key of a tenant. */
export function s3Of(
  stores: ObjectStores,
  store: SimulatedStore,
  process: SimulatedProcess,
  credentials: Credentials,
): S3 {
  const work = (request: StoreRequest, body: string): Reply => {
    if (strikes(stores, 'refuses')) return error(500, 'InternalError')
    const tenant = tenantByKey(store, credentials.accessKeyId)
    if (tenant?.settings.secretAccessKey !== credentials.secretAccessKey) return DENIED
    return replyTo(tenant, request, body, stores.scheduler.now())
  }
  const askWhole = async (request: StoreRequest): Promise<StoreAnswer> => {
    const {
      status,
      headers = {},
      content = '',
    } = await reach(stores, store, process, () => work(request, request.body?.toString() ?? ''))
    return { status, headers, text: content }
  }
  const ask = async (request: StoreRequest, ...accepted: readonly number[]): Promise<StoreAnswer> => {
    const answer = await askWhole(request)
    if (answer.status < 300 || accepted.includes(answer.status)) return answer
    throw storeRefusal(request, answer.status, answer.text)
  }
  const look = async <Answer>(request: StoreRequest, of: (tenant: StoredTenant) => Answer): Promise<Answer> => {
    const found: Answer[] = []
    const { status, content = '' } = await reach(stores, store, process, () => {
      const reply = work({ method: 'HEAD' }, '')
      const tenant = tenantByKey(store, credentials.accessKeyId)
      if (reply.status === 200 && tenant !== undefined) found.push(of(tenant))
      return reply
    })
    if (status !== 200) throw storeRefusal(request, status, content)
    return found[0] as Answer // there is one of a tenant that is admitted
  }
  return {
    ask,
    exchange: { askWhole, ask: (request) => stream(stores, { store, process, work }, request) },
    ...lookingOf(look, stores),
    settingOf: async () => undefined,
    putSetting: async () => {},
    ensureBucket: async (bucket) => void (await ask({ method: 'PUT', path: bucket })),
    removeObject: async (bucket, key) => void (await ask({ method: 'DELETE', path: `${bucket}/${key}` }, 404)),
    removeBucket: async (bucket) => void (await ask({ method: 'DELETE', path: bucket }, 404)),
  }
}

/** What only looks. */
const lookingOf = (
  look: <Answer>(request: StoreRequest, of: (tenant: StoredTenant) => Answer) => Promise<Answer>,
  { scheduler }: ObjectStores,
): Pick<S3, 'buckets' | 'list' | 'head' | 'tagsOf'> => ({
  buckets: () =>
    look({ method: 'GET' }, ({ buckets }) => ({
      names: [...buckets.keys()].toSorted(),
      // As an answer's date has it.
      at: new Date(Math.floor(scheduler.now().getTime() / 1_000) * 1_000),
    })),
  async list(path, after, count) {
    const listed = await look({ method: 'GET', path }, ({ buckets }) => {
      const bucket = buckets.get(path)
      if (bucket === undefined) return undefined
      return [...bucket]
        .filter(([key]) => key > after)
        .toSorted(([one], [other]) => (one < other ? -1 : 1))
        .slice(0, count)
        .map(([key, { content, etag, modifiedAt }]) => ({ key, bytes: content.length, etag, modifiedAt }))
    })
    if (listed === undefined) throw storeRefusal({ method: 'GET', path }, 404, '<Code>NoSuchBucket</Code>')
    return listed
  },
  head: (bucket, key) =>
    look({ method: 'HEAD', path: `${bucket}/${key}` }, ({ buckets }) => {
      const object = buckets.get(bucket)?.get(key)
      return object && { bytes: object.content.length, etag: object.etag, objectHeaders: object.kept }
    }),
  tagsOf: (bucket, key) => look({ method: 'GET' }, ({ buckets }) => buckets.get(bucket)?.get(key)?.tags ?? []),
})

interface Way {
  readonly store: SimulatedStore
  readonly process: SimulatedProcess
  readonly work: (request: StoreRequest, body: string) => Reply
}

/** As a server that streams does: what is sent comes first, and what is read may break off. */
async function stream(stores: ObjectStores, { store, process, work }: Way, request: StoreRequest) {
  let body = request.body?.toString() ?? ''
  if (request.stream !== undefined)
    for await (const chunk of request.stream.content) body += (chunk as Buffer).toString()
  if (request.stream !== undefined && body.length !== request.stream.bytes)
    throw new StoreRefused('less was sent than was said')
  const { status, headers = {}, content = '' } = await reach(stores, store, process, () => work(request, body))
  const isCut = request.method === 'GET' && content !== '' && strikes(stores, 'cutsShort')
  const answer = Readable.from(pieces(content, isCut))
  return Object.assign(answer, { statusCode: status, headers }) as unknown as IncomingMessage // all that is read of it
}

async function* pieces(content: string, isCut: boolean): AsyncGenerator<Buffer> {
  const half = Math.floor(content.length / 2)
  yield Buffer.from(content.slice(0, half))
  if (isCut) throw new Error('simulated store: the answer breaks off')
  yield Buffer.from(content.slice(half))
}

function replyTo({ buckets, settings }: StoredTenant, request: StoreRequest, body: string, now: Date): Reply {
  const { method, path = '', query = {}, headers: sent = {} } = request
  const [name = '', ...rest] = path.split('/')
  const key = rest.join('/')
  if (method !== 'GET' && method !== 'HEAD' && settings.isFrozen) return error(503, 'SlowDown')
  if (key === '') return bucketReply(buckets, method, name)
  const bucket = buckets.get(name)
  if (bucket === undefined) return error(404, 'NoSuchBucket')
  const object = bucket.get(key)
  if (method === 'DELETE') {
    bucket.delete(key)
    return { status: 204 }
  }
  if (method === 'PUT' && 'tagging' in query) {
    if (object === undefined) return error(404, 'NoSuchKey')
    bucket.set(key, { ...object, tags: tagsIn(body) })
    return { status: 200 }
  }
  if (method === 'PUT') {
    const kept = Object.fromEntries(Object.entries(sent).map(([header, value]) => [header.toLowerCase(), `${value}`]))
    bucket.set(key, { content: body, etag: digestOf(body), modifiedAt: now, kept, tags: [] })
    return { status: 200, headers: { etag: `"${digestOf(body)}"` } }
  }
  if (object === undefined) return error(404, 'NoSuchKey')
  return { status: 200, content: object.content, headers: headersOf(object) }
}

const headersOf = ({ content, etag, kept }: StoredObject): Readonly<Record<string, string>> => ({
  ...kept,
  etag: `"${etag}"`,
  'content-length': String(content.length),
})

function bucketReply(buckets: Map<string, Bucket>, method: StoreRequest['method'], name: string): Reply {
  if (method === 'PUT' && !buckets.has(name)) buckets.set(name, new Map())
  if (method !== 'DELETE') return { status: 200 }
  if ((buckets.get(name)?.size ?? 0) > 0) return error(409, 'BucketNotEmpty')
  return buckets.delete(name) ? { status: 204 } : error(404, 'NoSuchBucket')
}

const tagsIn = (xml: string): readonly string[] =>
  [...xml.matchAll(/<Key>(.*?)<\/Key><Value>(.*?)<\/Value>/g)].flatMap(([, name = '', value = '']) => [name, value])
