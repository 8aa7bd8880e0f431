/** Buckets go from the real engine behind its proxy to a real RADOS gateway. */
import { once } from 'node:events'
import { request } from 'node:https'
import * as s3 from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { stepMove } from '../../../controllers/nouns/object-storage/move.ts'
import type { ObjectStorageMove } from '../../../db/tables.ts'
import type { TenantSettings } from '../../../integrations/object-storage/control.ts'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import type { Stores } from '../../../integrations/object-storage/copy-object.ts'
import { openExchange } from '../../../kit/s3/exchange.ts'
import {
  BEGINNING,
  moveObstacle,
  type PassKind,
  type StoreLocation,
  runPass,
} from '../../../integrations/object-storage/pass.ts'
import { openGateway } from '../../../integrations/object-storage/rgw.ts'
import { openS3 } from '../../../integrations/object-storage/s3.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { useGateway } from '../../gateway.ts'
import { newTenantSettings, s3ClientOf, useObjectStorage } from '../../real-object-storage.ts'

const MEBIBYTE = 1024 ** 2
const real = useGateway()
const single = useObjectStorage()
let made = 0
const patience = { clock: systemClock, random: systemRandom }

interface Moving extends Stores {
  readonly id: string
  readonly settings: TenantSettings
  readonly bucket: string
  /** Amazon's, at the proxy and at the gateway. */
  readonly before: s3.S3Client
  readonly after: s3.S3Client
}

async function openMoving(): Promise<Moving> {
  const id = `account-${(made += 1)}.moving`
  const settings = newTenantSettings({ quotaBytes: 200 * MEBIBYTE })
  const { url, authority, control } = single.store
  await control.putTenant(id, settings)
  await openGateway(real.gateway.address).putTenant(id, settings)
  const of = { credentials: settings, clock: systemClock }
  const bucket = `${settings.bucketPrefix}one`
  const before = s3ClientOf(url, settings, { authority })
  await before.send(new s3.CreateBucketCommand({ Bucket: bucket }))
  return {
    id,
    settings,
    bucket,
    before,
    after: s3ClientOf(real.gateway.url, settings),
    source: openS3(openExchange({ url, authority, ...of })),
    target: openS3(openExchange({ url: real.gateway.url, authority: null, ...of })),
  }
}

const put = (client: s3.S3Client, Bucket: string, Key: string, Body: string | Buffer, more: object = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }))
const get = async (client: s3.S3Client, Bucket: string, Key: string) => {
  const { Body, ...head } = await client.send(new s3.GetObjectCommand({ Bucket, Key }))
  return { ...head, text: (await Body?.transformToString()) ?? '' }
}
const keysOf = async (client: s3.S3Client, Bucket: string) =>
  ((await client.send(new s3.ListObjectsV2Command({ Bucket }))).Contents ?? []).map(({ Key }) => Key)

/** The whole pass, in as many goes as it takes. */
async function pass(stores: Stores, kind: PassKind, since?: Date) {
  let place: StoreLocation | undefined = BEGINNING
  let [objects, changed, goes] = [0, 0, 0]
  while (place !== undefined) {
    const progress = await runPass(stores, { kind, from: place, since, isOver: () => true, patience })
    place = progress.next
    objects += progress.objects
    changed += progress.changed
    goes += 1
  }
  return { objects, changed, goes }
}

const ODD_KEYS = ['a/b c ü.txt', 'plus+and&amp;<x>"', "it's (odd)*!", 'deep/er/er/still', '100%25', 'empty']

test('goes over with what was said of it, and is compared', async () => {
  const moving = await openMoving()
  const { before, after, bucket } = moving
  for (const key of ODD_KEYS) await put(before, bucket, key, key === 'empty' ? '' : `of ${key}`)
  await put(before, bucket, 'said', 'x', {
    ContentType: 'text/html',
    CacheControl: 'no-store',
    Metadata: { colour: 'blue' },
    Tagging: 'kind=photo&year=2026',
  })
  await before.send(
    new s3.PutBucketCorsCommand({
      Bucket: bucket,
      CORSConfiguration: { CORSRules: [{ AllowedMethods: ['GET'], AllowedOrigins: ['https://a.example'] }] },
    }),
  )
  expect(await pass(moving, 'check')).toMatchObject({ changed: expect.any(Number) })
  expect(await pass(moving, 'live')).toMatchObject({ objects: 7 })
  for (const key of ODD_KEYS) expect((await get(after, bucket, key)).text, key).toBe(key === 'empty' ? '' : `of ${key}`)
  expect(await get(after, bucket, 'said')).toMatchObject({
    ContentType: 'text/html',
    CacheControl: 'no-store',
    Metadata: { colour: 'blue' },
  })
  const tags = await after.send(new s3.GetObjectTaggingCommand({ Bucket: bucket, Key: 'said' }))
  expect(tags.TagSet).toEqual(expect.arrayContaining([{ Key: 'kind', Value: 'photo' }]))
  const { CORSRules } = await after.send(new s3.GetBucketCorsCommand({ Bucket: bucket }))
  expect(CORSRules?.[0]).toMatchObject({ AllowedOrigins: ['https://a.example'] })
  for (const kind of ['live', 'exact', 'prune', 'check'] as const)
    expect(await pass(moving, kind), kind).toMatchObject({ changed: 0 })
})

test('in parts goes over, and its digest is held against what was sent', async () => {
  const moving = await openMoving()
  const { before, bucket } = moving
  const bytes = [systemRandom.bytes(6 * MEBIBYTE), systemRandom.bytes(MEBIBYTE)]
  const at = { Bucket: bucket, Key: 'large' }
  const { UploadId } = await before.send(new s3.CreateMultipartUploadCommand(at))
  const Parts: s3.CompletedPart[] = []
  for (const [index, Body] of bytes.entries()) {
    const PartNumber = index + 1
    const { ETag } = await before.send(new s3.UploadPartCommand({ ...at, UploadId, PartNumber, Body }))
    Parts.push({ ETag, PartNumber })
  }
  await before.send(new s3.CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload: { Parts } }))
  await pass(moving, 'live')
  const { Body } = await moving.after.send(new s3.GetObjectCommand(at))
  expect(Buffer.compare(Buffer.from((await Body?.transformToByteArray()) ?? []), Buffer.concat(bytes))).toBe(0)
  expect(await pass(moving, 'check')).toMatchObject({ changed: 0 })
  expect(await pass(moving, 'exact', new Date()), 'what may be newer than the pass before').toMatchObject({
    changed: 1,
  })
  expect(await pass(moving, 'exact', new Date(Date.now() + 3_600_000))).toMatchObject({ changed: 0 })
})

test('that changed in between is copied by later passes, and removed ones are removed', async () => {
  const moving = await openMoving()
  const { before, after, bucket } = moving
  for (const key of ['same size', 'said', 'tagged', 'gone']) await put(before, bucket, key, 'one')
  await put(before, bucket, 'large', 'one')
  const other = `${moving.settings.bucketPrefix}two`
  await before.send(new s3.CreateBucketCommand({ Bucket: other }))
  await put(before, other, 'x', 'x')
  await pass(moving, 'live')
  await put(before, bucket, 'same size', 'two')
  await put(before, bucket, 'said', 'one', { Metadata: { colour: 'red' } })
  await before.send(
    new s3.PutObjectTaggingCommand({ Bucket: bucket, Key: 'tagged', Tagging: { TagSet: [{ Key: 'a', Value: 'b' }] } }),
  )
  await before.send(new s3.DeleteObjectCommand({ Bucket: bucket, Key: 'gone' }))
  await before.send(new s3.DeleteObjectCommand({ Bucket: other, Key: 'x' }))
  await before.send(new s3.DeleteBucketCommand({ Bucket: other }))
  await put(before, bucket, 'new', 'new')
  await single.store.control.putTenant(moving.id, { ...moving.settings, isFrozen: true })
  expect(await pass(moving, 'check'), 'two that are said of otherwise, one of its size, one new').toMatchObject({
    changed: 4,
  })
  expect(await pass(moving, 'exact')).toMatchObject({ changed: 4 })
  expect(await pass(moving, 'prune')).toMatchObject({ changed: 3 })
  expect(await pass(moving, 'check')).toMatchObject({ changed: 0 })
  expect((await get(after, bucket, 'same size')).text).toBe('two')
  expect((await get(after, bucket, 'said')).Metadata).toEqual({ colour: 'red' })
  expect(await keysOf(after, bucket)).toEqual(['large', 'new', 'said', 'same size', 'tagged'])
  expect(((await after.send(new s3.ListBucketsCommand({}))).Buckets ?? []).map(({ Name }) => Name)).toEqual([bucket])
})

test('a target that holds something else is found out', async () => {
  const moving = await openMoving()
  const { before, after, bucket } = moving
  for (const key of ['one', 'two']) await put(before, bucket, key, key)
  await pass(moving, 'exact')
  await put(after, bucket, 'one', 'eno')
  await after.send(new s3.DeleteObjectCommand({ Bucket: bucket, Key: 'two' }))
  expect(await pass(moving, 'check')).toMatchObject({ changed: 2 })
})

test('continues where it was, over more than a page', async () => {
  const moving = await openMoving()
  const { before, after, bucket } = moving
  const keys = Array.from({ length: 120 }, (_none, index) => `dir-${index % 7}/${index}`)
  for (const key of keys) await put(before, bucket, key, key)
  const { goes, objects } = await pass(moving, 'live')
  expect([goes > 1, objects]).toEqual([true, 120])
  expect((await keysOf(after, bucket)).length).toBe(120)
})

test('what keeps versions cannot be moved, and says so', async () => {
  const moving = await openMoving()
  expect(await moveObstacle(moving.source)).toBeUndefined()
  const { before, bucket } = moving
  await before.send(
    new s3.PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration: { Status: 'Enabled' } }),
  )
  expect(await moveObstacle(moving.source)).toContain(`${bucket} keeps versions`)
})

test('at the proxy a tenant that has moved is the gateway’s, by the same address and key', async () => {
  const moving = await openMoving()
  const { before, after, bucket, id, settings } = moving
  await put(before, bucket, 'old', 'here')
  await pass(moving, 'live')
  const upstream = { url: real.gateway.url, authority: null, isSourceKept: true }
  await single.store.control.putTenant(id, { ...settings, upstream })
  expect((await get(before, bucket, 'old')).text).toBe('here')
  await put(before, bucket, 'new', 'there')
  expect((await get(after, bucket, 'new')).text).toBe('there')
  await before.send(new s3.CreateBucketCommand({ Bucket: 'freely-named' }))
  expect(((await after.send(new s3.ListBucketsCommand({}))).Buckets ?? []).map(({ Name }) => Name)).toContain(
    'freely-named',
  )
  await single.store.control.putTenant(id, { ...settings, upstream, isSuspended: true })
  await expect(put(before, bucket, 'more', 'x')).rejects.toMatchObject({ name: 'AccountProblem' })
  expect(await single.store.control.getTenant(id, true)).toMatchObject({ upstream, bucketCount: 1, openWrites: 0 })
  await single.store.control.putTenant(id, { ...settings, upstream: { ...upstream, isSourceKept: false } })
  expect(await single.store.control.getTenant(id, true)).toMatchObject({ bucketCount: 0 })
  expect((await get(before, bucket, 'new')).text).toBe('there')
})

const BEGUN: ObjectStorageMove = {
  operationId: 'op',
  phase: 'live',
  pass: 1,
  place: BEGINNING,
  since: null,
  begunAt: new Date().toISOString(),
  changed: 0,
  objects: 0,
  bytes: 0,
  frozenAt: null,
  version: 1,
}
const contextOf = (moving: Moving, now = () => new Date()) => ({
  source: moving.source,
  target: moving.target,
  single: single.store.control,
  tenant: moving.id,
  now,
  isOver: () => true,
  patience,
})

test('a mover that dies after every step loses nothing of concurrent writes', async () => {
  const moving = await openMoving()
  const { before, after, bucket, id, settings } = moving
  for (const key of ['one', 'two', 'three']) await put(before, bucket, key, key)
  let [ahead, move] = [0, BEGUN]
  const context = contextOf(moving, () => new Date(Date.now() + ahead))
  const phases = new Set<string>()
  while (move.phase !== 'verified') {
    phases.add(move.phase)
    if (move.phase === 'live') {
      await put(before, bucket, `new ${move.version}`, 'x')
      await put(before, bucket, 'two', `again ${move.version}`)
    }
    if (move.phase === 'frozen') {
      expect((await stepMove(move, context)).phase, 'the door lets clients write').toBe('frozen')
      await single.store.control.putTenant(id, { ...settings, isFrozen: true })
      expect((await stepMove(move, context)).phase, 'the engine may be busy').toBe('frozen')
      ahead = 10_000
    }
    await stepMove(move, context)
    const text = JSON.stringify(await stepMove(move, context))
    move = JSON.parse(text)
  }
  expect([...phases]).toEqual(['live', 'frozen', 'exact', 'prune', 'check'])
  const keys = await keysOf(before, bucket)
  expect(keys.length).toBeGreaterThan(4)
  expect(await keysOf(after, bucket)).toEqual(keys)
  for (const key of keys)
    expect((await get(after, bucket, key ?? '')).text).toBe((await get(before, bucket, key ?? '')).text)
})

test('a move waits for a write that is under way when it freezes, and brings it over', async () => {
  const moving = await openMoving()
  const { bucket, id, settings } = moving
  const url = new URL(`${single.store.url}/${bucket}/slow`)
  const headers = signRequest(
    { method: 'PUT', url, isStreamed: true },
    { ...settings, region: 'us-east-1' },
    new Date(),
  )
  const slow = request(url, { method: 'PUT', ca: single.store.authority, headers: { ...headers, 'content-length': 4 } })
  const answered = once(slow, 'response')
  slow.write('sl')
  await expect.poll(async () => (await single.store.control.getTenant(id))?.openWrites).toBe(1)
  await single.store.control.putTenant(id, { ...settings, isFrozen: true })
  const frozen: ObjectStorageMove = { ...BEGUN, phase: 'frozen', frozenAt: new Date(0).toISOString() }
  expect(await stepMove(frozen, contextOf(moving))).toBe(frozen)
  slow.end('ow')
  await answered
  await expect.poll(async () => (await stepMove(frozen, contextOf(moving))).phase).toBe('exact')
  await stepMove({ ...BEGUN, phase: 'exact' }, contextOf(moving))
  expect((await get(moving.after, bucket, 'slow')).text).toBe('slow')
})

test('a move whose target is not the same in the end fails, and so does one whose bucket gets versions', async () => {
  const moving = await openMoving()
  const { before, after, bucket } = moving
  await put(before, bucket, 'one', 'one')
  await pass(moving, 'exact')
  await put(after, bucket, 'one', 'eno')
  let move: ObjectStorageMove = { ...BEGUN, phase: 'check' }
  const verify = async () => {
    while (move.phase === 'check') move = await stepMove(move, contextOf(moving))
  }
  await expect(verify()).rejects.toMatchObject({ name: 'Problem', message: expect.stringContaining('1 objects') })
  await before.send(
    new s3.PutBucketVersioningCommand({ Bucket: bucket, VersioningConfiguration: { Status: 'Enabled' } }),
  )
  await single.store.control.putTenant(moving.id, { ...moving.settings, isFrozen: true })
  const frozen: ObjectStorageMove = { ...BEGUN, phase: 'frozen', frozenAt: new Date(0).toISOString() }
  await expect(stepMove(frozen, contextOf(moving))).rejects.toMatchObject({ name: 'Problem' })
})
