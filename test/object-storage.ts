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
import type { StoreAnswer, StoreRequest } from '../kit/s3/exchange.ts'

export interface SimulatedTenant extends TenantSettings {
  bucketCount: number
  usedBytes: number
  objectCount: number
  measuredAt: string
}

export interface SimulatedObjectStorage extends ObjectStorage {
  readonly tenants: Map<string, SimulatedTenant>
  /** Keys of objects by the name of their bucket. */
  readonly buckets: Map<string, Set<string>>
  /** Of it alone. */
  readonly offer: ObjectStorageOffer
  /** While it is away, nothing is answered and nothing changes. */
  isAway: boolean
  /** What it refuses to do with buckets and objects. */
  refuses: ((request: StoreRequest) => { readonly status: number; readonly code: string } | undefined) | undefined
  /** What it waits for before it accepts a tenant. */
  hesitation: Promise<void> | undefined
  /** How often somebody asked for a tenant. */
  looks: number
  /** Requests of each tenant that change something and are under way. */
  openWrites: number
}

const unused = () => Promise.reject(new Error('there are no buckets'))
/** Tests here move no objects: passes over them find nothing. */
const EMPTY_S3: Omit<S3, 'exchange'> = {
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

const answer = (text = ''): StoreAnswer => ({ status: 200, headers: {}, text })
const refusal = (status: number, code: string): StoreAnswer => ({
  status,
  headers: {},
  text: `<Error><Code>${code}</Code><Message>it is ${code}</Message></Error>`,
})
const AT = '2026-01-02T03:04:05.000Z'

/** What a store with these buckets answers. Lists are whole and have no folders. */
function answerOf(buckets: Map<string, Set<string>>, { method, path = '' }: StoreRequest): StoreAnswer {
  const [bucket = '', ...rest] = path.split('/')
  const keys = buckets.get(bucket)
  const key = rest.join('/')
  if (bucket === '') {
    const list = [...buckets.keys()].map(
      (name) => `<Bucket><Name>${name}</Name><CreationDate>${AT}</CreationDate></Bucket>`,
    )
    return answer(`<ListAllMyBucketsResult>${list.join('')}</ListAllMyBucketsResult>`)
  }
  if (method === 'PUT') {
    buckets.set(bucket, keys ?? new Set())
    return answer()
  }
  if (keys === undefined) return refusal(404, 'NoSuchBucket')
  if (method === 'DELETE' && key !== '') keys.delete(key)
  else if (method === 'DELETE') {
    if (keys.size > 0) return refusal(409, 'BucketNotEmpty')
    buckets.delete(bucket)
  }
  const list = [...keys].map(
    (name) => `<Contents><Key>${name}</Key><Size>3</Size><LastModified>${AT}</LastModified><ETag>"e"</ETag></Contents>`,
  )
  return answer(`<ListBucketResult>${list.join('')}</ListBucketResult>`)
}

const EMPTY = { bucketCount: 0, usedBytes: 0, objectCount: 0, measuredAt: '2026-01-01T00:00:00.000Z' }

export function openSimulatedObjectStorage(
  zones: readonly string[],
  backend: ObjectStorage['backend'] = 'svc-s3-single',
): SimulatedObjectStorage {
  const tenants = new Map<string, SimulatedTenant>()
  const buckets = new Map<string, Set<string>>()
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
    openS3: (_zone, { accessKeyId, secretAccessKey }) => ({
      ...EMPTY_S3,
      exchange: {
        ask: unused,
        async askWhole(request) {
          there()
          const isKnown = [...tenants.values()].some(
            (tenant) => tenant.accessKeyId === accessKeyId && tenant.secretAccessKey === secretAccessKey,
          )
          const refused = storage.refuses?.(request)
          if (refused !== undefined) return refusal(refused.status, refused.code)
          return isKnown ? answerOf(buckets, request) : refusal(403, 'SignatureDoesNotMatch')
        },
      },
    }),
    upstreamOf: (zone) => ({ url: `https://${zone}.rgw.example:9000`, authority: null }),
    control,
    tenants,
    buckets,
    get offer() {
      return { stores: [storage], obstacle: '' }
    },
    isAway: false,
    refuses: undefined,
    hesitation: undefined,
    looks: 0,
    openWrites: 0,
  }
  return storage
}
