/** Signature version 4 of Amazon's S3, as every S3 server checks it: "Authenticating Requests (AWS Signature Version
 *  4)" of its API reference. Pure. */
import { createHash, createHmac } from 'node:crypto'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Its path and query are escaped as `encodeURIComponent` does, and the query is sorted by name. */
  readonly url: URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Of a body that is streamed, nothing is signed. */
  readonly isStreamed?: boolean
}

const ALGORITHM = 'AWS4-HMAC-SHA256'
const SERVICE = 's3'
const UNSIGNED = 'UNSIGNED-PAYLOAD'

const sha256 = (content: Buffer | string): string => createHash('sha256').update(content).digest('hex')
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** All headers of the signed request but `host`, which the client sends by itself. */
export function signRequest(
  { method, url, headers = {}, body = Buffer.alloc(0), isStreamed = false }: S3Request,
  { accessKeyId, secretAccessKey, region }: S3Credentials,
  at: Date,
): Record<string, string> {
  const instant = `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const day = instant.slice(0, 8)
  const digest = isStreamed ? UNSIGNED : sha256(body)
  const signed: Record<string, string> = { ...headers, 'x-amz-content-sha256': digest, 'x-amz-date': instant }
  const names = Object.keys({ ...signed, host: url.host }).sort()
  const canonical = [
    method,
    url.pathname,
    url.search.slice(1),
    ...names.map((name) => `${name}:${name === 'host' ? url.host : signed[name]}`),
    '',
    names.join(';'),
    digest,
  ].join('\n')
  const scope = `${day}/${region}/${SERVICE}/aws4_request`
  const key = [day, region, SERVICE, 'aws4_request'].reduce<Buffer | string>(hmac, `AWS4${secretAccessKey}`)
  const signature = hmac(key as Buffer, [ALGORITHM, instant, scope, sha256(canonical)].join('\n')) // of four rounds
  return {
    ...signed,
    authorization: [
      `${ALGORITHM} Credential=${accessKeyId}/${scope}`,
      `SignedHeaders=${names.join(';')}`,
      `Signature=${signature.toString('hex')}`,
    ].join(','),
  }
}
