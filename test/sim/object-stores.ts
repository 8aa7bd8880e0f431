/** Object stores in virtual time: an engine on one host behind its proxy, and a gateway beside it that a zone gains
 *  later. They lose requests and answers, refuse, are slow and away; what they hold they keep. */
import { createHash } from 'node:crypto'
import {
  fingerprintOfSecret,
  type ObjectStorage,
  type TenantSettings,
  type TenantState,
} from '../../integrations/object-storage/control.ts'
import { ZONES } from './catalog.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

export interface StoredObject {
  readonly content: string
  /** Of one that was stored in parts it is no digest. */
  readonly etag: string
  readonly modifiedAt: Date
  readonly kept: Readonly<Record<string, string>>
  /** Name and value by turns. */
  readonly tags: readonly string[]
}
export type Bucket = Map<string, StoredObject>

export interface StoredTenant {
  settings: TenantSettings
  readonly buckets: Map<string, Bucket>
  /** Requests under way that change something, as the proxy counts them. */
  openWrites: number
  measured: Pick<TenantState, 'bucketCount' | 'usedBytes' | 'objectCount' | 'measuredAt'> | undefined
}

export interface SimulatedStore {
  readonly backend: ObjectStorage['backend']
  readonly zones: string[]
  readonly tenants: Map<string, StoredTenant>
  awayUntil: number
  slowUntil: number
}

/** What goes wrong on the way to a store and back, as often as the seed has it. */
export interface StoreRates {
  /** The request does not arrive. */
  readonly breaks: number
  /** It has taken effect, and nobody hears of it. */
  readonly losesAnswer: number
  /** The process that has asked dies of it. */
  readonly crashes: number
  /** S3 answers with an error. */
  readonly refuses: number
  /** What is read breaks off in the middle. */
  readonly cutsShort: number
}

export interface ObjectStores {
  readonly single: SimulatedStore
  readonly gateway: SimulatedStore
  rates: StoreRates
  readonly scheduler: Scheduler
  /** The store that clients find at the endpoint. */
  at(endpoint: string): SimulatedStore
  /** For a while it answers nobody. */
  cut(store: SimulatedStore, milliseconds: number): void
  slowDown(store: SimulatedStore, milliseconds: number): void
  calm(): void
}

const CALM: StoreRates = { breaks: 0, losesAnswer: 0, crashes: 0, refuses: 0, cutsShort: 0 }
/** A pass over many objects asks hundreds of times: it goes on although some of that fails, and not over a crash. */
const STRONGEST: StoreRates = { breaks: 0.02, losesAnswer: 0.02, crashes: 0.004, refuses: 0.02, cutsShort: 0.03 }
const MEASURE_MILLISECONDS = 10_000
const SLOW_MILLISECONDS = 1_500

const newStore = (backend: SimulatedStore['backend'], zones: readonly string[]): SimulatedStore => ({
  backend,
  zones: [...zones],
  tenants: new Map(),
  awayUntil: 0,
  slowUntil: 0,
})

export function newObjectStores(scheduler: Scheduler): ObjectStores {
  const { random } = scheduler
  const drawn = Object.fromEntries(
    Object.entries(STRONGEST).map(([name, most]) => [name, random.fraction() < 0.6 ? most * random.fraction() : 0]),
  ) as unknown as StoreRates // the same keys
  const [single, gateway] = [newStore('svc-s3-single', ZONES), newStore('rgw', [])]
  const stores: ObjectStores = {
    single,
    gateway,
    rates: drawn,
    scheduler,
    at: (endpoint) => (endpoint.includes('gateway') ? gateway : single),
    cut(store, milliseconds) {
      scheduler.note(`fault store ${store.backend} is away`)
      store.awayUntil = scheduler.nowMilliseconds + milliseconds
    },
    slowDown(store, milliseconds) {
      scheduler.note(`fault store ${store.backend} is slow`)
      store.slowUntil = scheduler.nowMilliseconds + milliseconds
    },
    calm() {
      stores.rates = CALM
      for (const store of [single, gateway]) store.awayUntil = store.slowUntil = 0
    },
  }
  return stores
}

export const latencyOf = ({ scheduler, rates }: ObjectStores, { slowUntil }: SimulatedStore): number =>
  1 +
  scheduler.random.fraction() * (slowUntil > scheduler.nowMilliseconds ? SLOW_MILLISECONDS : rates === CALM ? 3 : 40)

/** Whether that goes wrong now. */
export function strikes({ scheduler, rates }: ObjectStores, what: keyof StoreRates): boolean {
  if (rates[what] === 0 || scheduler.random.fraction() >= rates[what]) return false
  scheduler.note(`fault store ${what}`)
  return true
}

const broken = (what: string) => Object.assign(new Error(`simulated store: ${what}`), { code: 'ECONNRESET' })

/** One request of a process: what arrives takes effect, also when the process has died meanwhile. */
export function reach<Answer>(
  stores: ObjectStores,
  store: SimulatedStore,
  process: SimulatedProcess,
  work: () => Answer,
): Promise<Answer> {
  const { scheduler } = stores
  const exchange = async (): Promise<Answer> => {
    await scheduler.pause(latencyOf(stores, store))
    if (store.awayUntil > scheduler.nowMilliseconds) throw broken('it is away')
    if (strikes(stores, 'breaks')) throw broken('the request is lost')
    const answer = work()
    if (process.isRunning && strikes(stores, 'crashes')) process.crash()
    if (strikes(stores, 'losesAnswer')) throw broken('the answer is lost')
    await scheduler.pause(latencyOf(stores, store))
    return answer
  }
  return process.bound(exchange())
}

/** From now on the tenant is so. The proxy refuses what comes too late. */
export function put({ backend, tenants }: SimulatedStore, id: string, settings: TenantSettings): void {
  const known = tenants.get(id)
  if (backend !== 'rgw' && (settings.toldAt ?? 0) < (known?.settings.toldAt ?? 0)) throw broken('it was told newer')
  const tenant = known ?? { settings, buckets: new Map<string, Bucket>(), openWrites: 0, measured: undefined }
  tenant.settings = settings
  if (settings.upstream?.isSourceKept === false) tenant.buckets.clear()
  for (const name of settings.buckets ?? []) if (!tenant.buckets.has(name)) tenant.buckets.set(name, new Map())
  tenants.set(id, tenant)
}

export const bytesOf = ({ buckets }: StoredTenant): number =>
  [...buckets.values()].flatMap((bucket) => [...bucket.values()]).reduce((sum, { content }) => sum + content.length, 0)

/** What it holds is as old as the last time that somebody looked. */
export function stateOf(
  { scheduler }: ObjectStores,
  { backend }: SimulatedStore,
  tenant: StoredTenant,
  isFresh: boolean,
): TenantState {
  const { settings, buckets, openWrites } = tenant
  const now = scheduler.now()
  const isOld =
    tenant.measured === undefined ||
    now.getTime() - Date.parse(tenant.measured.measuredAt) >= MEASURE_MILLISECONDS ||
    isFresh
  const measured =
    tenant.measured !== undefined && !isOld
      ? tenant.measured
      : {
          bucketCount: buckets.size,
          usedBytes: bytesOf(tenant),
          objectCount: [...buckets.values()].reduce((sum, { size }) => sum + size, 0),
          measuredAt: now.toISOString(),
        }
  tenant.measured = measured
  const { secretAccessKey, buckets: _made, bucketPrefix, ...rest } = settings
  return {
    ...rest,
    ...(backend === 'rgw' ? {} : { bucketPrefix, openWrites }),
    secretFingerprint: fingerprintOfSecret(secretAccessKey),
    ...measured,
  }
}

/** The tenant whose key it is. */
export const tenantByKey = ({ tenants }: SimulatedStore, accessKeyId: string): StoredTenant | undefined =>
  [...tenants.values()].find(({ settings }) => settings.accessKeyId === accessKeyId)

export const digestOf = (content: string): string => createHash('md5').update(content).digest('hex')
