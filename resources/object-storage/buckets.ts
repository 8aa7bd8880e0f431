/** Buckets and objects as people look at them: public shapes and routes. Programs use S3. Bodies of objects never pass
 *  the API: clients send and get them with signed addresses. */
import { z } from 'zod'
import { completeListOf, DateTime, LIST_LIMIT_DEFAULT, limitOf, ZoneName } from '../kit/shapes.ts'
import { managed } from '../kit/managed.ts'
import { routesUnder } from '../kit/verbs.ts'

export const PRESIGNED_SECONDS_MAXIMUM = 3_600
const PRESIGNED_SECONDS_DEFAULT = 300
/** Bytes of a key in UTF-8 are limited as well, by the store. */
const KEY_CHARACTERS_MAXIMUM = 1_024
const CURSOR_CHARACTERS_MAXIMUM = 4_096

const BucketName = z
  .string()
  .min(3)
  .max(63)
  .regex(
    /^[a-z0-9][a-z0-9.-]*[a-z0-9]$/,
    'must be 3 to 63 lower-case letters, digits, dots and dashes, starting and ending with a letter or digit',
  )
  .describe('Name of the bucket. Where bucket_prefix is not null, it begins with that prefix.')
const Key = z.string().min(1).max(KEY_CHARACTERS_MAXIMUM).describe('Key of the object.')
const ByBucket = z.strictObject({
  zone: ZoneName,
  bucket: z
    .string()
    .min(1)
    .max(255)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/)
    .describe('Name of the bucket.'),
})

export const BucketView = z
  .strictObject({ name: z.string().describe('Name of the bucket.'), created_at: DateTime })
  .meta({ id: 'ObjectStorageBucket' })
export type BucketView = z.infer<typeof BucketView>

export const StoredObjectView = z
  .strictObject({
    key: z.string().describe('Key of the object.'),
    size_bytes: z.int().min(0).describe('Size of the object.'),
    modified_at: DateTime.describe('Time when it was stored.'),
    etag: z.string().describe('Identifies the content. For objects that were uploaded in parts it is no digest.'),
  })
  .meta({ id: 'StoredObject' })
export type StoredObjectView = z.infer<typeof StoredObjectView>

const verbs = routesUnder({ path: '/v1/object-storage' })

export const listObjectStorageBuckets = verbs.get('list_object_storage_buckets', '/{zone}/buckets', {
  summary: 'List buckets',
  params: z.strictObject({ zone: ZoneName }),
  answers: { 200: completeListOf(BucketView) },
  refuses: [404, 409, 503],
})

export const createObjectStorageBucket = verbs.post('create_object_storage_bucket', '/{zone}/buckets', {
  summary: 'Create a bucket',
  description: 'An account can have 100 buckets in a zone.',
  needs: 'standing',
  audit: 'object_storage.create_bucket',
  noDryRun: 'the store creates it at once',
  params: z.strictObject({ zone: ZoneName }),
  body: z.strictObject({ name: BucketName }).meta({ id: 'CreateBucketRequest' }),
  example: { name: 'k3x9q2m7ab-photos' },
  answers: { 201: z.strictObject({ bucket: BucketView }) },
  refuses: [400, 402, 404, 409, 503],
})

export const deleteObjectStorageBucket = verbs.delete('delete_object_storage_bucket', '/{zone}/buckets/{bucket}', {
  summary: 'Delete an empty bucket',
  description: 'Refused while it contains objects, older versions of objects, or unfinished uploads.',
  audit: 'object_storage.delete_bucket',
  noDryRun: 'the store deletes it at once',
  params: ByBucket,
  refuses: [404, 409, 503],
})

export const listObjectStorageObjects = verbs.get('list_object_storage_objects', '/{zone}/buckets/{bucket}/objects', {
  summary: 'List objects of a bucket',
  description:
    'One level of the bucket: objects whose keys begin with the prefix, and folders for keys that continue beyond ' +
    'the next "/". With recursive=true, all objects with the prefix and no folders. A page can contain fewer items ' +
    'than the limit.',
  params: ByBucket,
  query: z.strictObject({
    prefix: z.string().max(KEY_CHARACTERS_MAXIMUM).default('').describe('Beginning of the keys.'),
    recursive: z.enum(['true', 'false']).default('false').describe('Also lists the objects in folders.'),
    cursor: z.string().min(1).max(CURSOR_CHARACTERS_MAXIMUM).optional(),
    limit: limitOf(LIST_LIMIT_DEFAULT),
  }),
  answers: {
    200: z
      .strictObject({
        items: z.array(StoredObjectView),
        folders: z.array(z.string()).describe('Beginnings of keys, with the "/" at their end.'),
        next_cursor: z.string().nullable(),
      })
      .meta({ id: 'StoredObjectPage' }),
  },
  refuses: [400, 404, 409, 503],
})

export const deleteObjectStorageObject = verbs.post(
  'delete_object_storage_object',
  '/{zone}/buckets/{bucket}/delete-object',
  {
    summary: 'Delete an object',
    description:
      'Succeeds if there is no such object. In a bucket with versioning, older versions are kept. Refused while the ' +
      'object is locked.',
    audit: 'object_storage.delete_object',
    isDestructive: true,
    noDryRun: 'the store deletes it at once',
    params: ByBucket,
    body: z.strictObject({ key: Key }).meta({ id: 'DeleteObjectRequest' }),
    example: { key: 'photos/2026/sunset.jpg' },
    answers: { 204: null },
    refuses: [400, 404, 409, 503],
  },
)

export const presignObjectStorageObject = verbs.post(
  'presign_object_storage_object',
  '/{zone}/buckets/{bucket}/presign',
  {
    summary: 'Create a signed address of an object',
    description:
      'Whoever has the address can send one kind of request without the key of the account, until it expires: GET ' +
      'downloads the object as a file, PUT stores the body as the object, up to 5 GiB. It stops working when the key ' +
      'is rotated. Only this answer contains the address.',
    isCredentialRead: true,
    audit: 'object_storage.presign',
    noDryRun: 'it changes nothing',
    params: ByBucket,
    body: z
      .strictObject({
        method: z.enum(['GET', 'PUT']).describe('Request that the address is for.'),
        key: Key.describe('Key of the object, which does not need to exist.'),
        expires_in_seconds: z
          .int()
          .min(1)
          .max(PRESIGNED_SECONDS_MAXIMUM)
          .default(PRESIGNED_SECONDS_DEFAULT)
          .describe('Lifetime of the address.'),
      })
      .meta({ id: 'PresignRequest' }),
    example: { method: 'GET', key: 'photos/2026/sunset.jpg', expires_in_seconds: 600 },
    secretFields: ['presigned_url'],
    answers: {
      200: z
        .strictObject({
          presigned_url: z.string().describe('The address. Treat it like a password.'),
          method: z.enum(['GET', 'PUT']),
          expires_at: DateTime,
        })
        .meta({ id: 'PresignedRequest' }),
    },
    refuses: [400, 402, 404, 409, 503],
  },
)

export const BUCKET_ROUTES = [
  listObjectStorageBuckets,
  createObjectStorageBucket,
  deleteObjectStorageBucket,
  listObjectStorageObjects,
  deleteObjectStorageObject,
  presignObjectStorageObject,
] as const

export const managedBucket = managed({
  noun: 'object_storage_bucket',
  key: 'bucket',
  view: BucketView,
  routes: {
    list: listObjectStorageBuckets,
    create: createObjectStorageBucket,
    remove: deleteObjectStorageBucket,
  },
  identity: 'name',
  parent: { field: 'zone', refers: 'object_storage', parameter: 'zone', own: 'bucket' },
  names: ['name'],
  uniqueIn: 'parent',
  changes: [],
  facts: ['created_at'],
  moments: [],
})
