/** The interface for the platform, on the loopback address and with a token. The platform sends the tenants and gets
 *  their usage. It also serves metrics. */
import type { IncomingMessage } from 'node:http'
import { TenantSettings, type TenantState, UNKNOWN_TENANT } from '../../integrations/object-storage/control.ts'
import { readText } from '../../kit/http/bounded.ts'
import {
  type ControlAnswer,
  type ControlListener,
  type ControlServer,
  startControlServer,
} from '../../kit/http/control-server.ts'
import { type Tenant, TenantConflict, type Tenants } from './tenants.ts'

const BODY_BYTES_MAXIMUM = 16_384

/** Listens once this resolves. */
export const startControl = ({
  tenants,
  ...options
}: Omit<ControlListener, 'certificate'> & { readonly tenants: Tenants }): Promise<ControlServer> =>
  startControlServer({ ...options, certificate: undefined }, (request, url) => answer(tenants, request, url))

async function answer(
  tenants: Tenants,
  request: IncomingMessage,
  { pathname, searchParams }: URL,
): Promise<ControlAnswer> {
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
