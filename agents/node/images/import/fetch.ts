/** Fetches a file by HTTPS from the public Internet, and from nowhere else. Every address is checked before a
 *  connection, at every redirect, and the connection uses the checked address itself. So a name that resolves to
 *  something else a moment later gains nothing. Runs in a separate process (`fetch-process.ts`). */
import { write } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { parsePublicUrl, publicOnly, type TestTrust } from '../../../../integrations/public-internet/lookup.ts'

export interface FetchRequest {
  readonly url: string
  readonly maximumBytes: number
  /** Longest pause without data. */
  readonly idleMilliseconds: number
  readonly trust?: TestTrust | undefined
}

export type FetchResult =
  | { readonly isFetched: true; readonly bytes: number }
  | { readonly isFetched: false; readonly reason: string }

const REDIRECTS_MAXIMUM = 5
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]

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
  let at = parsePublicUrl(url)
  for (let redirects = 0; ; redirects++) {
    const response = await get(at, options)
    const { statusCode = 0, headers } = response
    if (statusCode === 200) return writeBody(descriptor, response, options.maximumBytes)
    response.destroy()
    if (!REDIRECTS.includes(statusCode) || headers.location === undefined)
      throw new FetchRefused(`${at.host} answered ${statusCode}`)
    if (redirects === REDIRECTS_MAXIMUM) throw new FetchRefused(`more than ${REDIRECTS_MAXIMUM} redirects`)
    at = parsePublicUrl(headers.location, at)
  }
}

function get(url: URL, { idleMilliseconds, trust }: Omit<FetchRequest, 'url'>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      ...publicOnly(url, trust),
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
