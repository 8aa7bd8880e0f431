/** Fetches a file by HTTPS from the public Internet, and from nowhere else. Every address is checked before a
 *  connection, at every redirect, and the connection uses the checked address itself. So a name that resolves to
 *  something else a moment later gains nothing. Runs in a separate process (`fetch-process.ts`). */
import type { LookupAddress } from 'node:dns'
import { lookup as systemLookup, Resolver } from 'node:dns/promises'
import { write } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { rootCertificates } from 'node:tls'
import { isPublicAddress } from '../../../../domain/network/public-address.ts'

export interface FetchRequest {
  readonly url: string
  readonly maximumBytes: number
  /** Longest pause without data. */
  readonly idleMilliseconds: number
  readonly trust?: TestTrust | undefined
}

/** Additions to the Internet for tests. Only parameters of functions: no setting can reach them. */
export interface TestTrust {
  /** Addresses that count as public. */
  readonly addresses: readonly string[]
  /** Certificates of certificate authorities, PEM. */
  readonly authorities: readonly string[]
  /** Address and port of the name server to use instead of the system's. */
  readonly nameServer?: string
}

export type FetchResult =
  | { readonly isFetched: true; readonly bytes: number }
  | { readonly isFetched: false; readonly reason: string }

const REDIRECTS_MAXIMUM = 5
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]
const ADDRESSES_MAXIMUM = 16

class FetchRefused extends Error {}

/** Writes the body to the descriptor. Never throws: the result contains errors. */
export async function fetchTo(descriptor: number, { url, ...options }: FetchRequest): Promise<FetchResult> {
  try {
    return { isFetched: true, bytes: await fetchBody(descriptor, url, options) }
  } catch (error) {
    return { isFetched: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

async function fetchBody(descriptor: number, url: string, options: Omit<FetchRequest, 'url'>): Promise<number> {
  let at = parseUrl(url)
  for (let redirects = 0; ; redirects++) {
    const response = await get(at, options)
    const { statusCode = 0, headers } = response
    if (statusCode === 200) return writeBody(descriptor, response, options.maximumBytes)
    response.destroy()
    if (!REDIRECTS.includes(statusCode) || headers.location === undefined)
      throw new FetchRefused(`${at.host} answered ${statusCode}`)
    if (redirects === REDIRECTS_MAXIMUM) throw new FetchRefused(`more than ${REDIRECTS_MAXIMUM} redirects`)
    at = parseUrl(headers.location, at)
  }
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null) throw new FetchRefused('the address is no URL')
  if (url.protocol !== 'https:') throw new FetchRefused('only https is fetched')
  if (url.username !== '' || url.password !== '') throw new FetchRefused('the URL holds credentials')
  return url
}

function get(url: URL, { idleMilliseconds, trust }: Omit<FetchRequest, 'url'>): Promise<IncomingMessage> {
  const isAllowed = (address: string) => isPublicAddress(address) || trust?.addresses.includes(address) === true
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Names are checked during the lookup; a literal address has no lookup.
  if (isIP(host) !== 0 && !isAllowed(host)) return Promise.reject(notPublic(host))
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      agent: false, // no connection may outlive its check
      lookup: judgedLookup(isAllowed, trust?.nameServer),
      ...(trust === undefined ? {} : { ca: [...rootCertificates, ...trust.authorities] }),
      minVersion: 'TLSv1.2',
      headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'svccloud-importer' },
    })
    let received: IncomingMessage | undefined
    sent.setTimeout(idleMilliseconds, () => (received ?? sent).destroy(new FetchRefused(`${url.host} sends nothing`)))
    sent.once('response', (response) => {
      received = response
      resolve(response)
    })
    sent.on('error', reject)
    sent.end()
  })
}

const notPublic = (name: string) => new FetchRefused(`${name} is not a public address`)

/** Returns the addresses of a name, all of which are public. */
function judgedLookup(isAllowed: (address: string) => boolean, nameServer: string | undefined): LookupFunction {
  return (name, options, done) => {
    resolve(name, nameServer).then(
      (found) => {
        const addresses = found.slice(0, ADDRESSES_MAXIMUM)
        const [first] = addresses
        if (first === undefined || !addresses.every(({ address }) => isAllowed(address))) done(notPublic(name), '')
        else if (options.all === true) done(null, addresses)
        else done(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    )
  }
}

async function resolve(name: string, nameServer: string | undefined): Promise<LookupAddress[]> {
  if (nameServer === undefined) return systemLookup(name, { all: true })
  const resolver = new Resolver({ tries: 1 })
  resolver.setServers([nameServer])
  return (await resolver.resolve4(name)).map((address) => ({ address, family: 4 }))
}

/** Returns the number of bytes. */
async function writeBody(descriptor: number, response: IncomingMessage, maximumBytes: number): Promise<number> {
  const tooLarge = () => new FetchRefused(`the file is larger than ${maximumBytes} bytes`)
  const { 'content-length': length, 'content-encoding': encoding = 'identity' } = response.headers
  if (encoding !== 'identity') throw new FetchRefused(`the server sends the file as ${encoding}`)
  if (length !== undefined && Number(length) > maximumBytes) throw tooLarge()
  let bytes = 0
  // without an encoding it yields buffers
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maximumBytes) throw tooLarge()
    await writeWhole(descriptor, chunk)
  }
  if (!response.complete) throw new FetchRefused('the connection was lost before the end of the file')
  return bytes
}

async function writeWhole(descriptor: number, chunk: Buffer): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += await writeSome(descriptor, chunk.subarray(at))
}

const writeSome = (descriptor: number, bytes: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    write(descriptor, bytes, (error, written) => (error === null ? resolve(written) : reject(error)))
  })
