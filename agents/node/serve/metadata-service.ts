/** The metadata service at 169.254.169.254, as one pure function from request to answer. `metadata-http.ts` serves it.
 *  A program in the guest that can be tricked into fetching a URL must not be able to read secrets. So every path needs
 *  a token that only a PUT with a header returns, and requests that a proxy forwarded or that name another Host are
 *  refused. cloud-init cannot get a token: the NoCloud paths are open to requests with its user agent. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { METADATA_ADDRESS } from '../../../domain/network/metadata-service.ts'
import { type MetadataDocument, metaDataText, networkConfigText, NO_USER_DATA } from './metadata.ts'

const TOKEN_SECONDS_MAXIMUM = 21_600

export interface MetadataRequest {
  readonly method: string
  readonly path: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export interface MetadataAnswer {
  readonly status: number
  readonly type: 'text/plain; charset=utf-8' | 'application/json' | 'application/octet-stream'
  readonly body: string | Buffer
}

/** The requesting guest. */
export interface RequestingGuest {
  /** The metadata setting of its server. */
  readonly isEnabled: boolean
  readonly document: MetadataDocument
  readonly userData: () => Promise<Buffer | undefined>
  /** Key for its tokens; tokens of other guests are invalid. */
  readonly tokenKey: string
}

const text = (status: number, body: string): MetadataAnswer => ({
  status,
  type: 'text/plain; charset=utf-8',
  body: `${body}\n`,
})
const raw = (body: string | Buffer, type: MetadataAnswer['type'] = 'text/plain; charset=utf-8'): MetadataAnswer => ({
  status: 200,
  type,
  body,
})

/** Documents by path; each is created on request. */
const DOCUMENTS: Readonly<
  Record<string, (guest: RequestingGuest) => Promise<MetadataAnswer | undefined> | MetadataAnswer>
> = {
  '/metadata/v1.json': ({ document }) => raw(`${JSON.stringify(document)}\n`, 'application/json'),
  '/metadata/v1/user_data': async ({ userData }) => {
    const bytes = await userData()
    return bytes === undefined ? undefined : raw(bytes, 'application/octet-stream')
  },
  '/metadata/v1/network-config': ({ document }) => raw(networkConfigText(document)),
}

/** cloud-init requests each of these and treats 404 as an error, so all of them have an answer. */
const NO_CLOUD: typeof DOCUMENTS = {
  '/meta-data': ({ document }) => raw(metaDataText(document)),
  '/user-data': async ({ userData }) => raw((await userData()) ?? NO_USER_DATA, 'application/octet-stream'),
  '/vendor-data': ({ document }) => raw(document.vendor_data ?? ''),
  '/network-config': ({ document }) => raw(networkConfigText(document)),
}

/** Also answers unknown paths. Throws Unavailable when the user data cannot be read now. */
export async function answerMetadata(
  request: MetadataRequest,
  guest: RequestingGuest,
  now: Date,
): Promise<MetadataAnswer> {
  const { method, headers } = request
  const path = request.path.split('?', 1)[0] ?? ''
  if (!guest.isEnabled) return text(404, 'The metadata service is switched off for this server.')
  if (headers['x-forwarded-for'] !== undefined) return text(403, 'Requests that came through a proxy are refused.')
  if (headers['host'] !== undefined && String(headers['host']).replace(/:80$/, '') !== METADATA_ADDRESS)
    return text(403, `The Host must be ${METADATA_ADDRESS}.`)
  if (path === '/metadata/v1/token')
    return method === 'PUT'
      ? newToken(headers['x-metadata-token-ttl'], guest, now)
      : text(405, 'A token is asked for with PUT.')
  const document = DOCUMENTS[path] ?? NO_CLOUD[path]
  if (document === undefined) return text(404, 'There is nothing here.')
  if (method !== 'GET' && method !== 'HEAD') return text(405, 'Only GET is offered here.')
  const isCloudInit = path in NO_CLOUD && /^cloud-init\//i.test(String(headers['user-agent'] ?? ''))
  if (!isCloudInit && !isToken(headers['x-metadata-token'], guest, now))
    return text(401, 'Ask for a token with PUT /metadata/v1/token, and send it as X-Metadata-Token.')
  return (await document(guest)) ?? text(404, 'The server has no user data.')
}

function newToken(
  lifetime: string | readonly string[] | undefined,
  { tokenKey }: RequestingGuest,
  now: Date,
): MetadataAnswer {
  const seconds = typeof lifetime === 'string' && /^\d{1,5}$/.test(lifetime) ? Number(lifetime) : 0
  if (seconds < 1 || seconds > TOKEN_SECONDS_MAXIMUM)
    return text(400, `X-Metadata-Token-TTL must be 1 to ${TOKEN_SECONDS_MAXIMUM} seconds.`)
  const expiry = String(Math.floor(now.getTime() / 1_000) + seconds)
  return raw(`${expiry}.${sign(expiry, tokenKey)}`)
}

/** Tokens are not stored: a token contains its expiry, signed with this guest's key. */
function isToken(token: string | readonly string[] | undefined, { tokenKey }: RequestingGuest, now: Date): boolean {
  const [, expiry, signature] = /^(\d{1,12})\.([0-9a-f]{64})$/.exec(typeof token === 'string' ? token : '') ?? []
  if (expiry === undefined || signature === undefined || Number(expiry) * 1_000 < now.getTime()) return false
  return timingSafeEqual(Buffer.from(signature), Buffer.from(sign(expiry, tokenKey)))
}

const sign = (expiry: string, key: string): string => createHmac('sha256', key).update(expiry).digest('hex')
