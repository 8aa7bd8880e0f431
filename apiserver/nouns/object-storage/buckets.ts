/** Buckets and objects of an account, for people who look at them. The API lists and deletes with the key of the
 *  account; bodies of objects go between clients and the store, by signed addresses. */
import { appendAudit } from '../../../db/audit/index.ts'
import { requireStanding } from '../../../db/account/index.ts'
import type { ObjectStorageRow } from '../../../db/object-storage/index.ts'
import { badField, conflict, nameTaken, notFound, Unavailable } from '../../../domain/problem.ts'
import { type Browser, openBrowser } from '../../../integrations/object-storage/browse.ts'
import type { TenantStores } from '../../../integrations/object-storage/tenant-stores.ts'
import type { Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Route } from '../../../kit/http/route.ts'
import { checkKey, engineKeyRefusal } from '../../../kit/s3/names.ts'
import { absentHeaders, presign } from '../../../kit/s3/presign.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'
import { escapeForSignature } from '../../../kit/s3/signature.ts'
import { byTheMachine } from '../../../kit/sys/clock.ts'
import {
  type BucketView,
  createObjectStorageBucket,
  deleteObjectStorageBucket,
  deleteObjectStorageObject,
  listObjectStorageBuckets,
  listObjectStorageObjects,
  presignObjectStorageObject,
  type StoredObjectView,
} from '../../../resources/object-storage/buckets.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { credentialsOf, findIn, type ObjectStorageParts, requireTold } from './tenant.ts'

/** Any is accepted by the stores. */
const REGION = 'us-east-1'

export function bucketEndpoints(parts: ObjectStorageParts): readonly Endpoint[] {
  return [
    customerEndpoint(listObjectStorageBuckets, async ({ caller, params }) => {
      const { browser } = await openStore(parts, caller.accountId, params.zone)
      return { status: 200, body: { items: (await reading(browser.buckets())).map(bucketViewOf), next_cursor: null } }
    }),
    customerEndpoint(createObjectStorageBucket, async (call) => ({
      status: 201,
      body: { bucket: await createBucket(parts, call) },
    })),
    customerEndpoint(deleteObjectStorageBucket, async (call) => {
      const { zone, bucket } = call.params
      const { row, browser } = await openStore(parts, call.caller.accountId, zone, bucket)
      await requireEmpty(browser, bucket)
      await noted(parts, call, { row, detail: { bucket } }, () => changing(browser.deleteBucket(bucket)))
      return { status: 204 }
    }),
    customerEndpoint(listObjectStorageObjects, async ({ caller, params: { zone, bucket }, query }) => {
      const { browser } = await openStore(parts, caller.accountId, zone, bucket)
      const page = await reading(
        browser.page(bucket, {
          prefix: query.prefix,
          hasFolders: query.recursive === 'false',
          after: query.cursor === undefined ? undefined : tokenOf(query.cursor),
          count: query.limit,
        }),
        query.cursor === undefined ? 'prefix' : 'cursor',
      )
      const items = page.objects.map(
        ({ key, bytes, modifiedAt, etag }): StoredObjectView => ({
          key,
          size_bytes: bytes,
          modified_at: modifiedAt.toISOString(),
          etag,
        }),
      )
      const cursor = page.next === undefined ? null : Buffer.from(page.next).toString('base64url')
      return { status: 200, body: { items, folders: page.folders, next_cursor: cursor } }
    }),
    customerEndpoint(deleteObjectStorageObject, async (call) => {
      const { zone, bucket } = call.params
      const { key } = call.body
      const { row, browser, stores } = await openStore(parts, call.caller.accountId, zone, bucket)
      requireKey(stores, key, false)
      await reading(browser.requireBucket(bucket))
      await noted(parts, call, { row, detail: { bucket, key } }, () =>
        changing(browser.deleteObject(bucket, key), 'key'),
      )
      return { status: 204 }
    }),
    customerEndpoint(presignObjectStorageObject, async (call) => ({ status: 200, body: await presigned(parts, call) })),
  ]
}

interface OpenStore {
  readonly row: ObjectStorageRow
  readonly stores: TenantStores
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string }
  readonly browser: Browser
}

/** Throws 404 for object storage that the account does not have, and for names that none of its buckets can have; 503
 *  where no store serves it. */
async function openStore(
  parts: ObjectStorageParts,
  accountId: string,
  zone: string,
  bucket?: string,
): Promise<OpenStore> {
  const row = await findIn(parts, accountId, zone)
  const stores = requireTold(parts, row)
  if (bucket !== undefined && isForeign(row, stores, bucket)) throw notFound('bucket')
  const keys = credentialsOf(parts, row)
  const credentials = { accessKeyId: keys.access_key_id, secretAccessKey: keys.secret_access_key }
  const { exchange } = stores.keeper.openS3(zone, credentials)
  return { row, stores, credentials, browser: openBrowser(exchange) }
}

/** On a single host, all accounts share the names of buckets. */
const isForeign = ({ bucketPrefix }: ObjectStorageRow, { keeper }: TenantStores, bucket: string): boolean =>
  keeper.backend === 'svc-s3-single' && !bucket.startsWith(bucketPrefix)

async function createBucket(
  parts: ObjectStorageParts,
  call: Call<typeof createObjectStorageBucket, Customer>,
): Promise<BucketView> {
  const { name } = call.body
  const { row, stores, browser } = await openStore(parts, call.caller.accountId, call.params.zone)
  if (isForeign(row, stores, name)) throw badField('name', `must begin with ${row.bucketPrefix}`)
  // Stores accept a second creation by the same owner.
  if ((await reading(browser.buckets())).some((bucket) => bucket.name === name)) throw bucketTaken()
  await changing(browser.createBucket(name), 'name')
  await note(parts, call, row, { bucket: name })
  // It is there: only its time may be unknown.
  const buckets = await browser.buckets().catch(() => [])
  return bucketViewOf(buckets.find((bucket) => bucket.name === name) ?? { name, createdAt: call.now })
}

async function presigned(
  parts: ObjectStorageParts,
  call: Call<typeof presignObjectStorageObject, Customer>,
): Promise<object> {
  const {
    caller: { accountId },
    params: { zone, bucket },
    body: { method, key, expires_in_seconds: expiresSeconds },
  } = call
  const { row, stores, credentials, browser } = await openStore(parts, accountId, zone, bucket)
  requireKey(stores, key, method === 'PUT')
  if (method === 'PUT')
    await requireStanding(parts.db, accountId, {
      now: call.now,
      areAddressesConfirmed: parts.areAddressesConfirmed,
    })
  await reading(browser.requireBucket(bucket))
  const now = parts.clock.now()
  const url = presign(
    {
      method,
      endpoint: stores.entrance.endpointOf(zone),
      bucket,
      key,
      // A page among the objects would run with the rights of the name that it is at.
      ...(method === 'GET' ? { query: { 'response-content-disposition': attachmentOf(key) } } : {}),
      absent: absentHeaders(method, stores.entrance.backend),
      expiresSeconds,
    },
    { ...credentials, region: REGION },
    byTheMachine(now),
  )
  // Signatures have whole seconds.
  const expiresAt = new Date((Math.floor(now.getTime() / 1_000) + expiresSeconds) * 1_000).toISOString()
  await note(parts, call, row, { bucket, key, method, expires_at: expiresAt })
  return { presigned_url: url, method, expires_at: expiresAt }
}

/** A download with the last part of the key as its name. */
const attachmentOf = (key: string): string =>
  `attachment; filename*=UTF-8''${escapeForSignature(key.split('/').findLast((part) => part !== '') ?? key)}`

async function note<R extends Route>(
  parts: ObjectStorageParts,
  call: Call<R, Customer>,
  row: ObjectStorageRow,
  detail: Readonly<Record<string, string>>,
): Promise<void> {
  const entry = auditEntryOf(call, { resourceId: row.id, detail })
  await parts.db.transaction().execute((tx) => appendAudit(tx, entry, parts))
}

/** Does work that cannot be undone once its entry was written, so that a kill between them loses no entry. A refusal of
 *  the work gets an entry under another action: one request has at most one of each. */
async function noted<R extends Route>(
  parts: ObjectStorageParts,
  call: Call<R, Customer>,
  { row, detail }: { readonly row: ObjectStorageRow; readonly detail: Readonly<Record<string, string>> },
  work: () => Promise<void>,
): Promise<void> {
  await note(parts, call, row, detail)
  call.audited.as = `${call.route.audit}_failed`
  await work()
}

/** Throws 409. What only the store sees, such as older versions, it refuses itself. */
async function requireEmpty(browser: Browser, bucket: string): Promise<void> {
  const page = await reading(browser.page(bucket, { prefix: '', hasFolders: false, after: undefined, count: 1 }))
  if (page.objects.length > 0) throw conflict('in_use', NOT_EMPTY)
}

const bucketViewOf = ({ name, createdAt }: { readonly name: string; readonly createdAt: Date }): BucketView => ({
  name,
  created_at: createdAt.toISOString(),
})

/** Throws 400 for a text that is no cursor of these lists. */
function tokenOf(cursor: string): string {
  const bytes = Buffer.from(cursor, 'base64url')
  const token = bytes.toString()
  if (bytes.toString('base64url') !== cursor || Buffer.from(token).compare(bytes) !== 0 || token.includes('\0'))
    throw badField('cursor', 'is not a cursor of this list')
  return token
}

/** Throws 400 for a key that the store cannot have. */
function requireKey({ keeper }: TenantStores, key: string, isAdded: boolean): void {
  const refusal = refusalOf(key) ?? (keeper.backend === 'svc-s3-single' ? engineKeyRefusal(key, isAdded) : undefined)
  if (refusal !== undefined) throw badField('key', refusal.message)
}

function refusalOf(key: string): S3Refusal | undefined {
  try {
    checkKey(key)
    return undefined
  } catch (error) {
    if (error instanceof S3Refusal) return error
    throw error
  }
}

const bucketTaken = () => nameTaken('There is a bucket with this name.', undefined)

/** Throws refusals of a read as problems. `field` is the one that the store has refused. */
const reading = <Result>(work: Promise<Result>, field?: string): Promise<Result> =>
  refusing(work, (error) => {
    const { status, code, message } = error
    if (code === 'NoSuchBucket') return notFound('bucket')
    if (status === 403 && !KEY_CODES.includes(code)) return storeRefused(error)
    return status === 400 && field !== undefined
      ? badField(field, message)
      : new Unavailable('the object storage', error)
  })

/** The store does not know the key yet, or no longer. */
const KEY_CODES: readonly string[] = ['InvalidAccessKeyId', 'SignatureDoesNotMatch', 'RequestTimeTooSkewed']

/** By rules that the customer can change, such as a policy of the bucket. */
const storeRefused = ({ code, message }: S3Refusal) =>
  conflict('state_not_allowed', `The object storage refused: ${message === '' ? code : message}`)

const NOT_EMPTY =
  'The bucket is not empty. Delete its objects first, and older versions and unfinished uploads if it has any.'

/** As `reading`, of a change. */
const changing = (work: Promise<void>, field?: string): Promise<void> =>
  refusing(work, (error) => {
    const { status, code, message } = error
    if (code === 'NoSuchBucket') return notFound('bucket')
    if (code === 'BucketNotEmpty') return conflict('in_use', NOT_EMPTY)
    if (NAME_CODES.includes(code)) return bucketTaken()
    return status === 400 && field !== undefined ? badField(field, message) : storeRefused(error)
  })

const NAME_CODES: readonly string[] = ['BucketAlreadyExists', 'BucketAlreadyOwnedByYou']

async function refusing<Result>(work: Promise<Result>, problemOf: (error: S3Refusal) => Error): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw error instanceof S3Refusal ? problemOf(error) : error
  }
}
