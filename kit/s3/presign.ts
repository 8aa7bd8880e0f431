/** Addresses that are signed: whoever has one may send the request that it was signed for, until it expires. Pure. */
import type { S3Credentials } from '../chunks/sign-request.ts'
import {
  ALGORITHM,
  canonicalText,
  escapeForSignature,
  instantText,
  scopeText,
  signatureOfText,
  signingKey,
} from './signature.ts'

export interface SignedAddress {
  readonly method: 'GET' | 'PUT'
  /** `http(s)://host[:port]`. */
  readonly endpoint: string
  readonly bucket: string
  readonly key: string
  /** Further parameters, which are signed as well. */
  readonly query?: Readonly<Record<string, string>>
  readonly expiresSeconds: number
}

/** The address of the object in its bucket, signed at this time. Clients send any body and any header besides `host`
 *  with it that does not begin with `x-amz-`. */
export function presign(
  { method, endpoint, bucket, key, query = {}, expiresSeconds }: SignedAddress,
  { accessKeyId, secretAccessKey, region }: S3Credentials,
  at: Date,
): string {
  const url = new URL(endpoint)
  const instant = instantText(at)
  const scope = { accessKeyId, day: instant.slice(0, 8), region, signedHeaders: ['host'] }
  const path = `/${[bucket, ...key.split('/')].map(escapeForSignature).join('/')}`
  const parameters = {
    ...query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${accessKeyId}/${scopeText(scope)}`,
    'X-Amz-Date': instant,
    'X-Amz-Expires': String(expiresSeconds),
    'X-Amz-SignedHeaders': 'host',
  }
  const search = Object.entries(parameters)
    .map(([name, value]) => `${escapeForSignature(name)}=${escapeForSignature(value)}`)
    .toSorted((one, other) => (one < other ? -1 : 1))
    .join('&')
  const headers = new Map([['host', url.host]])
  const text = canonicalText({ method, path, query: search, headers, payload: 'UNSIGNED-PAYLOAD' }, scope)
  const signature = signatureOfText(text, { ...scope, instant }, signingKey(secretAccessKey, scope.day, region))
  return `${url.origin}${path}?${search}&X-Amz-Signature=${signature}`
}
