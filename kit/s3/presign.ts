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
  /** Names of headers, in lower case and sorted, without which the request must be sent. */
  readonly absent?: readonly string[]
  readonly expiresSeconds: number
}

/** Headers of a PUT that do more than to store its body: a copy from elsewhere, rights of others, locks. */
const PUT_HEADERS = [
  'x-amz-acl',
  'x-amz-bypass-governance-retention',
  'x-amz-copy-source',
  'x-amz-copy-source-range',
  'x-amz-grant-full-control',
  'x-amz-grant-read',
  'x-amz-grant-read-acp',
  'x-amz-grant-write',
  'x-amz-grant-write-acp',
  'x-amz-metadata-directive',
  'x-amz-object-lock-legal-hold',
  'x-amz-object-lock-mode',
  'x-amz-object-lock-retain-until-date',
  'x-amz-server-side-encryption',
  'x-amz-server-side-encryption-aws-kms-key-id',
  'x-amz-server-side-encryption-context',
  'x-amz-server-side-encryption-customer-algorithm',
  'x-amz-server-side-encryption-customer-key',
  'x-amz-server-side-encryption-customer-key-md5',
  'x-amz-storage-class',
  'x-amz-tagging',
  'x-amz-website-redirect-location',
]

/** Headers to sign as absent, for a server that would obey unsigned ones. The gateway of Ceph does: it refuses none
 *  (16.2), and leaves out the lines of signed names that a request does not have. One that was added changes what is
 *  signed. Our own front end refuses every unsigned `x-amz-` header by itself. */
export const absentHeaders = (method: SignedAddress['method'], backend: 'rgw' | 'svc-s3-single'): readonly string[] =>
  method === 'PUT' && backend === 'rgw' ? PUT_HEADERS : []

/** The address of the object in its bucket, signed at this time. Clients send any body with it. Headers that are not
 *  signed are up to them: servers must refuse those that begin with `x-amz-`, or have them signed as absent. */
export function presign(
  { method, endpoint, bucket, key, query = {}, absent = [], expiresSeconds }: SignedAddress,
  { accessKeyId, secretAccessKey, region }: S3Credentials,
  at: Date,
): string {
  const url = new URL(endpoint)
  const instant = instantText(at)
  const scope = { accessKeyId, day: instant.slice(0, 8), region, signedHeaders: ['host', ...absent] }
  const path = `/${[bucket, ...key.split('/')].map(escapeForSignature).join('/')}`
  const parameters = {
    ...query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${accessKeyId}/${scopeText(scope)}`,
    'X-Amz-Date': instant,
    'X-Amz-Expires': String(expiresSeconds),
    'X-Amz-SignedHeaders': scope.signedHeaders.join(';'),
  }
  const search = Object.entries(parameters)
    .map(([name, value]) => `${escapeForSignature(name)}=${escapeForSignature(value)}`)
    .toSorted((one, other) => (one < other ? -1 : 1))
    .join('&')
  const headers = new Map([['host', url.host]])
  const text = canonicalText({ method, path, query: search, headers, absent, payload: 'UNSIGNED-PAYLOAD' }, scope)
  const signature = signatureOfText(text, { ...scope, instant }, signingKey(secretAccessKey, scope.day, region))
  return `${url.origin}${path}?${search}&X-Amz-Signature=${signature}`
}
