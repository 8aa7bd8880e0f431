/** The parts of a request as received: path and parameters decoded once, headers by lower-case name. Pure. */
import { invalidArgument, invalidRequest } from './refusal.ts'

export interface RawRequest {
  readonly method: string
  /** As in the request line. */
  readonly target: string
  /** Names and values alternate, as received. */
  readonly rawHeaders: readonly string[]
}

export type Headers = ReadonlyMap<string, string>
export type Parameters = ReadonlyMap<string, string>

/** Characters that RFC 3986 allows in a path and a query; anything else must be escaped. Other readers cut the text at
 *  a different character, or keep it. */
const PLAIN = /^[A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*$/
const ESCAPES = /%(?![0-9A-Fa-f]{2})/
const PARAMETERS_MAXIMUM = 64

/** Decoded once; a "+" stays a "+". */
function decode(text: string): string {
  try {
    if (!text.includes('%')) return text
    if (!ESCAPES.test(text)) return decodeURIComponent(text)
  } catch {
    // Not UTF-8.
  }
  throw invalidRequest('The address is not encoded as a URL.')
}

/** The bucket must not be escaped in the path, so that nobody decodes it into another one. */
export function readPath(path: string): { readonly bucket: string | undefined; readonly key: string | undefined } {
  if (!path.startsWith('/')) throw invalidRequest('The path must be absolute.')
  if (!PLAIN.test(path)) throw invalidRequest('The address is not encoded as a URL.')
  if (path === '/') return { bucket: undefined, key: undefined }
  const index = path.indexOf('/', 1)
  if (index < 0) return { bucket: path.slice(1), key: undefined }
  const key = decode(path.slice(index + 1))
  return { bucket: path.slice(1, index), key: key === '' ? undefined : key }
}

/** Throws the Refusal for a name that is present twice, in any case. */
export function readParameters(search: string): Parameters {
  if (!PLAIN.test(search)) throw invalidRequest('The address is not encoded as a URL.')
  const parameters = new Map<string, string>()
  const names = new Set<string>()
  for (const part of search.split('&')) {
    if (part === '') continue
    const index = part.indexOf('=')
    const name = decode(index < 0 ? part : part.slice(0, index))
    const value = index < 0 ? '' : decode(part.slice(index + 1).replaceAll('+', '%20'))
    if (value.includes('\0')) throw invalidArgument(`${name} has a byte 0.`)
    if (names.has(name.toLowerCase())) throw invalidArgument(`${name} may be given once.`)
    if (names.size >= PARAMETERS_MAXIMUM) throw invalidArgument('There are too many parameters.')
    names.add(name.toLowerCase())
    parameters.set(name, value)
  }
  return parameters
}

/** A second value of these could be read by one reader and overlooked by another. */
const SINGLE: ReadonlySet<string> = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-md5',
  'content-type',
  'date',
  'expect',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-unmodified-since',
  'range',
  'transfer-encoding',
])

export function readHeaders(rawHeaders: readonly string[]): Headers {
  const headers = new Map<string, string>()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase()
    const value = rawHeaders[index + 1] ?? ''
    const before = headers.get(name)
    const isMetadata = name.startsWith('x-amz-meta-')
    if (before !== undefined && (SINGLE.has(name) || (name.startsWith('x-amz-') && !isMetadata)))
      throw invalidRequest(`${name} may be sent once.`)
    headers.set(name, before === undefined ? value : `${before},${value}`)
  }
  return headers
}
