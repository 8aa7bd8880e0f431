/** A simulated object store for tests of who offers it: it knows its tenants, and what tests say that they hold. The
 *  real one is tested in `test/embedded/object-storage/`. */
import { Unavailable } from '../domain/problem.ts'
import type { ObjectStorageOffer } from '../integrations/object-storage/configuration.ts'
import {
  fingerprintOfSecret,
  type ObjectStorage,
  type ObjectStorageControl,
  type TenantSettings,
  type TenantState,
} from '../integrations/object-storage/control.ts'
import type { S3 } from '../integrations/object-storage/s3.ts'

export interface SimulatedTenant extends TenantSettings {
  bucketCount: number
  usedBytes: number
  objectCount: number
  measuredAt: string
}

export interface SimulatedObjectStorage extends ObjectStorage {
  readonly tenants: Map<string, SimulatedTenant>
  /** Of it alone. */
  readonly offer: ObjectStorageOffer
  /** While it is away, nothing is answered and nothing changes. */
  isAway: boolean
  /** What it waits for before it accepts a tenant. */
  hesitation: Promise<void> | undefined
  /** How often somebody asked for a tenant. */
  looks: number
  /** Requests of each tenant that change something and are under way. */
  openWrites: number
}

const unused = () => Promise.reject(new Error('there are no buckets'))
/** Tests here hold no objects: passes over them find nothing. */
const EMPTY_S3: S3 = {
  exchange: { ask: unused, askWhole: unused },
  buckets: async () => ({ names: [], at: new Date() }),
  settingOf: unused,
  putSetting: unused,
  list: unused,
  head: unused,
  tagsOf: unused,
  ensureBucket: unused,
  removeObject: unused,
  removeBucket: unused,
  ask: unused,
}

const EMPTY = { bucketCount: 0, usedBytes: 0, objectCount: 0, measuredAt: '2026-01-01T00:00:00.000Z' }

export function openSimulatedObjectStorage(
  zones: readonly string[],
  backend: ObjectStorage['backend'] = 'svc-s3-single',
): SimulatedObjectStorage {
  const tenants = new Map<string, SimulatedTenant>()
  const there = (): void => {
    if (storage.isAway) throw new Unavailable('the object storage')
  }
  const stateOf = ({ secretAccessKey, buckets: _buckets, ...tenant }: SimulatedTenant): TenantState => ({
    ...tenant,
    bucketPrefix: backend === 'rgw' ? undefined : tenant.bucketPrefix,
    openWrites: storage.openWrites,
    secretFingerprint: fingerprintOfSecret(secretAccessKey),
  })
  const control: ObjectStorageControl = {
    async putTenant(id, settings) {
      there()
      await storage.hesitation
      tenants.set(id, { ...(tenants.get(id) ?? EMPTY), ...settings })
    },
    async getTenant(id) {
      there()
      storage.looks++
      const tenant = tenants.get(id)
      return tenant && stateOf(tenant)
    },
    async removeTenant(id, isPurged = false) {
      there()
      if (!isPurged && (tenants.get(id)?.bucketCount ?? 0) > 0) return false
      tenants.delete(id)
      return true
    },
  }
  const storage: SimulatedObjectStorage = {
    takesArchives: backend === 'svc-s3-single',
    backend,
    durability: backend === 'rgw' ? 'replicated' : 'single_copy',
    zones,
    endpointOf: (zone) => `https://${zone}.${backend === 'rgw' ? 'rgw' : 'objects'}.example:9000`,
    certificateAuthority: '-----BEGIN CERTIFICATE-----\n',
    openS3: () => EMPTY_S3,
    upstreamOf: (zone) => ({ url: `https://${zone}.rgw.example:9000`, authority: null }),
    control,
    tenants,
    get offer() {
      return { stores: [storage], obstacle: '' }
    },
    isAway: false,
    hesitation: undefined,
    looks: 0,
    openWrites: 0,
  }
  return storage
}
