/** The door in front of the engine: decides by what a request claims to be, and hands it through as it came, so that
 *  the signature stays good. It keeps tenants in their own buckets, within their quota and their share of the machine;
 *  who they are, the engine proves. Bodies pass through and are never held. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { newBase62, type Random } from '../../kit/sys/random.ts'
import type { DoorMetrics } from './metrics.ts'
import { drain, forward } from './forward.ts'
import { accessDenied, readRequest, Refusal, slowDown, type StorageRequest, wireBytesMaximum } from './request.ts'
import { openTargets, type Targets } from './targets.ts'
import type { Tenant, Tenants } from './tenants.ts'

export interface DoorOptions {
  readonly host: string
  readonly port: number
  /** PEM. */
  readonly certificate: string
  readonly key: string
  /** Of the engine. */
  readonly socketPath: string
  readonly tenants: Tenants
  /** Size of an object of the engine; undefined when it is not there. */
  readonly sizeOf: (path: string) => Promise<number | undefined>
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly metrics: DoorMetrics
}

export interface Door {
  readonly port: number
  stop(): Promise<void>
}

const HEADER_BYTES_MAXIMUM = 16 * 1024
const HEADERS_MAXIMUM = 100
const HEADERS_MILLISECONDS = 20_000
/** Without a byte either way. */
const IDLE_MILLISECONDS = 120_000
const CONNECTIONS_MAXIMUM = 4_096
/** What one address, or one tenant, may have at a time. */
const CONNECTIONS_OF_ADDRESS_MAXIMUM = 1_024
const REQUESTS_OF_TENANT_MAXIMUM = 256
const BUCKETS_MAXIMUM = 100
/** A tenant that deleted something to have room is measured anew, but not for each of its requests. */
const MEASURE_AGAIN_MILLISECONDS = 3_000
const REQUEST_ID_CHARACTERS = 16
/** Listens once this resolves. */
export async function startDoor(options: DoorOptions): Promise<Door> {
  const targets = openTargets(options.socketPath)
  const server = createServer({
    cert: options.certificate,
    key: options.key,
    minVersion: 'TLSv1.2',
    maxHeaderSize: HEADER_BYTES_MAXIMUM,
    headersTimeout: HEADERS_MILLISECONDS,
    requestTimeout: 0, // large objects take their time, as long as they go on
    connectionsCheckingInterval: 5_000,
  })
  server.timeout = IDLE_MILLISECONDS
  server.maxHeadersCount = HEADERS_MAXIMUM
  server.maxConnections = CONNECTIONS_MAXIMUM
  boundAddresses(server)
  const serve = (request: IncomingMessage, response: ServerResponse, isWaiting: boolean): void => {
    handle({ ...options, targets }, request, response, isWaiting).catch((error: unknown) => {
      if (!(error instanceof Refusal)) options.log.warn('request failed', { error })
      const refusal =
        error instanceof Refusal ? error : new Refusal(503, 'ServiceUnavailable', 'Please try again in a moment.')
      options.metrics.refused(refusal.code)
      void refuse(options, { request, response, isWaiting }, refusal)
    })
  }
  server.on('request', (request, response) => serve(request, response, false))
  server.on('checkContinue', (request, response) => serve(request, response, true))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: options.host, port: options.port }, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the door has no port')
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

/** Nobody takes all connections. */
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

type Parts = DoorOptions & { readonly targets: Targets }

/** `isWaiting`: the client sends its body when it is told to. Throws the Refusal, and whatever else goes wrong before
 *  the answer has begun. */
async function handle(
  parts: Parts,
  request: IncomingMessage,
  response: ServerResponse,
  isWaiting: boolean,
): Promise<void> {
  const { method = '', url: target = '', rawHeaders } = request
  const asked = readRequest({ method, target, rawHeaders })
  const tenant = parts.tenants.byKey(asked.accessKeyId)
  if (tenant === undefined)
    throw new Refusal(403, 'InvalidAccessKeyId', 'The access key Id you provided does not exist in our records.')
  if (tenant.active >= REQUESTS_OF_TENANT_MAXIMUM) throw slowDown()
  const changes = asked.action === 'read' ? 0 : 1
  // Before anybody asks whether it is frozen: who finds no writes then knows that none is under way.
  tenant.active += 1
  tenant.writing += changes
  let isStored = false
  let release = (_isStored: boolean): void => {}
  response.once('close', () => {
    tenant.active -= 1
    tenant.writing -= changes
    release(isStored)
  })
  release = await admit(parts, tenant, asked)
  if (response.closed) {
    release(false)
    throw new Error('the client has gone')
  }
  parts.metrics.admitted(asked.action)
  const bytesMaximum = wireBytesMaximum(asked.bytes)
  await forward(parts, parts.targets.of(tenant, hasBody(request)), request, response, {
    isBodyReadBySuccess: asked.isWhole,
    bytesMaximum: asked.bytes > 0 || request.headers['transfer-encoding'] !== undefined ? bytesMaximum : undefined,
    begin: () => {
      if (isWaiting) response.writeContinue()
    },
    answered: (status) => {
      isStored = status < 300
      parts.metrics.answered(status)
    },
  })
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

/** Answers what gives the room back that was taken. Throws the Refusal. Nothing tells whether another tenant's bucket
 *  is there. */
async function admit(
  { tenants, clock, sizeOf }: Parts,
  { id, usage }: Tenant,
  asked: StorageRequest,
): Promise<(isStored: boolean) => void> {
  const { action, bucket, hasKey, copy } = asked
  const own = tenants.find(id)
  if (own === undefined) throw accessDenied()
  if (bucket === undefined && action !== 'read') throw accessDenied()
  // Where it has moved to, no bucket is another's.
  const isHere = own.upstream === undefined
  for (const name of isHere ? [bucket, copy?.bucket] : [])
    if (name !== undefined && !name.startsWith(own.bucketPrefix)) throw accessDenied()
  if (own.isFrozen && action !== 'read') throw slowDown()
  if (action !== 'write') return () => {}
  if (own.isSuspended)
    throw new Refusal(403, 'AccountProblem', 'The account is suspended: what is stored can be read and deleted.')
  if (!isHere) return () => {} // the quota is held where the bytes are
  if (usage.measured === undefined) await usage.measure()
  if (bucket !== undefined && !hasKey && (usage.measured?.buckets ?? 0) >= BUCKETS_MAXIMUM)
    throw new Refusal(400, 'TooManyBuckets', 'You have attempted to create more buckets than allowed.')
  const bytes = copy === undefined ? asked.bytes : (copy.bytes ?? (await sizeOf(copy.path)))
  if (bytes === undefined) throw new Refusal(404, 'NoSuchKey', 'The specified key does not exist.')
  const isTooMuch = () => bytes > 0 && usage.bytes() + bytes > own.quotaBytes
  const isOld = () => {
    const { at } = usage.measured ?? {}
    return at === undefined || clock.now().getTime() - at.getTime() > MEASURE_AGAIN_MILLISECONDS
  }
  if (isTooMuch() && isOld()) await usage.measure()
  if (isTooMuch()) throw new Refusal(403, 'QuotaExceeded', `The quota is ${own.quotaBytes} bytes.`)
  return usage.reserve(bytes)
}

const ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' }

/** Answers in S3's form. What the client still sends is read to a bound first, so that it hears the answer. */
async function refuse(
  { clock, random }: Pick<DoorOptions, 'clock' | 'random'>,
  exchange: { readonly request: IncomingMessage; readonly response: ServerResponse; readonly isWaiting: boolean },
  { status, code, message }: Refusal,
): Promise<void> {
  const { request, response, isWaiting } = exchange
  if (response.headersSent || response.destroyed) return void response.destroy()
  if (!isWaiting) await drain(request, clock)
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
  response.end(request.method === 'HEAD' ? undefined : body)
}
