/** Tenants of a real RADOS gateway, told by Admin Ops and used with Amazon's client. */
import { Agent } from 'node:http'
import * as s3 from '@aws-sdk/client-s3'
import { beforeAll, describe, expect, test } from 'vitest'
import { ARCHIVE_HOST } from '../../../integrations/object-storage/archive.ts'
import {
  type ObjectStorageControl,
  fingerprintOfSecret,
  type TenantSettings,
} from '../../../integrations/object-storage/control.ts'
import { newSecret } from '../../../integrations/object-storage/keys.ts'
import { gatewayUserOf, openGateway } from '../../../integrations/object-storage/rgw.ts'
import { absentHeaders, presign } from '../../../kit/s3/presign.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useGateway } from '../../gateway.ts'
import { newTenantSettings, s3ClientOf } from '../../real-object-storage.ts'

const MEBIBYTE = 1024 ** 2
const real = useGateway()
let control: ObjectStorageControl
let made = 0

beforeAll(() => {
  control = openGateway(real.gateway.address)
})

interface Tenant {
  readonly id: string
  readonly settings: TenantSettings
  readonly client: s3.S3Client
  change(settings: Partial<TenantSettings>): Promise<void>
}

const clientOf = (keys: Pick<TenantSettings, 'accessKeyId' | 'secretAccessKey'>) => s3ClientOf(real.gateway.url, keys)

async function openTenant(more: Partial<TenantSettings> = {}): Promise<Tenant> {
  const id = `account-${(made += 1)}.mine`
  const settings = newTenantSettings({ quotaBytes: 200 * MEBIBYTE, ...more })
  await control.putTenant(id, settings)
  return {
    id,
    settings,
    client: clientOf(settings),
    change: (other) => control.putTenant(id, { ...settings, ...other }),
  }
}

const BUCKET = 'photos'
const openBucket = async (tenant: Tenant): Promise<Tenant> => {
  await tenant.client.send(new s3.CreateBucketCommand({ Bucket: BUCKET }))
  return tenant
}
const put = ({ client }: Pick<Tenant, 'client'>, key: string, body: string | Buffer, bucket = BUCKET) =>
  client.send(new s3.PutObjectCommand({ Bucket: bucket, Key: key, Body: body }))
const get = async ({ client }: Pick<Tenant, 'client'>, key: string, bucket = BUCKET): Promise<string> => {
  const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: bucket, Key: key }))
  return (await Body?.transformToString()) ?? ''
}
const remove = ({ client }: Pick<Tenant, 'client'>, key: string) =>
  client.send(new s3.DeleteObjectCommand({ Bucket: BUCKET, Key: key }))
const bucketsOf = async ({ client }: Pick<Tenant, 'client'>) =>
  ((await client.send(new s3.ListBucketsCommand({}))).Buckets ?? []).map(({ Name }) => Name)
const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error ? error.name : String(error)),
  )

test('clients with the name of archives, such as machines of databases, find the created bucket', async () => {
  const prefix = 'archived1-'
  const { settings } = await openTenant({ bucketPrefix: prefix, buckets: [`${prefix}archive`] })
  const here = { address: '127.0.0.1', family: 4 }
  const client = new s3.S3Client({
    endpoint: `http://${ARCHIVE_HOST}:${new URL(real.gateway.url).port}`,
    region: 'us-east-1',
    forcePathStyle: true,
    maxAttempts: 1,
    credentials: settings,
    requestHandler: {
      httpAgent: new Agent({
        lookup: (_name, { all }, done) => (all ? done(null, [here]) : done(null, '127.0.0.1', 4)),
      }),
    },
  })
  await put({ client }, 'db/000000010000000000000001', 'a segment', `${prefix}archive`)
  expect(await get({ client }, 'db/000000010000000000000001', `${prefix}archive`)).toBe('a segment')
})

describe('two tenants', () => {
  test('have buckets of the same name, and never reach or hinder each other', async () => {
    const [ada, bob] = [await openBucket(await openTenant()), await openBucket(await openTenant())]
    await put(ada, 'secret', 'of ada')
    await put(bob, 'secret', 'of bob')
    expect([await get(ada, 'secret'), await get(bob, 'secret')]).toEqual(['of ada', 'of bob'])
    expect([await bucketsOf(ada), await bucketsOf(bob)]).toEqual([[BUCKET], [BUCKET]])
    const [tenant = ''] = gatewayUserOf(ada.id).split('$')
    const copy = { Bucket: BUCKET, Key: 'stolen', CopySource: `${tenant}:${BUCKET}/secret` }
    expect([
      await refusal(get(bob, 'secret', `${tenant}:${BUCKET}`)),
      await refusal(put(bob, 'secret', 'of bob', `${tenant}:${BUCKET}`)),
      await refusal(bob.client.send(new s3.CopyObjectCommand(copy))),
    ]).not.toContain('accepted')
    expect(await get(ada, 'secret')).toBe('of ada')
  })

  test('never have the same key', async () => {
    const ada = await openTenant()
    const { accessKeyId } = ada.settings
    await expect(openTenant({ accessKeyId })).rejects.toThrow()
    expect(await control.getTenant(`account-${made}.mine`)).toBeUndefined()
    expect(await refusal(ada.client.send(new s3.ListBucketsCommand({})))).toBe('accepted')
  })
})

describe('a tenant', () => {
  test('is as configured, again and again', async () => {
    const { id, settings, change } = await openTenant()
    await change({})
    const { accessKeyId, secretAccessKey, quotaBytes } = settings
    expect(await control.getTenant(id)).toEqual({
      accessKeyId,
      quotaBytes,
      secretFingerprint: fingerprintOfSecret(secretAccessKey),
      isSuspended: false,
      isFrozen: false,
      bucketCount: 0,
      usedBytes: 0,
      objectCount: 0,
      measuredAt: expect.any(String),
    })
    expect(await control.getTenant('account-0.nobody')).toBeUndefined()
  })

  test('that has another secret is refused with the old one at once', async () => {
    const ada = await openBucket(await openTenant())
    await put(ada, 'kept', 'x')
    const secretAccessKey = newSecret(systemRandom)
    await ada.change({ secretAccessKey })
    expect(await refusal(get(ada, 'kept'))).toBe('SignatureDoesNotMatch')
    expect(await get({ client: clientOf({ ...ada.settings, secretAccessKey }) }, 'kept')).toBe('x')
    expect(await control.getTenant(ada.id)).toMatchObject({ secretFingerprint: fingerprintOfSecret(secretAccessKey) })
  })

  test('that somebody gave a second key loses it', async () => {
    const ada = await openTenant()
    const other = { accessKeyId: 'SECOND0KEY0OF0ADA000', secretAccessKey: newSecret(systemRandom) }
    const { accessKeyId: id, secretAccessKey: secret } = other
    const uid = gatewayUserOf(ada.id)
    await real.gateway.administer('key', 'create', '--uid', uid, '--access-key', id, '--secret-key', secret)
    expect(await bucketsOf({ client: clientOf(other) })).toEqual([])
    expect((await control.getTenant(ada.id))?.secretFingerprint, 'is noticed').not.toBe(
      fingerprintOfSecret(ada.settings.secretAccessKey),
    )
    await ada.change({})
    expect(await refusal(bucketsOf({ client: clientOf(other) }))).toBe('InvalidAccessKeyId')
    expect(await bucketsOf(ada)).toEqual([])
  })

  test('over its quota is refused, reads and deletes, and has room again', async () => {
    const ada = await openBucket(await openTenant({ quotaBytes: 2 * MEBIBYTE }))
    await put(ada, 'one', Buffer.alloc(MEBIBYTE))
    expect(await refusal(put(ada, 'two', Buffer.alloc(1.5 * MEBIBYTE)))).toBe('QuotaExceeded')
    expect((await get(ada, 'one')).length).toBe(MEBIBYTE)
    expect(await control.getTenant(ada.id, true)).toMatchObject({ usedBytes: MEBIBYTE, objectCount: 1, bucketCount: 1 })
    await remove(ada, 'one')
    await expect.poll(() => refusal(put(ada, 'two', Buffer.alloc(1.5 * MEBIBYTE))), { interval: 500 }).toBe('accepted')
    await ada.change({ quotaBytes: 4 * MEBIBYTE })
    expect(await control.getTenant(ada.id)).toMatchObject({ quotaBytes: 4 * MEBIBYTE })
    expect(await refusal(put(ada, 'three', Buffer.alloc(2 * MEBIBYTE)))).toBe('accepted')
  })

  test('that is suspended reads and deletes; one that is frozen only reads', async () => {
    const ada = await openBucket(await openTenant())
    for (const key of ['kept', 'gone']) await put(ada, key, 'x')
    await ada.change({ isSuspended: true })
    expect(await control.getTenant(ada.id)).toMatchObject({ isSuspended: true, isFrozen: false })
    const upload = new s3.CreateMultipartUploadCommand({ Bucket: BUCKET, Key: 'large' })
    const copy = new s3.CopyObjectCommand({ Bucket: BUCKET, Key: 'new', CopySource: `${BUCKET}/kept` })
    expect([
      await refusal(put(ada, 'new', 'x')),
      await refusal(ada.client.send(upload)),
      await refusal(ada.client.send(copy)),
      await refusal(ada.client.send(new s3.CreateBucketCommand({ Bucket: 'more' }))),
    ]).toEqual(['AccessDenied', 'AccessDenied', 'AccessDenied', 'AccessDenied'])
    expect(await get(ada, 'kept')).toBe('x')
    await remove(ada, 'gone')
    await ada.change({ isFrozen: true })
    expect(await control.getTenant(ada.id)).toMatchObject({ isSuspended: false, isFrozen: true })
    expect([await refusal(put(ada, 'new', 'x')), await refusal(remove(ada, 'kept'))]).toEqual([
      'AccessDenied',
      'AccessDenied',
    ])
    expect(await get(ada, 'kept')).toBe('x')
    await ada.change({})
    expect(await refusal(put(ada, 'new', 'x'))).toBe('accepted')
  })

  test('that was suspended past the platform is served again after an order', async () => {
    const ada = await openBucket(await openTenant())
    await real.gateway.administer('user', 'suspend', '--uid', gatewayUserOf(ada.id))
    expect(await refusal(put(ada, 'new', 'x'))).not.toBe('accepted')
    await ada.change({})
    expect(await refusal(put(ada, 'new', 'x'))).toBe('accepted')
  })

  test('goes when it has no buckets, and its key with it', async () => {
    const ada = await openBucket(await openTenant())
    expect(await control.removeTenant(ada.id)).toBe(false)
    expect(await bucketsOf(ada)).toEqual([BUCKET])
    await ada.client.send(new s3.DeleteBucketCommand({ Bucket: BUCKET }))
    expect(await control.removeTenant(ada.id)).toBe(true)
    expect(await refusal(bucketsOf(ada))).toBe('InvalidAccessKeyId')
    expect([await control.getTenant(ada.id), await control.removeTenant(ada.id)]).toEqual([undefined, true])
  })

  test('is given buckets, and goes with all that is in them when that is wanted', async () => {
    const [ada, bob] = [await openTenant(), await openBucket(await openTenant())]
    await put(bob, 'kept', 'of bob')
    await ada.change({ buckets: [BUCKET] })
    await ada.client.send(
      new s3.PutBucketVersioningCommand({ Bucket: BUCKET, VersioningConfiguration: { Status: 'Enabled' } }),
    )
    for (const body of ['one', 'two']) await put(ada, 'versioned', body)
    await ada.client.send(new s3.CreateMultipartUploadCommand({ Bucket: BUCKET, Key: 'unfinished' }))
    await ada.change({ buckets: [BUCKET] })
    expect(await get(ada, 'versioned')).toBe('two')
    expect(await control.removeTenant(ada.id, true)).toBe(true)
    expect(await refusal(bucketsOf(ada))).toBe('InvalidAccessKeyId')
    expect(await get(bob, 'kept')).toBe('of bob')
  })
})

test('a signed address stores a body, and a header that does more breaks it', async () => {
  const tenant = await openBucket(await openTenant())
  await put(tenant, 'secret', 'of the owner')
  const address = (key: string) =>
    presign(
      {
        method: 'PUT',
        endpoint: real.gateway.url,
        bucket: BUCKET,
        key,
        absent: absentHeaders('PUT', 'rgw'),
        expiresSeconds: 60,
      },
      { ...tenant.settings, region: 'us-east-1' },
      new Date(),
    )
  const send = async (key: string, headers: Readonly<Record<string, string>> = {}) =>
    (await fetch(address(key), { method: 'PUT', body: 'hello', headers })).status
  expect([await send('plain'), await send('typed', { 'content-type': 'text/plain' })]).toEqual([200, 200])
  expect(await get(tenant, 'plain')).toBe('hello')
  for (const [name, value] of [
    ['x-amz-copy-source', `${BUCKET}/secret`],
    ['x-amz-acl', 'public-read'],
    ['x-amz-grant-read', 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'],
  ] as const)
    expect(await send('more', { [name]: value }), name).toBe(403)
  expect(await refusal(get(tenant, 'more'))).toBe('NoSuchKey')
})

test('a client without the right to manage users is answered nothing', async () => {
  const ada = await openTenant()
  const { accessKeyId, secretAccessKey } = ada.settings
  const stranger = openGateway({ ...real.gateway.address, credentials: { accessKeyId, secretAccessKey } })
  await expect(stranger.getTenant(ada.id)).rejects.toThrow()
  await expect(
    stranger.putTenant('account-0.nobody', { ...ada.settings, accessKeyId: 'A'.repeat(20) }),
  ).rejects.toThrow()
})
