/** Object storage: an account's buckets in a zone for S3 clients. Stored shape, public shape, conversion and routes.
 *  Buckets and objects are not resources here: clients create them through S3. */
import { z } from 'zod'
import { resource } from '../kit/define.ts'
import { OperationView } from '../operation/index.ts'
import { DateTime, Metered, OperationProgress, OperationStanza, ZoneName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { BUCKET_ROUTES } from './buckets.ts'
export { managedBucket } from './buckets.ts'
import { AGE, READY, ZONE } from '../kit/columns.ts'
import { OBSERVED } from '../kit/fields.ts'

export const OBJECT_STORAGE_BACKENDS = ['rgw', 'svc-s3-single'] as const
export type ObjectStorageBackend = (typeof OBJECT_STORAGE_BACKENDS)[number]
const DURABILITIES = ['replicated', 'degraded', 'single_copy'] as const

export const ObjectStorage = resource({
  kind: 'ObjectStorage',
  plural: 'objectstorages',
  shortNames: ['objs'],
  scope: 'Namespaced',
  customers: 'write',
  description:
    'Enables the account to store buckets in a zone and use them with any S3 client. The API returns its keys; ' +
    'this object never contains them. It cannot be deleted while it has buckets.',
  spec: z
    .strictObject({
      zone: ZoneName.describe('Zone of the buckets; one object per account and zone.'),
      operation: OperationStanza.optional().describe('Change in progress, or the last one. Written by the platform.'),
    })
    .describe('The desired state of the object storage.'),
  status: z
    .strictObject({
      ...OBSERVED,
      operation: OperationProgress.optional().describe('Progress of that change.'),
      endpoint: z.string().max(512).optional().describe('URL that S3 clients connect to.'),
      accessKeyId: z.string().max(128).optional().describe('Id of its key.'),
      bucketPrefix: z.string().max(63).optional().describe('Required prefix of bucket names.'),
      backend: z.enum(OBJECT_STORAGE_BACKENDS).optional().describe('Product that stores the objects.'),
      quotaBytes: z.int().min(0).optional().describe('Maximum size of the stored data.'),
      usedBytes: z
        .int()
        .min(0)
        .optional()
        .describe('Size of the stored data, including older versions and unfinished uploads.'),
      objectCount: z.int().min(0).optional().describe('Number of stored objects.'),
      usageMeasuredAt: z.string().max(64).optional().describe('Time of the measurement.'),
      metered: Metered.optional().describe('Measured value that is billed.'),
    })
    .describe('Observed state. Written by its controller.'),
  columns: [
    ZONE,
    { name: 'Endpoint', type: 'string', jsonPath: '.status.endpoint' },
    { name: 'Objects', type: 'integer', jsonPath: '.status.objectCount' },
    { name: 'Used', type: 'integer', jsonPath: '.status.usedBytes' },
    READY,
    AGE,
  ],
  fixed: ['zone'],
})
export type ObjectStorageSpec = z.infer<typeof ObjectStorage.spec>
export type ObjectStorageStatus = z.infer<typeof ObjectStorage.status>

export const ObjectStorageView = z
  .strictObject({
    id: z.string(),
    zone: z.string(),
    endpoint: z.string(),
    certificate_authority: z.string().nullable(),
    access_key_id: z.string(),
    quota_bytes: z.int(),
    used_bytes: z.int(),
    object_count: z.int(),
    usage_measured_at: DateTime.nullable(),
    created_at: DateTime,
    backend: z.enum(OBJECT_STORAGE_BACKENDS),
    bucket_prefix: z.string().nullable(),
    durability: z.enum(DURABILITIES),
  })
  .meta({ id: 'ObjectStorage' })
export type ObjectStorageView = z.infer<typeof ObjectStorageView>

export const ObjectStorageCredentials = z
  .strictObject({ access_key_id: z.string(), secret_access_key: z.string() })
  .meta({ id: 'ObjectStorageCredentials' })

const WithCredentials = z.strictObject({ object_storage: ObjectStorageView, credentials: ObjectStorageCredentials })
const ByZone = z.strictObject({ zone: ZoneName })

const verbs = verbsOf({
  path: '/v1/object-storage',
  noun: 'object_storage',
  view: ObjectStorageView,
})

export const listObjectStorage = verbs.listWhole('list_object_storage', {
  summary: 'List object storage by zone',
  description: 'One entry per zone in which it is enabled.',
})

export const enableObjectStorage = verbs.create('enable_object_storage', {
  summary: 'Enable object storage in a zone',
  description:
    'If it is already enabled, the answer is the same, with the current key. Stored data is billed; empty object ' +
    'storage costs nothing.',
  needs: 'standing',
  audit: 'object_storage.enable',
  noDryRun: 'the store applies the key at once',
  body: z.strictObject({ zone: ZoneName }).meta({ id: 'EnableObjectStorageRequest' }),
  example: { zone: 'eu-1a' },
  secretFields: ['credentials'],
  answers: { 201: WithCredentials },
  refuses: [400, 402, 503],
})

export const getObjectStorageCredentials = verbs.get('get_object_storage_credentials', '/{zone}/credentials', {
  summary: 'Get the key of object storage',
  permission: 'operate',
  isCredentialRead: true,
  audit: 'object_storage.credentials',
  params: ByZone,
  answers: { 200: z.strictObject({ credentials: ObjectStorageCredentials }) },
  refuses: [404, 503],
})

export const rotateObjectStorageKeys = verbs.post('rotate_object_storage_keys', '/{zone}/rotate-keys', {
  summary: 'Replace the key of object storage',
  description: 'Creates a new secret; the old one is refused immediately. The id of the key stays the same.',
  audit: 'object_storage.rotate_keys',
  noDryRun: 'the store applies the key at once',
  isDestructive: true,
  params: ByZone,
  secretFields: ['credentials'],
  answers: { 200: WithCredentials },
  refuses: [404, 503],
})

export const migrateObjectStorage = verbs.post('migrate_object_storage', '/{zone}/migrate', {
  summary: 'Move object storage to the replicated storage of its zone',
  description:
    'Endpoint and key stay the same; afterwards bucket names need no prefix. Writes are refused during the final ' +
    'comparison. Refused for buckets with versioning or object lock, and when the zone has no replicated object ' +
    'storage.',
  starts: ['object_storage.migrate'],
  params: ByZone,
  answers: { 202: z.strictObject({ object_storage: ObjectStorageView, operation: OperationView }) },
  refuses: [404, 409, 503],
})

export const OBJECT_STORAGE_ROUTES = [
  listObjectStorage,
  enableObjectStorage,
  getObjectStorageCredentials,
  migrateObjectStorage,
  rotateObjectStorageKeys,
  ...BUCKET_ROUTES,
] as const

/** Facts about it from other sources than the object. */
export interface ObjectStorageFacts {
  readonly id: string
  readonly zone: string
  readonly accessKeyId: string
  readonly bucketPrefix: string
  readonly backend: ObjectStorageBackend
  readonly quotaBytes: number
  readonly usedBytes: number
  readonly objectCount: number
  readonly usageMeasuredAt: Date | null
  readonly createdAt: Date
}

/** Of the store that holds the objects. */
export interface ObjectStorageReach {
  readonly endpoint: string
  /** PEM of the CA that signed its certificate. */
  readonly certificateAuthority: string | null
  readonly durability: ObjectStorageView['durability']
}

/** On the gateway each account has its own bucket names. */
export const toObjectStorageView = (
  facts: ObjectStorageFacts,
  { endpoint, certificateAuthority, durability }: ObjectStorageReach,
): ObjectStorageView => ({
  id: facts.id,
  zone: facts.zone,
  endpoint,
  certificate_authority: certificateAuthority,
  access_key_id: facts.accessKeyId,
  quota_bytes: facts.quotaBytes,
  used_bytes: facts.usedBytes,
  object_count: facts.objectCount,
  usage_measured_at: facts.usageMeasuredAt?.toISOString() ?? null,
  created_at: facts.createdAt.toISOString(),
  backend: facts.backend,
  bucket_prefix: facts.backend === 'rgw' ? null : facts.bucketPrefix,
  durability,
})

export const managedObjectStorage = managed({
  noun: 'object_storage',
  view: ObjectStorageView,
  routes: { list: listObjectStorage, create: enableObjectStorage },
  identity: 'zone',
  names: ['zone'],
  uniqueIn: 'account',
  changes: [],
  facts: ['id', 'endpoint', 'certificate_authority', 'access_key_id', 'backend', 'bucket_prefix', 'created_at'],
  moments: ['quota_bytes', 'used_bytes', 'object_count', 'usage_measured_at', 'durability'],
})
