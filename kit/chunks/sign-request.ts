/** Signs requests to S3 servers; `kit/s3/signature.ts` verifies those of others. Pure. */
import { createHash } from 'node:crypto'
import { authorizationOf, canonicalText, instantText, signatureOfText, signingKey } from '../s3/signature.ts'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Its path and query are escaped as `encodeURIComponent` does, and the query is sorted by name. */
  readonly url: URL
  /** By lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** A streamed body is not signed. */
  readonly isStreamed?: boolean
}

/** All headers of the signed request except `host`, which the client sends by itself. */
export function signRequest(
  { method, url, headers = {}, body = Buffer.alloc(0), isStreamed = false }: S3Request,
  { accessKeyId, secretAccessKey, region }: S3Credentials,
  at: Date,
): Record<string, string> {
  const instant = instantText(at)
  const day = instant.slice(0, 8)
  const payload = isStreamed ? 'UNSIGNED-PAYLOAD' : createHash('sha256').update(body).digest('hex')
  const signed: Record<string, string> = { ...headers, 'x-amz-content-sha256': payload, 'x-amz-date': instant }
  const all = new Map(Object.entries({ ...signed, host: url.host }))
  const scope = { accessKeyId, day, region, signedHeaders: [...all.keys()].toSorted() }
  const text = canonicalText({ method, path: url.pathname, query: url.search.slice(1), headers: all, payload }, scope)
  const signature = signatureOfText(text, { ...scope, instant }, signingKey(secretAccessKey, day, region))
  return { ...signed, authorization: authorizationOf(scope, signature) }
}
