/** The front end before the engine. It determines the operation of a request and who has signed it, decides, and
 *  forwards it unchanged so that its signature stays valid. It keeps tenants in their own buckets, within their quota
 *  and their share of the machine; the engine verifies requests again. Bodies are streamed; documents are read
 *  completely. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import { encodeList, isEncoded } from '../../kit/s3/encoded-list.ts'
import { openSigningKeys, type SigningKeys } from '../../kit/s3/signature.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import { admit } from './admission.ts'
import { answerPortal } from './portal-origin.ts'
import { drain } from './answer.ts'
import { checkDocument, checkDocumentLength, isDocument, LARGE_DOCUMENT_BYTES } from './document.ts'
import type { Engines } from './engines.ts'
import { forward, type Progress } from './forward.ts'
import { outgoingOf, withoutLocation } from './region.ts'
import type { FrontEndMetrics } from './metrics.ts'
import {
  checkForEngine,
  engineFailure,
  type RawRequest,
  readRequest,
  S3Refusal,
  slowDown,
  type StorageRequest,
  serviceUnavailable,
  wireBytesMaximum,
} from './request.ts'
import { type Counts, identify, takePlace } from './proof.ts'
import { openTargets, type Targets } from './targets.ts'
import type { Tenant, Tenants } from './tenants.ts'

export interface FrontEndOptions {
  readonly host: string
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: string
  readonly engines: Pick<Engines, 'hold' | 'sizeOf'>
  readonly tenants: Tenants
  /** The secret of a tenant; undefined when it is unknown here. */
  readonly secretOf: (tenant: Tenant) => string | undefined
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: FrontEndMetrics
  /** Origin of the portal, whose pages upload objects; null for none. */
  readonly portalOrigin: string | null
  /** Called when it has its port, before it accepts clients. */
  readonly listening?: () => void
}

export interface FrontEnd {
  readonly port: number
  stop(): Promise<void>
}

const HEADER_BYTES_MAXIMUM = 16 * 1024
const HEADERS_MAXIMUM = 100
const HEADERS_MILLISECONDS = 20_000
/** Limit of the time without a byte in either direction. */
const IDLE_MILLISECONDS = 120_000
const CONNECTIONS_MAXIMUM = 4_096
/** Limits for one address, and for one tenant. */
const CONNECTIONS_OF_ADDRESS_MAXIMUM = 1_024
const REQUESTS_OF_TENANT_MAXIMUM = 256
const UNPROVEN_OF_TENANT_MAXIMUM = 16
const LARGE_DOCUMENTS_OF_TENANT_MAXIMUM = 8
const REQUEST_ID_CHARACTERS = 16

/** Listens once this resolves. */
export async function startFrontEnd(options: FrontEndOptions): Promise<FrontEnd> {
  const targets = openTargets()
  const server = createServer({
    cert: options.certificate,
    key: options.key,
    minVersion: 'TLSv1.2',
    maxHeaderSize: HEADER_BYTES_MAXIMUM,
    headersTimeout: HEADERS_MILLISECONDS,
    requestTimeout: 0, // large objects take long; the idle limit applies
    connectionsCheckingInterval: 5_000,
  })
  server.timeout = IDLE_MILLISECONDS
  server.maxHeadersCount = HEADERS_MAXIMUM
  server.maxConnections = CONNECTIONS_MAXIMUM
  boundAddresses(server)
  const keys = openSigningKeys()
  const counts: Counts = { unproven: new Map(), documents: new Map() }
  const serve = (request: IncomingMessage, response: ServerResponse, isWaiting: boolean): void => {
    if (answerPortal(request, response, options.portalOrigin)) return
    const exchange: Exchange = { request, response, isWaiting, isProven: false, end: () => {} }
    handle({ ...options, targets, counts, keys }, exchange).catch((error: unknown) => {
      if (!(error instanceof S3Refusal)) options.log.warn('request failed', { error })
      const refusal = error instanceof S3Refusal ? error : serviceUnavailable()
      options.metrics.refused(refusal.code)
      void refuse(options, exchange, refusal)
    })
  }
  server.on('request', (request, response) => serve(request, response, false))
  server.on('checkContinue', (request, response) => serve(request, response, true))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: options.host, port: options.port }, () => {
      try {
        options.listening?.()
        resolve()
      } catch (error) {
        reject(error)
      }
    })
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the interface has no port')
  return {
    port: address.port,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      targets.stop()
      await closed
    },
  }
}

/** Limits the connections of each address, so that nobody can use all of them. */
function boundAddresses(server: Server): void {
  const counts = new Map<string, number>()
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const count = (counts.get(address) ?? 0) + 1
    counts.set(address, count)
    socket.once('close', () => {
      const left = (counts.get(address) ?? 1) - 1
      if (left === 0) counts.delete(address)
      else counts.set(address, left)
    })
    if (count > CONNECTIONS_OF_ADDRESS_MAXIMUM) socket.destroy()
  })
}

type Parts = FrontEndOptions & { readonly targets: Targets; readonly counts: Counts; readonly keys: SigningKeys }

/** Checks a document; returns the request that replaces it, if any. */
const documentCheck =
  (
    raw: RawRequest,
    { operation, signature }: StorageRequest,
    { isHere, secret }: { readonly isHere: boolean; readonly secret: string | undefined },
  ): NonNullable<Progress['check']> =>
  (body) => {
    const document = checkDocument(operation, body, isHere)
    if (!isHere || secret === undefined || document === undefined) return undefined
    return withoutLocation(raw, { signature, secret }, document, body)
  }

/** Throws the Refusal, and other errors before the response has started. */
async function handle(parts: Parts, exchange: Exchange): Promise<void> {
  const { request, response } = exchange
  const { method = '', url: target = '', rawHeaders } = request
  const raw = { method, target, rawHeaders }
  const s3Request = readRequest(raw)
  const { operation, signature } = s3Request
  // An unproven caller must not use a tenant's places.
  const { tenant, secret } = identify(parts, raw, signature)
  exchange.isProven = secret !== undefined
  const places: (() => void)[] = []
  let isStored = false
  let isOver = false
  exchange.end = () => {
    isOver = true
    for (const give of places.splice(0)) give()
  }
  response.once('close', exchange.end)
  if (secret === undefined) places.push(takePlace(parts.counts.unproven, tenant.id, UNPROVEN_OF_TENANT_MAXIMUM))
  if (tenant.active >= REQUESTS_OF_TENANT_MAXIMUM) throw slowDown()
  const changes = operation.rule.class === 'reads' ? 0 : 1
  // Counted before the check for frozen tenants: a caller that then finds no writes knows that none is in progress.
  tenant.active += 1
  tenant.writing += changes
  places.push(() => {
    tenant.active -= 1
    tenant.writing -= changes
  })
  const isHere = tenant.upstream === undefined
  if (isHere) checkForEngine(s3Request)
  const bytesOfDocument = checkDocumentLength(operation, request)
  if (bytesOfDocument > LARGE_DOCUMENT_BYTES)
    places.push(takePlace(parts.counts.documents, tenant.id, LARGE_DOCUMENTS_OF_TENANT_MAXIMUM))
  const release = await admit(parts, tenant, s3Request)
  places.push(() => release(isStored))
  // For a tenant that has moved, the other store is used instead of an engine.
  const at = tenant.upstream ?? (await parts.engines.hold(tenant.id))
  const held = 'release' in at ? at : undefined
  places.push(() => held?.release())
  if (isOver) {
    exchange.end()
    throw new Error('the client has gone')
  }
  parts.metrics.admitted(operation)
  const bytesMaximum = wireBytesMaximum(s3Request.bytes)
  await forward(parts, parts.targets.of(tenant, at, hasBody(request)), request, response, {
    isProven: exchange.isProven,
    isBodyReadBySuccess: s3Request.isWhole,
    bytesMaximum: operation.rule.body === 'bytes' ? bytesMaximum : undefined,
    outgoing: isHere && secret !== undefined ? outgoingOf(raw, signature, secret) : raw,
    ...(isDocument(operation) ? { check: documentCheck(raw, s3Request, { isHere, secret }) } : {}),
    ...(isHere && isEncoded(operation) ? { rewrite: (text) => encodeList(text, operation) } : {}),
    failure: () => engineFailure(s3Request),
    begin: () => {
      if (exchange.isWaiting) response.writeContinue()
      exchange.isWaiting = false
    },
    written: exchange.end,
    answered: (status) => {
      isStored = status < 300
      parts.metrics.answered(status)
      held?.answered(status)
    },
  })
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

const ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' }

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The client waits for `100 Continue` before it sends the body. */
  isWaiting: boolean
  /** The caller has proven that it has the secret of the key. */
  isProven: boolean
  /** Gives back what the request has taken: after its complete response, or when the client has gone. A client that
   *  still sends a body that nobody wants takes nothing from others. */
  end: () => void
}

/** Sends the refusal in S3's format. Then reads the rest of the client's body up to a limit, so that the client reads
 *  the refusal. */
async function refuse(
  { clock, random }: Pick<FrontEndOptions, 'clock' | 'random'>,
  { request, response, isWaiting, isProven, end }: Exchange,
  { status, code, message }: S3Refusal,
): Promise<void> {
  if (response.headersSent || response.destroyed) {
    end()
    return void response.destroy()
  }
  const id = newBase62(random, REQUEST_ID_CHARACTERS)
  const text = message.replace(/[<>&"]/g, (sign) => ESCAPES[sign] ?? '')
  const body =
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
    `<Error><Code>${code}</Code><Message>${text}</Message><RequestId>${id}</RequestId></Error>`
  response.writeHead(status, {
    'content-type': 'application/xml',
    'content-length': Buffer.byteLength(body),
    'x-amz-request-id': id,
    ...(status === 503 ? { 'retry-after': '1' } : {}),
    ...(request.complete ? {} : { connection: 'close' }),
  })
  if (request.method !== 'HEAD') response.write(body)
  end()
  if (!isWaiting) await drain(request, clock, { isProven })
  response.end()
}
