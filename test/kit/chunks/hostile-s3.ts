/** An S3 server that lies: objects in memory, with faults that are given for single requests. What clients of an honest
 *  server see is the same. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Fault =
  /** Answers 500. */
  | 'error'
  /** Ends the connection in the middle of the body. */
  | 'short'
  /** Answers fewer bytes as if they were all. */
  | 'truncated'
  /** Answers, or keeps, other bytes. */
  | 'wrong'
  /** Answers that there is no such object. */
  | 'absent'
  /** Answers a list whose pages have no end: after the second comes the first. */
  | 'endless'

export interface SentRequest {
  readonly method: string
  readonly key: string
  readonly headers: IncomingMessage['headers']
}

export interface HostileS3 {
  readonly url: URL
  readonly objects: Map<string, { bytes: Buffer; modifiedAt: Date }>
  readonly requests: SentRequest[]
  /** Decides about a request; undefined serves it honestly. */
  fault: ((request: SentRequest) => Fault | undefined) | undefined
  close(): Promise<void>
}

const PAGE = 3

export async function startHostileS3(bucket = 'backups'): Promise<HostileS3> {
  const server = createServer((request, response) => void answer(request, response))
  const world: HostileS3 = {
    url: new URL('http://127.0.0.1'),
    objects: new Map(),
    requests: [],
    fault: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer) // a body is read as bytes
    const body = Buffer.concat(parts)
    const url = new URL(request.url ?? '/', 'http://127.0.0.1')
    const sent = {
      method: request.method ?? '',
      key: decodeURIComponent(url.pathname).slice(`/${bucket}/`.length),
      headers: request.headers,
    }
    world.requests.push(sent)
    const fault = world.fault?.(sent)
    const refuse = (status: number, code: string) => void response.writeHead(status).end(`<Code>${code}</Code>`)
    if (!url.pathname.startsWith(`/${bucket}`)) return refuse(404, 'NoSuchBucket')
    if (fault === 'error') return refuse(500, 'InternalError')
    if (url.searchParams.has('list-type')) return void response.end(list(url.searchParams, fault === 'endless'))
    if (sent.method === 'PUT') {
      if (createHash('sha256').update(body).digest('hex') !== request.headers['x-amz-content-sha256'])
        return refuse(400, 'XAmzContentSHA256Mismatch')
      const bytes = fault === 'wrong' ? corrupt(body) : body
      world.objects.set(sent.key, { bytes, modifiedAt: new Date() })
      return void response.writeHead(200, { etag: `"${createHash('md5').update(bytes).digest('hex')}"` }).end()
    }
    const found = world.objects.get(sent.key)
    if (sent.method === 'DELETE') {
      world.objects.delete(sent.key)
      return void response.writeHead(204).end()
    }
    if (found === undefined || fault === 'absent') return refuse(404, 'NoSuchKey')
    const headers = { 'last-modified': found.modifiedAt.toUTCString() }
    if (fault === 'short') {
      response.writeHead(200, { ...headers, 'content-length': found.bytes.length })
      response.write(found.bytes.subarray(0, -5))
      return void response.socket?.end()
    }
    const bytes =
      fault === 'truncated' ? found.bytes.subarray(0, -5) : fault === 'wrong' ? corrupt(found.bytes) : found.bytes
    response.writeHead(200, { ...headers, 'content-length': bytes.length }).end(bytes)
  }

  function list(query: URLSearchParams, isEndless: boolean): string {
    const prefix = query.get('prefix') ?? ''
    const keys = [...world.objects.keys()].filter((key) => key.startsWith(prefix)).sort()
    const start = Number(query.get('continuation-token') ?? '0')
    const page = keys.slice(start, start + PAGE)
    const contents = page.map((key) => {
      const at = world.objects.get(key)?.modifiedAt.toISOString()
      return `<Contents><Key>${key}</Key><LastModified>${at}</LastModified></Contents>`
    })
    const isTruncated = isEndless || start + PAGE < keys.length
    const after = isEndless && start > 0 ? 0 : start + PAGE
    const next = isTruncated ? `<NextContinuationToken>${after}</NextContinuationToken>` : ''
    const end = `<IsTruncated>${isTruncated}</IsTruncated>${next}</ListBucketResult>`
    return `<?xml version="1.0"?><ListBucketResult>${contents.join('')}${end}`
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens on TCP
  return Object.assign(world, { url: new URL(`http://127.0.0.1:${port}/${bucket}`) })
}

function corrupt(bytes: Buffer): Buffer {
  const other = Buffer.from(bytes)
  other[Math.floor(other.length / 2)] = (other[Math.floor(other.length / 2)] ?? 0) ^ 1
  return other
}
