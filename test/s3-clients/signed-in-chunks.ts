/** Puts an object whose body is signed chunk by chunk, as clients without TLS do. */
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { scopeText, type Signature, signatureOf, signingKey } from '../../kit/s3/signature.ts'

export interface SignedPut {
  readonly port: number
  readonly authority: string
  readonly path: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly chunks: readonly Buffer[]
  /** The last byte is another than was signed. */
  readonly isForged?: boolean
}

const NOTHING = createHash('sha256').digest('hex')

/** Answers the status. */
export async function signedInChunks(put: SignedPut): Promise<number> {
  const { port, path, region, accessKeyId, secretAccessKey, chunks, isForged = false } = put
  const instant = `${new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
  const day = instant.slice(0, 8)
  const bytes = chunks.reduce((sum, { length }) => sum + length, 0)
  const headers = {
    host: `localhost:${port}`,
    'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    'x-amz-date': instant,
    'x-amz-decoded-content-length': String(bytes),
  }
  const names = Object.keys(headers).toSorted()
  const signing: Signature = {
    kind: 'header',
    accessKeyId,
    day,
    region,
    instant,
    signedHeaders: names,
    signature: '',
    expiresSeconds: undefined,
  }
  const key = signingKey(secretAccessKey, day, region)
  const seed = signatureOf({ method: 'PUT', target: path, rawHeaders: Object.entries(headers).flat() }, signing, key)
  let last = seed
  const pieces = [...chunks, Buffer.alloc(0)].map((chunk) => {
    const digest = createHash('sha256').update(chunk).digest('hex')
    const text = ['AWS4-HMAC-SHA256-PAYLOAD', instant, scopeText(signing), last, NOTHING, digest].join('\n')
    last = createHmac('sha256', key).update(text).digest('hex')
    return Buffer.concat([
      Buffer.from(`${chunk.length.toString(16)};chunk-signature=${last}\r\n`),
      chunk,
      Buffer.from('\r\n'),
    ])
  })
  const body = Buffer.concat(pieces)
  if (isForged) body.write('!', body.indexOf('end'))
  const credential = `Credential=${accessKeyId}/${scopeText(signing)}`
  const authorization = `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${names.join(';')}, Signature=${seed}`
  const sent = request({
    host: 'localhost',
    port,
    method: 'PUT',
    path,
    ca: put.authority,
    headers: { ...headers, authorization, 'content-length': body.length },
  })
  sent.end(body)
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  answer.resume()
  return answer.statusCode ?? 0
}
