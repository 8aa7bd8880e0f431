/** A repository in a bucket of an S3 server: each object is the bucket's object of its name behind a prefix. Requests
 *  are signed with the digest of their body, so a server stores exactly what was sent. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { defined } from '../../domain/defined.ts'
import { openExchange, type StoreAddress, type StoreRequest } from '../s3/exchange.ts'
import type { Clock } from '../sys/clock.ts'
import {
  checkObjectName,
  isObjectName,
  type ObjectStore,
  StoreAway,
  type StoredObject,
  StoreFailed,
} from './object-store.ts'

export interface S3Options {
  /** `https://host[:port]/bucket[/prefix]`: the bucket is part of the path. */
  readonly url: URL
  /** PEM of the authority of its certificate; none when that is publicly trusted. */
  readonly authority?: string | null
  readonly credentials: StoreAddress['credentials']
  readonly clock: Clock
}

const TIMEOUT_MILLISECONDS = 120_000
const LIST_BYTES_MAXIMUM = 4 * 1024 * 1024
const ERROR_BYTES_MAXIMUM = 65_536
const ERROR_CHARACTERS = 300
const MD5 = /^"?([0-9a-f]{32})"?$/
const NOT_FOUND = 404
const TOO_MANY_REQUESTS = 429
const SERVER_ERROR = 500

/** The server refused permanently. */
class Refused extends Error {}

export function openS3Store({ url, authority = null, credentials, clock }: S3Options): ObjectStore {
  const [bucket = '', ...prefixes] = url.pathname.split('/').filter((part) => part !== '')
  if (bucket === '') throw new Error(`${url.href} names no bucket`)
  const prefix = prefixes.map((part) => `${part}/`).join('')
  const exchange = openExchange({ url: url.origin, authority, credentials, clock })

  const send = (request: StoreRequest, maximumBytes: number): Promise<Answer> =>
    withinTime(clock, async (signal) => {
      const answer = await exchange.ask(request, signal)
      const { statusCode: status = SERVER_ERROR, headers } = answer
      const isOk = status >= 200 && status < 300
      const content = await readBody(answer, isOk ? maximumBytes : ERROR_BYTES_MAXIMUM)
      const isAbsent = status === NOT_FOUND && request.method !== 'PUT' && !content.includes('NoSuchBucket')
      if (isOk || isAbsent) return { isAbsent, headers, content }
      const what = `status ${status}: ${content.toString().slice(0, ERROR_CHARACTERS)}`
      throw status >= SERVER_ERROR || status === TOO_MANY_REQUESTS ? new Error(what) : new Refused(what)
    }).catch((cause: unknown) => {
      const what = `${request.method} /${request.path ?? ''}: ${describe(cause)}`
      throw cause instanceof Refused ? new StoreFailed(what, { cause }) : new StoreAway(what, { cause })
    })
  const pathOf = (name: string): string => {
    checkObjectName(name)
    return `${bucket}/${prefix}${name}`
  }

  async function listPage(start: string, token: string | undefined): Promise<Page> {
    const query = {
      ...defined({ 'continuation-token': token }),
      'list-type': '2',
      prefix: `${prefix}${start}`,
    }
    const { content } = await send({ method: 'GET', path: bucket, query }, LIST_BYTES_MAXIMUM)
    return readPage(content.toString(), prefix)
  }

  return {
    async put(name, body) {
      const { headers } = await send({ method: 'PUT', path: pathOf(name), body }, LIST_BYTES_MAXIMUM)
      const held = MD5.exec(headers.etag ?? '')?.[1] // servers that encrypt return no content digest
      if (held !== undefined && held !== createHash('md5').update(body).digest('hex'))
        throw new StoreFailed(`the store holds other bytes as ${name} than were sent`)
    },
    settle: async () => {}, // a bucket keeps what it has acknowledged
    async get(name, maximumBytes) {
      const { isAbsent, headers, content } = await send({ method: 'GET', path: pathOf(name) }, maximumBytes)
      if (isAbsent) return undefined
      const length = headers['content-length']
      if (length !== undefined && Number(length) !== content.length)
        throw new StoreFailed(`the store sent ${content.length} of ${length} bytes of ${name}`)
      return { bytes: content, modifiedAt: dateOf(headers['last-modified']) }
    },
    async *list(start) {
      const tokens = new Set<string>()
      for (let token: string | undefined; ; tokens.add(token)) {
        const page = await listPage(start, token)
        yield* page.objects
        token = page.token
        if (token === undefined) return
        if (tokens.has(token)) throw new StoreFailed('the store answers the same pages of a list again')
      }
    },
    async remove(name) {
      await send({ method: 'DELETE', path: pathOf(name) }, LIST_BYTES_MAXIMUM)
    },
  }
}

/** For an answer without a usable date: long ago. */
function dateOf(text: string | undefined): Date {
  const at = new Date(text ?? Number.NaN)
  return Number.isNaN(at.getTime()) ? new Date(0) : at
}

interface Answer {
  readonly isAbsent: boolean
  readonly headers: IncomingMessage['headers']
  readonly content: Buffer
}

async function withinTime<Result>(clock: Clock, work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const deadline = new AbortController()
  const cancel = clock.after(TIMEOUT_MILLISECONDS, () => deadline.abort(new Error('the store does not answer')))
  try {
    return await work(deadline.signal)
  } finally {
    cancel()
  }
}

async function readBody(answer: IncomingMessage, maximumBytes: number): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  // Without an encoding parts are bytes.
  for await (const part of answer as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > maximumBytes) throw new Refused(`the answer has more than ${maximumBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

interface Page {
  readonly objects: readonly StoredObject[]
  /** Of the next page. */
  readonly token: string | undefined
}

/** The few elements of a ListObjectsV2 answer that are needed. Names and tokens that need no unescaping in XML are
 *  those that this product writes; others are left out, or abort the list with an error. */
function readPage(xml: string, prefix: string): Page {
  if (!xml.includes('<ListBucketResult')) throw new StoreFailed('the store answers a list with something else')
  const valueOf = (text: string, element: string): string | undefined =>
    new RegExp(`<${element}>([^<]*)</${element}>`).exec(text)?.[1]
  const objects = [...xml.matchAll(/<Contents>(.*?)<\/Contents>/gs)].flatMap(([, content = '']) => {
    const key = valueOf(content, 'Key') ?? ''
    const modifiedAt = new Date(valueOf(content, 'LastModified') ?? '')
    const name = key.slice(prefix.length)
    const isOurs = key.startsWith(prefix) && isObjectName(name) && !Number.isNaN(modifiedAt.getTime())
    return isOurs ? [{ name, modifiedAt }] : []
  })
  const token = valueOf(xml, 'NextContinuationToken')?.replaceAll('&amp;', '&')
  if (valueOf(xml, 'IsTruncated') === 'true' && token === undefined)
    throw new StoreFailed('the store does not say how its list goes on')
  return { objects, token }
}

const describe = (error: unknown): string => {
  const message = error instanceof Error ? error.message : String(error)
  return error instanceof Error && error.cause instanceof Error ? `${message}: ${error.cause.message}` : message
}
