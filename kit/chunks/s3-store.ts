/** A repository in a bucket of an S3 server: each object is the bucket's object of its name behind a prefix. Requests
 *  are signed with their body's digest, so a server keeps nothing but what was sent. */
import { createHash } from 'node:crypto'
import type { Clock } from '../sys/clock.ts'
import { checkObjectName, isObjectName, type ObjectStore, type StoredObject, StoreFailed } from './object-store.ts'
import { type S3Credentials, type S3Request, signRequest } from './sign-request.ts'

export interface S3Options {
  /** `https://host[:port]/bucket[/prefix]`: the bucket is part of the path. */
  readonly url: URL
  readonly credentials: S3Credentials
  readonly clock: Clock
}

const TIMEOUT_MILLISECONDS = 120_000
const LIST_BYTES_MAXIMUM = 4 * 1024 * 1024
const ERROR_BYTES_MAXIMUM = 65_536
const ERROR_CHARACTERS = 300
const MD5 = /^"?([0-9a-f]{32})"?$/

export function openS3Store({ url, credentials, clock }: S3Options): ObjectStore {
  const [bucket = '', ...prefixes] = url.pathname.split('/').filter((part) => part !== '')
  if (bucket === '') throw new Error(`${url.href} names no bucket`)
  const prefix = prefixes.map((part) => `${part}/`).join('')

  const send = (request: S3Request, maximumBytes: number): Promise<Answer> =>
    withinTime(clock, async (signal) => {
      const { method, url: target, body } = request
      const response = await fetch(target, {
        method,
        headers: signRequest(request, credentials, clock.now()),
        signal,
        redirect: 'error',
        ...(body === undefined ? {} : { body: new Uint8Array(body) }),
      })
      const content = await readBody(response, response.ok ? maximumBytes : ERROR_BYTES_MAXIMUM)
      const isAbsent = response.status === 404 && method !== 'PUT' && !content.includes('NoSuchBucket')
      if (response.ok || isAbsent) return { isAbsent, headers: response.headers, content }
      throw new Error(`status ${response.status}: ${content.toString().slice(0, ERROR_CHARACTERS)}`)
    }).catch((cause: unknown) => {
      throw new StoreFailed(`${request.method} ${request.url.pathname}: ${describe(cause)}`, { cause })
    })
  const objectUrl = (name: string): URL => {
    checkObjectName(name)
    return new URL(`/${bucket}/${prefix}${name}`, url)
  }

  async function listPage(start: string, token: string | undefined): Promise<Page> {
    const target = new URL(`/${bucket}`, url)
    const query = {
      ...(token === undefined ? {} : { 'continuation-token': token }),
      'list-type': '2',
      prefix: `${prefix}${start}`,
    }
    target.search = Object.entries(query)
      .map(([name, value]) => `${name}=${escape(value)}`)
      .join('&')
    return readPage((await send({ method: 'GET', url: target }, LIST_BYTES_MAXIMUM)).content.toString(), prefix)
  }

  return {
    async put(name, body) {
      const { headers } = await send({ method: 'PUT', url: objectUrl(name), body }, LIST_BYTES_MAXIMUM)
      const held = MD5.exec(headers.get('etag') ?? '')?.[1] // of servers that encrypt it is no digest of the content
      if (held !== undefined && held !== createHash('md5').update(body).digest('hex'))
        throw new StoreFailed(`the store holds other bytes as ${name} than were sent`)
    },
    settle: async () => {}, // what a bucket has acknowledged it keeps
    async get(name, maximumBytes) {
      const { isAbsent, headers, content } = await send({ method: 'GET', url: objectUrl(name) }, maximumBytes)
      if (isAbsent) return undefined
      const length = headers.get('content-length')
      if (length !== null && Number(length) !== content.length)
        throw new StoreFailed(`the store sent ${content.length} of ${length} bytes of ${name}`)
      return { bytes: content, modifiedAt: dateOf(headers.get('last-modified')) }
    },
    async *list(start) {
      let token: string | undefined
      do {
        const page = await listPage(start, token)
        yield* page.objects
        token = page.token
      } while (token !== undefined)
    },
    async remove(name) {
      await send({ method: 'DELETE', url: objectUrl(name) }, LIST_BYTES_MAXIMUM)
    },
  }
}

/** Of an answer without a usable date: long ago. */
function dateOf(text: string | null): Date {
  const at = new Date(text ?? Number.NaN)
  return Number.isNaN(at.getTime()) ? new Date(0) : at
}

/** As signatures need it: everything but letters, digits and `-_.~`. */
const escape = (value: string): string =>
  encodeURIComponent(value).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

interface Answer {
  readonly isAbsent: boolean
  readonly headers: Headers
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

async function readBody({ body }: Response, maximumBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.length
    if (bytes > maximumBytes) throw new Error(`the answer has more than ${maximumBytes} bytes`)
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
 *  those that this product writes; others are left out, or end the list with an error. */
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
