/** Answers to plain reads, as the client asks for them: not sent again when it has them (`If-None-Match`), and
 *  compressed when it accepts that (RFC 9110). Answers with secrets are left as they are: the length of a compressed
 *  answer reveals what it has in common with text that an attacker chose. */
import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { RequestFacts } from './call.ts'
import type { HttpResponse } from './exchange.ts'
import type { Route } from './route.ts'

/** Shorter answers fit in one packet with their headers. */
const COMPRESSED_BYTES_MINIMUM = 1024
/** Quality 5 makes a page of 100 servers 6 % smaller, in twice the time. */
const BROTLI_QUALITY = 4

const CODERS = {
  br: (bytes: Uint8Array): Promise<Buffer> =>
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
  gzip: (bytes: Uint8Array): Promise<Buffer> => promisify(gzip)(bytes),
} as const
type Coding = keyof typeof CODERS
const CODINGS = ['br', 'gzip'] as const satisfies readonly Coding[]

/** Whether the answers of the route may be compressed, and have a tag by which a client can ask for a newer one:
 *  documents that are read, without secrets. */
export const isPlainRead = ({ method, mediaType, isCredentialRead, secretFields, answers }: Route): boolean =>
  method === 'GET' &&
  mediaType === 'application/json' &&
  !isCredentialRead &&
  secretFields.length === 0 &&
  Object.hasOwn(answers, 200)

/** What was computed from the bytes of an answer. Lists answer the same bytes until something in them changes. */
interface Representation {
  readonly tag: string
  readonly coded: Map<Coding, Promise<Buffer>>
}
const known = new WeakMap<Uint8Array, Representation>()

const TAG_CHARACTERS = 22 // 132 bits

/** Of the bytes, so that it is weak: the same for every coding. */
const tagOf = (body: string | Uint8Array): string => `W/"${hash('sha256', body, 'base64url').slice(0, TAG_CHARACTERS)}"`

function knowledgeOf(body: string | Uint8Array): Representation {
  const found = typeof body === 'string' ? undefined : known.get(body)
  if (found !== undefined) return found
  const knowledge = { tag: tagOf(body), coded: new Map<Coding, Promise<Buffer>>() }
  if (typeof body !== 'string') known.set(body, knowledge)
  return knowledge
}

/** The response to a plain read: 304 without a body when the client has the same bytes, else compressed when it is
 *  longer than 1 kB and the client accepts that. An answer that has a tag already is never 304: that tag names a
 *  version of what was desired, and the observed state changes without it. */
export async function represent(request: Pick<RequestFacts, 'header'>, response: HttpResponse): Promise<HttpResponse> {
  const { body } = response
  if (response.status !== 200 || (typeof body !== 'string' && !(body instanceof Uint8Array))) return response
  const headers = { ...response.headers, vary: 'accept-encoding' }
  const knowledge = knowledgeOf(body)
  const etag = response.headers['etag'] ?? knowledge.tag
  if (etag === knowledge.tag && hasTag(request.header('if-none-match'), etag)) {
    const entries = Object.entries(headers).filter(([name]) => name !== 'content-type')
    return { status: 304, headers: { ...Object.fromEntries(entries), etag }, body: '' }
  }
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const coding = length > COMPRESSED_BYTES_MINIMUM ? codingOf(request.header('accept-encoding')) : undefined
  if (coding === undefined) return { ...response, headers: { ...headers, etag } }
  const coded = knowledge.coded.get(coding) ?? CODERS[coding](typeof body === 'string' ? Buffer.from(body) : body)
  knowledge.coded.set(coding, coded)
  coded.catch(() => knowledge.coded.delete(coding)) // the next request tries again
  return { status: 200, headers: { ...headers, etag, 'content-encoding': coding }, body: await coded }
}

/** Weak comparison; `*` has no meaning for a client that wants to know whether something changed. */
export const hasTag = (wanted: string | undefined, tag: string): boolean =>
  wanted !== undefined && wanted.split(',').some((each) => weak(each.trim()) === tag)
const weak = (tag: string): string => (tag.startsWith('W/') ? tag : `W/${tag}`)

/** The smallest coding that the client accepts; undefined for none. A quality of 0 refuses one, and `*` means those
 *  that are not named. */
export function codingOf(accepted: string | undefined): Coding | undefined {
  if (accepted === undefined) return undefined
  const qualities = new Map(
    accepted.split(',').map((part) => {
      const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
      const quality = parameters.find((text) => text.startsWith('q='))?.slice('q='.length)
      return [name, quality === undefined ? 1 : Number(quality) || 0] as const
    }),
  )
  const qualityOf = (coding: string) => qualities.get(coding) ?? qualities.get('*') ?? 0
  const [best] = [...CODINGS].sort((one, other) => qualityOf(other) - qualityOf(one))
  return best !== undefined && qualityOf(best) > 0 ? best : undefined
}
