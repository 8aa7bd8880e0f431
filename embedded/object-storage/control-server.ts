/** The interface for the platform, on the loopback address and with a token. The platform sends the tenants and gets
 *  their usage. It also serves metrics. */
import { createServer, type IncomingMessage } from 'node:http'
import { createHash, timingSafeEqual } from 'node:crypto'
import { TenantSettings, type TenantState, UNKNOWN_TENANT } from '../../integrations/object-storage/control.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Registry } from '../../kit/sys/metrics.ts'
import { type Tenant, TenantConflict, type Tenants } from './tenants.ts'
import { readText } from '../../kit/http/bounded.ts'
import { closeNow, listen } from '../../kit/sys/listen.ts'

export interface ControlServerOptions {
  readonly host: string
  readonly port: number
  readonly token: string
  readonly tenants: Tenants
  readonly metrics: Registry
  readonly log: Logger
}

const BODY_BYTES_MAXIMUM = 16_384
const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

interface Answer {
  readonly status: number
  readonly text?: string
  readonly type?: string
}

/** Returns the function that stops it. */
export async function startControl(options: ControlServerOptions): Promise<{ stop(): Promise<void> }> {
  const expected = digest(`Bearer ${options.token}`)
  const server = createServer({ maxHeaderSize: BODY_BYTES_MAXIMUM }, (request, response) => {
    const isKnown = timingSafeEqual(digest(request.headers.authorization ?? ''), expected)
    const answering = isKnown ? answer(options, request) : Promise.resolve<Answer>({ status: 401 })
    answering
      .catch((error: unknown): Answer => {
        // The caller retries, and reports a lasting failure.
        options.log.info('control request failed', { error })
        return { status: 503, text: 'try again' }
      })
      .then(({ status, text = '', type = 'application/json' }) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' }).end(text)
      })
      .catch(() => response.destroy())
  })
  await listen(server, { host: options.host, port: options.port })
  return {
    stop: () => closeNow(server),
  }
}

async function answer({ tenants, metrics }: ControlServerOptions, request: IncomingMessage): Promise<Answer> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
  if (pathname === '/metrics' && request.method === 'GET')
    return { status: 200, text: await metrics.metrics(), type: metrics.contentType }
  const id = /^\/tenants\/([^/]{1,253})$/.exec(pathname)?.[1]
  if (id === undefined) return { status: 404 }
  const tenantId = decodeURIComponent(id)
  if (request.method === 'GET') {
    const tenant = tenants.find(tenantId)
    return tenant === undefined
      ? { status: 404, text: UNKNOWN_TENANT }
      : { status: 200, text: JSON.stringify(await stateOf(tenants, tenant, searchParams.get('fresh') === 'true')) }
  }
  if (request.method === 'DELETE')
    return { status: (await tenants.remove(tenantId, searchParams.get('purge') === 'true')) ? 204 : 409 }
  if (request.method !== 'PUT') return { status: 405 }
  const settings = TenantSettings.safeParse(JSON.parse(await readText(request, BODY_BYTES_MAXIMUM)))
  if (!settings.success) return { status: 400, text: settings.error.message }
  try {
    await tenants.put(tenantId, settings.data)
    return { status: 204 }
  } catch (error) {
    if (error instanceof TenantConflict) return { status: 409 }
    throw error
  }
}

/** Throws for a tenant whose requests fail, so that the platform does not report it as served. */
async function stateOf(tenants: Tenants, tenant: Tenant, isFresh: boolean): Promise<TenantState> {
  const { usage } = tenant
  const fault = tenants.fault(tenant)
  if (fault !== undefined) throw new Error(`requests of the tenant ${tenant.id} fail: ${fault}`)
  if (isFresh || usage.measured === undefined) await usage.measure()
  const { measured } = usage
  if (measured === undefined) throw new Error('a walk ended without a result')
  return {
    accessKeyId: tenant.accessKeyId,
    bucketPrefix: tenant.bucketPrefix,
    quotaBytes: tenant.quotaBytes,
    isSuspended: tenant.isSuspended,
    isFrozen: tenant.isFrozen,
    secretFingerprint: tenants.fingerprint(tenant),
    ...(tenant.upstream && { upstream: tenant.upstream }),
    openWrites: tenant.writing,
    bucketCount: measured.buckets,
    usedBytes: usage.bytes(),
    objectCount: measured.objects,
    measuredAt: measured.at.toISOString(),
    measuredBytes: measured.bytes,
    highestBytes: measured.highestBytes,
  }
}
