/** The tenants of this store, in one file that is written atomically. The front end uses it while nothing else of the
 *  platform runs. It contains only fingerprints of secrets; places have the secrets. */
import { constants } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { TenantSettings, fingerprintOfSecret } from '../../integrations/object-storage/control.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { FolderUsage } from './usage.ts'
import { Mutex } from '../../kit/sys/mutex.ts'

const KnownTenant = TenantSettings.omit({ secretAccessKey: true, buckets: true }).extend({
  id: z.string(),
  secretFingerprint: z.string(),
})
const AHEAD_MILLISECONDS_MAXIMUM = 60_000
/** Longer than any request takes. */
const REMOVED_MILLISECONDS = 600_000
const KnownTenants = z.array(KnownTenant)
type KnownTenant = z.infer<typeof KnownTenant>

export interface Tenant extends KnownTenant {
  readonly usage: FolderUsage
  /** Requests in progress, and the number of those that change something. */
  active: number
  writing: number
}

/** Another tenant has the key or the prefix, or newer settings were received before. A request can outlive the process
 *  that sent it; it could otherwise restore an old secret or a removed tenant. */
export class TenantConflict extends Error {}

/** Stores the objects of tenants. */
export interface Keeper {
  /** Fingerprint of the tenant's secret; empty when it has none. */
  fingerprint(id: string): string
  /** Gives the tenant this secret and serves it. */
  tell(tenant: Pick<KnownTenant, 'id' | 'accessKeyId' | 'bucketPrefix'>, secretAccessKey: string): Promise<void>
  /** Gives the tenant this secret; it is served elsewhere. */
  note(tenant: Pick<KnownTenant, 'id' | 'accessKeyId' | 'bucketPrefix'>, secretAccessKey: string): Promise<void>
  /** Creates the tenant's bucket of this name if it is missing. */
  ensureBucket(id: string, name: string): Promise<void>
  /** Removes everything of the tenant unless `mayGo` returns false; returns whether it did. Nothing can be added
   *  meanwhile. */
  remove(id: string, mayGo: () => Promise<boolean>): Promise<boolean>
  /** Why its requests fail, if they do. */
  fault(id: string): string | undefined
}

export interface Tenants {
  all(): readonly Tenant[]
  find(id: string): Tenant | undefined
  /** The tenant with the key that a request claims. */
  byKey(accessKeyId: string): Tenant | undefined
  /** Fingerprint of the secret of its key, if that is here. */
  fingerprint(tenant: Tenant): string
  /** Why requests of the tenant fail; undefined when no failure is known. */
  fault(tenant: Tenant): string | undefined
  /** Throws TenantConflict, and errors that prevent the tenant from being served. */
  put(id: string, settings: TenantSettings): Promise<void>
  /** Returns false while it has buckets; with `isPurged` they are removed. */
  remove(id: string, isPurged: boolean): Promise<boolean>
}

export interface TenantsOptions {
  readonly file: string
  readonly keeper: Keeper
  readonly openUsage: (tenant: Pick<KnownTenant, 'id' | 'bucketPrefix'>) => FolderUsage
  readonly now: () => Date
}

export async function openTenants({ file, keeper, openUsage, now }: TenantsOptions): Promise<Tenants> {
  const byId = new Map<string, Tenant>()
  const byKey = new Map<string, Tenant>()
  const keep = (known: KnownTenant, usage: FolderUsage): void => {
    const tenant = { ...known, usage, active: 0, writing: 0 }
    const before = byId.get(known.id)
    if (before !== undefined) byKey.delete(before.accessKeyId)
    byId.set(known.id, tenant)
    byKey.set(known.accessKeyId, tenant)
  }
  for (const known of await readTenants(file)) keep(known, openUsage(known))

  /** When tenants were removed, oldest first. Older requests in progress do not survive this process. */
  const removed = new Map<string, number>()
  const wasRemoved = (id: string, toldAt = Infinity): boolean => toldAt / 1_000 < (removed.get(id) ?? 0)
  const noteRemoved = (id: string): void => {
    const at = now().getTime()
    for (const [other, before] of removed) if (at - before > REMOVED_MILLISECONDS) removed.delete(other)
    removed.set(id, at)
  }

  const changes = new Mutex()
  const write = (tenants: readonly KnownTenant[]): Promise<void> =>
    writeDurably(file, JSON.stringify(tenants.map((tenant) => KnownTenant.strip().parse(tenant))))

  return {
    all: () => [...byId.values()],
    find: (id) => byId.get(id),
    byKey: (accessKeyId) => byKey.get(accessKeyId),
    fingerprint: ({ id }) => keeper.fingerprint(id),
    fault: ({ id, upstream }) => (upstream === undefined ? keeper.fault(id) : undefined),
    put: (id, { secretAccessKey, buckets = [], ...settings }) =>
      changes.run(async () => {
        const before = byId.get(id)
        const others = [...byId.values()].filter((other) => other.id !== id)
        if (others.some((other) => collides(other, settings))) throw new TenantConflict()
        if (before !== undefined && before.accessKeyId !== settings.accessKeyId) throw new TenantConflict()
        if (isLate(settings, before, now()) || wasRemoved(id, settings.toldAt)) throw new TenantConflict()
        const known = { id, upstream: undefined, ...settings, secretFingerprint: fingerprintOfSecret(secretAccessKey) }
        if (buckets.some((name) => !name.startsWith(settings.bucketPrefix))) throw new TenantConflict()
        if (settings.upstream?.isSourceKept === false && before?.upstream?.isSourceKept !== false)
          await keeper.remove(id, async () => true)
        if (keeper.fingerprint(id) !== known.secretFingerprint)
          await (settings.upstream === undefined ? keeper.tell : keeper.note)(known, secretAccessKey)
        for (const name of buckets) await keeper.ensureBucket(id, name)
        await write([...others, known])
        if (before === undefined) keep(known, openUsage(known))
        // Requests in progress count on this object.
        else Object.assign(before, known)
        const fault = known.upstream === undefined ? keeper.fault(id) : undefined
        if (fault !== undefined) throw new Error(fault)
      }),
    remove: (id, isPurged) =>
      changes.run(async () => {
        const tenant = byId.get(id)
        if (tenant === undefined) return true
        const isEmpty = async () => {
          await tenant.usage.measure()
          return tenant.usage.measured?.buckets === 0
        }
        if (!(await keeper.remove(id, async () => isPurged || (await isEmpty())))) return false
        await write([...byId.values()].filter((other) => other.id !== id))
        noteRemoved(id)
        byId.delete(id)
        byKey.delete(tenant.accessKeyId)
        return true
      }),
  }
}

/** Whether the settings are older than the known ones. Known settings from a clock far ahead do not count. */
const isLate = (
  { toldAt }: Pick<KnownTenant, 'toldAt'>,
  before: Pick<KnownTenant, 'toldAt'> | undefined,
  now: Date,
): boolean =>
  toldAt !== undefined &&
  before?.toldAt !== undefined &&
  toldAt < before.toldAt &&
  before.toldAt / 1_000 < now.getTime() + AHEAD_MILLISECONDS_MAXIMUM

/** Whether one tenant could use the other's buckets. */
const collides = (one: Pick<KnownTenant, 'accessKeyId' | 'bucketPrefix'>, other: typeof one): boolean =>
  one.accessKeyId === other.accessKeyId ||
  one.bucketPrefix.startsWith(other.bucketPrefix) ||
  other.bucketPrefix.startsWith(one.bucketPrefix)

export async function readTenants(file: string): Promise<readonly KnownTenant[]> {
  // The folder belongs to a user without rights, and a user with rights may read the file.
  const flag = constants.O_RDONLY | constants.O_NOFOLLOW
  const text = await readFile(file, { encoding: 'utf8', flag }).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? [] : KnownTenants.parse(JSON.parse(text))
}
