/** S3 clients of customers: what they ask goes through the proxy of the single host, or to the gateway, and what was
 *  acknowledged to them is remembered. */
import type { TenantSettings } from '../../integrations/object-storage/control.ts'
import { numberBetween } from '../../kit/sys/random.ts'
import {
  bytesOf,
  digestOf,
  latencyOf,
  type ObjectStores,
  type SimulatedStore,
  type StoredTenant,
  strikes,
  tenantByKey,
} from './object-stores.ts'

export interface ClientKey extends Pick<TenantSettings, 'accessKeyId' | 'secretAccessKey'> {
  readonly endpoint: string
}

/** S3's code for what was refused; `unknown` may have happened. */
export type Outcome = 'done' | 'unknown' | 'not sent' | `refused ${string}`

export type Change =
  | { readonly do: 'make bucket'; readonly bucket: string }
  | { readonly do: 'remove bucket'; readonly bucket: string }
  | { readonly do: 'remove'; readonly bucket: string; readonly key: string }
  | {
      readonly do: 'put'
      readonly bucket: string
      readonly key: string
      readonly content: string
      readonly isInParts: boolean
      readonly tags: readonly string[]
    }

/** The engine may go on with a request whose client has gone, for so long. */
const LATE_MILLISECONDS = 8_000
const WORK_MILLISECONDS = { least: 1, most: 600 }
/** Of large objects, or slow clients. */
const LONG_WORK_MILLISECONDS = { least: 5_000, most: 25_000 }
const LONG_SHARE = 0.05

/** Whether the key is admitted, to read. */
export function accepts(stores: ObjectStores, { endpoint, ...key }: ClientKey): boolean {
  const keeper = keeperOf(stores, stores.at(endpoint), key.accessKeyId)
  return keeper?.settings.secretAccessKey === key.secretAccessKey
}

/** The tenant that has the objects: behind the proxy, or where that passes requests on to. */
export function keeperOf(stores: ObjectStores, store: SimulatedStore, accessKeyId: string): StoredTenant | undefined {
  const tenant = tenantByKey(store, accessKeyId)
  return tenant?.settings.upstream === undefined ? tenant : tenantByKey(stores.gateway, accessKeyId)
}

/** Asks for the change; resolves when the client has an answer, or none. */
export async function change(stores: ObjectStores, key: ClientKey, wanted: Change): Promise<Outcome> {
  const { scheduler } = stores
  const { random } = scheduler
  const store = stores.at(key.endpoint)
  await scheduler.pause(latencyOf(stores, store))
  if (store.awayUntil > scheduler.nowMilliseconds || strikes(stores, 'breaks')) return 'not sent'
  const tenant = tenantByKey(store, key.accessKeyId)
  if (tenant === undefined) return 'refused InvalidAccessKeyId'
  // The proxy counts it before it looks whether the tenant is frozen.
  tenant.openWrites += 1
  const leave = () => void (tenant.openWrites -= 1)
  const refusal = refusalOf(stores, tenant, key, wanted)
  if (refusal !== undefined) {
    leave()
    return `refused ${refusal}`
  }
  const keeper = keeperOf(stores, store, key.accessKeyId)
  const begunAt = scheduler.now()
  if (strikes(stores, 'losesAnswer')) {
    leave()
    scheduler.after(random.fraction() * LATE_MILLISECONDS, () => void takeEffect(keeper, wanted, begunAt))
    return 'unknown'
  }
  await scheduler.pause(
    numberBetween(random, random.fraction() < LONG_SHARE ? LONG_WORK_MILLISECONDS : WORK_MILLISECONDS),
  )
  // An engine that ends meanwhile has done nothing.
  const isThere = store.awayUntil <= scheduler.nowMilliseconds
  const code = isThere ? takeEffect(keeper, wanted, begunAt) : undefined
  leave()
  if (!isThere) return 'unknown'
  await scheduler.pause(latencyOf(stores, store))
  return code === undefined ? 'done' : `refused ${code}`
}

function refusalOf(
  stores: ObjectStores,
  { settings }: StoredTenant,
  { accessKeyId, secretAccessKey }: ClientKey,
  wanted: Change,
): string | undefined {
  const adds = wanted.do === 'put' || wanted.do === 'make bucket'
  if (settings.isFrozen) return 'SlowDown'
  if (settings.isSuspended && adds) return 'AccountProblem'
  const { upstream, bucketPrefix } = settings
  if (upstream === undefined && !wanted.bucket.startsWith(bucketPrefix)) return 'AccessDenied'
  const keeper = upstream === undefined ? { settings } : tenantByKey(stores.gateway, accessKeyId)
  if (keeper?.settings.secretAccessKey !== secretAccessKey) return 'SignatureDoesNotMatch'
  if (keeper.settings.isFrozen || (keeper.settings.isSuspended && adds)) return 'AccessDenied'
  if (upstream !== undefined && stores.gateway.awayUntil > stores.scheduler.nowMilliseconds) return 'BadGateway'
  const bytes = wanted.do === 'put' ? wanted.content.length : 0
  return 'buckets' in keeper && bytes > 0 && bytesOf(keeper) + bytes > keeper.settings.quotaBytes
    ? 'QuotaExceeded'
    : undefined
}

/** S3's code of what cannot be. */
function takeEffect(keeper: StoredTenant | undefined, wanted: Change, modifiedAt: Date): string | undefined {
  if (keeper === undefined) return 'NoSuchBucket'
  const { buckets } = keeper
  const bucket = buckets.get(wanted.bucket)
  if (wanted.do === 'make bucket' && bucket === undefined) buckets.set(wanted.bucket, new Map())
  else if (bucket === undefined) return 'NoSuchBucket'
  else if (wanted.do === 'remove bucket' && bucket.size > 0) return 'BucketNotEmpty'
  else if (wanted.do === 'remove bucket') buckets.delete(wanted.bucket)
  else if (wanted.do === 'remove') bucket.delete(wanted.key)
  else if (wanted.do === 'put') {
    const { content, isInParts, tags } = wanted
    const etag = isInParts ? `${digestOf(content)}-2` : digestOf(content)
    bucket.set(wanted.key, { content, etag, modifiedAt, kept: { 'content-type': 'text/plain' }, tags })
  }
  return undefined
}
