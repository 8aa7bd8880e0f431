/** Signature version 4 of Amazon's S3, in the header or in the address: what is signed, and how a server reads and
 *  verifies it. Source: "Authenticating Requests (AWS Signature Version 4)" of its API reference. Pure. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { accessDenied, invalidRequest, S3Refusal } from './refusal.ts'
import { type Headers, type Parameters, type RawRequest, readHeaders, readParameters } from './target.ts'

export interface Signature {
  readonly kind: 'header' | 'address'
  readonly accessKeyId: string
  /** `YYYYMMDD`. */
  readonly day: string
  readonly region: string
  /** `YYYYMMDDTHHMMSSZ`, as it was signed. */
  readonly instant: string
  readonly signedHeaders: readonly string[]
  /** Hexadecimal. */
  readonly signature: string
  /** For a signature in an address. */
  readonly expiresSeconds: number | undefined
}

export const ALGORITHM = 'AWS4-HMAC-SHA256'
const SERVICE = 's3'
const SKEW_MILLISECONDS = 15 * 60_000
const EXPIRES_SECONDS_MAXIMUM = 604_800
const AUTHORIZATION = new RegExp(
  `^${ALGORITHM} +Credential=([^\\s,=]+), *SignedHeaders=([a-z0-9!#$%&'*+.^_|~;-]+), *Signature=([0-9a-f]{64})$`,
)
const CREDENTIAL = /^([A-Za-z0-9]{1,128})\/(\d{8})\/([A-Za-z0-9_.-]{1,64})\/s3\/aws4_request$/
const INSTANT = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/
const OLD = ['AWSAccessKeyId', 'Signature', 'Expires']

/** Throws the Refusal when nothing is signed, or with another method. */
export function readSignature(headers: Headers, parameters: Parameters): Signature {
  const authorization = headers.get('authorization')
  const names = [...parameters.keys()]
  const isInAddress = names.some((name) => /^x-amz-(?:credential|signature|algorithm)$/i.test(name))
  if (names.some((name) => OLD.includes(name))) throw useVersion4()
  if (authorization === undefined && !isInAddress) throw accessDenied()
  if (authorization !== undefined && isInAddress) throw invalidRequest('Sign a request once.')
  return authorization === undefined ? inAddress(parameters) : inHeader(authorization, headers)
}

const useVersion4 = () =>
  invalidRequest(`The authorization mechanism you have provided is not supported. Please use ${ALGORITHM}.`)

function inHeader(authorization: string, headers: Headers): Signature {
  const [, credential, signed = '', signature = ''] = AUTHORIZATION.exec(authorization) ?? []
  if (credential === undefined) throw useVersion4()
  const instant = headers.get('x-amz-date') ?? headers.get('date') ?? ''
  return {
    kind: 'header',
    ...scopeOf(credential, instant),
    instant,
    ...partsOf(signed, signature),
    expiresSeconds: undefined,
  }
}

function inAddress(parameters: Parameters): Signature {
  const valueOf = (name: string): string => parameters.get(name) ?? ''
  if (valueOf('X-Amz-Algorithm') !== ALGORITHM) throw useVersion4()
  const [instant, expires] = [valueOf('X-Amz-Date'), valueOf('X-Amz-Expires')]
  const signature = valueOf('X-Amz-Signature')
  if (!/^\d{1,6}$/.test(expires) || Number(expires) > EXPIRES_SECONDS_MAXIMUM || !/^[0-9a-f]{64}$/.test(signature))
    throw new S3Refusal(400, 'AuthorizationQueryParametersError', 'The parameters of the signature are not whole.')
  return {
    kind: 'address',
    ...scopeOf(valueOf('X-Amz-Credential'), instant),
    instant,
    ...partsOf(valueOf('X-Amz-SignedHeaders'), signature),
    expiresSeconds: Number(expires),
  }
}

const partsOf = (signed: string, signature: string): Pick<Signature, 'signedHeaders' | 'signature'> => ({
  signedHeaders: signed.split(';').toSorted(),
  signature,
})

function scopeOf(credential: string, instant: string): Pick<Signature, 'accessKeyId' | 'day' | 'region'> {
  const [, accessKeyId, day, region] = CREDENTIAL.exec(credential) ?? []
  if (accessKeyId === undefined || day === undefined || region === undefined)
    throw new S3Refusal(400, 'AuthorizationHeaderMalformed', 'The credential is <key>/<day>/<region>/s3/aws4_request.')
  if (!INSTANT.test(instant) || !instant.startsWith(day))
    throw new S3Refusal(403, 'AccessDenied', 'A signed request says when it was signed: x-amz-date.')
  return { accessKeyId, day, region }
}

/** SHA-256 of bytes, in the format of headers. */
const sha256 = (text: string): string => createHash('sha256').update(text, 'latin1').digest('hex')
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** The key with which a secret signs on one day in one region. */
export function signingKey(secretAccessKey: string, day: string, region: string): Buffer {
  let key = hmac(`AWS4${secretAccessKey}`, day)
  for (const text of [region, SERVICE, 'aws4_request']) key = hmac(key, text)
  return key
}

/** Returns the same as `signingKey`, which takes longer than the rest of a verification. */
export type SigningKeys = (secretAccessKey: string, scope: Pick<Signature, 'day' | 'region'>) => Buffer

const KEYS_MAXIMUM = 1_024

/** Caches the keys of recent signers. */
export function openSigningKeys(): SigningKeys {
  const keys = new Map<string, Buffer>()
  return (secretAccessKey, { day, region }) => {
    const name = `${day}/${region}/${secretAccessKey}`
    const key = keys.get(name) ?? signingKey(secretAccessKey, day, region)
    keys.delete(name)
    keys.set(name, key)
    const [oldest] = keys.keys()
    if (keys.size > KEYS_MAXIMUM && oldest !== undefined) keys.delete(oldest)
    return key
  }
}

export const scopeText = ({ day, region }: Pick<Signature, 'day' | 'region'>): string =>
  `${day}/${region}/${SERVICE}/aws4_request`

/** Escapes for signatures: everything but letters, digits and `-_.~`. */
export const escapeForSignature = (value: string): string =>
  encodeURIComponent(value).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/** `YYYYMMDDTHHMMSSZ`. */
export const instantText = (at: Date): string => `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`

/** The value of the header `authorization`. */
export const authorizationOf = (
  signature: Pick<Signature, 'accessKeyId' | 'day' | 'region' | 'signedHeaders'>,
  text: string,
): string =>
  [
    `${ALGORITHM} Credential=${signature.accessKeyId}/${scopeText(signature)}`,
    `SignedHeaders=${signature.signedHeaders.join(';')}`,
    `Signature=${text}`,
  ].join(', ')

interface Canonical {
  readonly method: string
  /** Escaped by `escapeForSignature`, segment by segment. */
  readonly path: string
  /** Escaped likewise, and sorted. */
  readonly query: string
  readonly headers: Headers
  /** Signed names without a line: the request is sent without these headers. */
  readonly absent?: readonly string[]
  /** The digest of the body, or the value that replaces it. */
  readonly payload: string
}

/** The signed form of a request. Several spaces in a header count as one. */
export const canonicalText = (
  { method, path, query, headers, absent = [], payload }: Canonical,
  { signedHeaders }: Pick<Signature, 'signedHeaders'>,
): string =>
  [
    method,
    path,
    query,
    ...signedHeaders
      .filter((name) => !absent.includes(name))
      .map((name) => `${name}:${(headers.get(name) ?? '').trim().replaceAll(/ {2,}/g, ' ')}`),
    '',
    signedHeaders.join(';'),
    payload,
  ].join('\n')

/** Hexadecimal: the signature of the canonical text, with the key of its day and region. */
export const signatureOfText = (
  canonical: string,
  signature: Pick<Signature, 'day' | 'region' | 'instant'>,
  key: Buffer,
): string =>
  hmac(key, [ALGORITHM, signature.instant, scopeText(signature), sha256(canonical)].join('\n')).toString('hex')

/** As `signatureOfText`, for a request as received. */
export const signatureOf = (request: RawRequest, signature: Signature, key: Buffer): string =>
  signatureOfText(canonicalRequest(request, signature), signature, key)

/** Throws the Refusal for a signature that was not made with the key, or is not current. */
export function prove(request: RawRequest, signature: Signature, key: Buffer, now: Date): void {
  const at = instantOf(signature.instant).getTime()
  const { expiresSeconds } = signature
  const isLate = expiresSeconds === undefined ? false : at + expiresSeconds * 1_000 < now.getTime()
  if (isLate) throw accessDenied('Request has expired')
  const isSkewed = Math.abs(at - now.getTime()) > SKEW_MILLISECONDS
  if (expiresSeconds === undefined && isSkewed)
    throw new S3Refusal(
      403,
      'RequestTimeTooSkewed',
      'The difference between the request time and the current time is too large.',
    )
  const expected = Buffer.from(signatureOf(request, signature, key))
  if (!timingSafeEqual(expected, Buffer.from(signature.signature)))
    throw new S3Refusal(
      403,
      'SignatureDoesNotMatch',
      'The request signature we calculated does not match the signature you provided. Check your key.',
    )
}

const instantOf = (instant: string): Date => new Date(instant.replace(INSTANT, '$1-$2-$3T$4:$5:$6Z'))

function canonicalRequest({ method, target, rawHeaders }: RawRequest, signature: Signature): string {
  const index = target.indexOf('?')
  const [path, search] = index < 0 ? [target, ''] : [target.slice(0, index), target.slice(index + 1)]
  const headers = readHeaders(rawHeaders)
  const canonical: Canonical = {
    method,
    path: decodeURIComponent(path).split('/').map(escapeForSignature).join('/'),
    query: canonicalQuery(readParameters(search), signature),
    headers,
    payload: payloadOf(headers, signature),
  }
  return canonicalText(canonical, signature)
}

const payloadOf = (headers: Headers, { kind }: Signature): string =>
  kind === 'address' ? 'UNSIGNED-PAYLOAD' : (headers.get('x-amz-content-sha256') ?? '')

function canonicalQuery(parameters: Parameters, { kind }: Signature): string {
  return [...parameters]
    .filter(([name]) => kind !== 'address' || name !== 'X-Amz-Signature')
    .map(([name, value]) => [escapeForSignature(name), escapeForSignature(value)] as const)
    .toSorted(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}
