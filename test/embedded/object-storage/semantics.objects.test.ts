/** S3 as its clients mean it, through the proxy and its real engine. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { Readable } from 'node:stream'
import * as s3 from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { describe, expect, test } from 'vitest'
import type { TenantSettings } from '../../../integrations/object-storage/control.ts'
import { openExchange } from '../../../kit/s3/exchange.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { newTenantSettings, s3ClientOf, useObjectStorage } from '../../real-object-storage.ts'
import { signedInChunks } from '../../s3-clients/signed-in-chunks.ts'

const real = useObjectStorage()
let made = 0

const clientOf = (settings: TenantSettings, region = 'us-east-1'): s3.S3Client =>
  s3ClientOf(real.store.url, settings, { authority: real.store.authority, region })

async function openTenant() {
  const id = `tenant-${(made += 1)}`
  const settings = newTenantSettings()
  await real.store.control.putTenant(id, settings)
  const client = clientOf(settings)
  const bucket = `${settings.bucketPrefix}one`
  await client.send(new s3.CreateBucketCommand({ Bucket: bucket }))
  const { url, authority } = real.store
  const exchange = openExchange({ url, authority, credentials: settings, clock: systemClock })
  return { settings, client, bucket, exchange, at: { Bucket: bucket } }
}

const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error ? error.name : String(error)),
  )
const textOf = async (client: s3.S3Client, at: { readonly Bucket: string; readonly Key: string }) =>
  (await client.send(new s3.GetObjectCommand(at))).Body?.transformToString()

/** Without a separate signature. */
async function read(url: string): Promise<string> {
  const [answer] = (await once(get(url, { ca: real.store.authority }), 'response')) as [IncomingMessage]
  return (await answer.toArray()).join('')
}

describe('any region', () => {
  test.each(['eu-1a', 'auto', 'us-east-1'])('%s signs what a client does', async (region) => {
    const { settings, bucket } = await openTenant()
    const client = clientOf(settings, region)
    const another = { Bucket: `${bucket}-${region}` }
    const located = region === 'eu-1a' ? { CreateBucketConfiguration: { LocationConstraint: region as 'EU' } } : {}
    await client.send(new s3.CreateBucketCommand({ ...another, ...located }))
    const at = { ...another, Key: 'a b/ü+&' }
    await client.send(new s3.PutObjectCommand({ ...at, Body: 'hello' }))
    await client.send(
      new s3.PutObjectCommand({
        ...at,
        Key: 'streamed',
        Body: Readable.from([Buffer.alloc(70_000)]),
        ContentLength: 70_000,
      }),
    )
    expect(await textOf(client, at)).toBe('hello')
    expect((await client.send(new s3.ListObjectsV2Command(another))).KeyCount).toBe(2)
    await client.send(new s3.DeleteObjectsCommand({ ...another, Delete: { Objects: [{ Key: 'streamed' }] } }))
    const url = await getSignedUrl(client, new s3.GetObjectCommand(at), { expiresIn: 60 })
    expect([url.includes(`%2F${region}%2Fs3`), await read(url)]).toEqual([true, 'hello'])
    const stranger = clientOf({ ...settings, secretAccessKey: 'another' }, region)
    expect(await refusal(stranger.send(new s3.ListBucketsCommand({})))).toBe('SignatureDoesNotMatch')
  })

  test('and no other place is promised for a bucket', async () => {
    const { settings, bucket } = await openTenant()
    const made = new s3.CreateBucketCommand({
      Bucket: `${bucket}-elsewhere`,
      CreateBucketConfiguration: { LocationConstraint: 'eu-west-1' },
    })
    expect(await refusal(clientOf(settings, 'eu-1a').send(made))).toBe('IllegalLocationConstraintException')
  })

  test.each(['us-east-1', 'eu-1a'])('signs bodies chunk by chunk: %s', async (region) => {
    const { settings, bucket, client } = await openTenant()
    const { running, authority } = real.store
    const where = { port: running.port, authority, path: `/${bucket}/chunks`, region }
    const chunks = [Buffer.alloc(70_000, 'x'), Buffer.from('end')]
    expect(await signedInChunks({ ...where, ...settings, chunks })).toBe(200)
    expect((await textOf(client, { Bucket: bucket, Key: 'chunks' }))?.length).toBe(70_003)
    expect(await signedInChunks({ ...where, ...settings, chunks, isForged: true })).toBe(403)
  })
})

describe('keys', () => {
  test('that are apart stay apart, or are refused', async () => {
    const { client, at } = await openTenant()
    const put = (Key: string) => refusal(client.send(new s3.PutObjectCommand({ ...at, Key, Body: Key })))
    for (const key of ['a/b', 'x', '...', 'a/..b', '%2e%2e/x', 't\tab', 'l\nf', 'a\\b', 'com;ma', '~'])
      expect(await put(key)).toBe('accepted')
    for (const key of ['a//b', '/x', '//', '.sgwtmp/x', 'd/.sgwtmp/x', 'd/.x.sgwtmp.1', 'ctl\u0003x', 'a/../x', './x'])
      expect([key, await put(key)]).toEqual([key, 'InvalidRequest'])
    expect(await put('x'.repeat(256))).toBe('KeyTooLongError')
    for (const key of ['a/b', 'x', 't\tab']) expect(await textOf(client, { ...at, Key: key })).toBe(key)
  })

  test('are listed escaped where that is asked for, in every list', async () => {
    const { client, at } = await openTenant()
    const keys = ['a b/ü&+', 'a b/t\tab\nx', 'a b/<">']
    for (const Key of keys) await client.send(new s3.PutObjectCommand({ ...at, Key, Body: '' }))
    await client.send(new s3.CreateMultipartUploadCommand({ ...at, Key: 'a b/ü' }))
    const url = { ...at, EncodingType: 'url', Prefix: 'a b/' } as const
    const lists = [
      (await client.send(new s3.ListObjectsCommand(url))).Contents,
      (await client.send(new s3.ListObjectsV2Command(url))).Contents,
      (await client.send(new s3.ListObjectVersionsCommand(url))).Versions,
    ]
    for (const list of lists) {
      expect(list?.map(({ Key }) => Key)).toEqual(['a%20b/%3C%22%3E', 'a%20b/t%09ab%0Ax', 'a%20b/%C3%BC%26%2B'])
      expect(list?.map(({ Key }) => decodeURIComponent(Key ?? '')).toSorted()).toEqual(keys.toSorted())
    }
    const uploads = await client.send(new s3.ListMultipartUploadsCommand(url))
    expect([uploads.EncodingType, uploads.Prefix, uploads.Uploads?.[0]?.Key]).toEqual(['url', 'a%20b/', 'a%20b/%C3%BC'])
    const folders = await client.send(new s3.ListObjectsV2Command({ ...at, EncodingType: 'url', Delimiter: '/' }))
    expect(folders.CommonPrefixes).toEqual([{ Prefix: 'a%20b/' }])
    const plain = await client.send(new s3.ListObjectsV2Command(at))
    expect([plain.EncodingType ?? '', plain.Contents?.map(({ Key }) => Key)]).toEqual(['', [keys[2], keys[1], keys[0]]])
  })

  test('that are many in one request are a thousand', async () => {
    const { client, at } = await openTenant()
    const remove = (count: number) => {
      const Objects = Array.from({ length: count }, (_none, index) => ({ Key: `k${index}` }))
      return refusal(client.send(new s3.DeleteObjectsCommand({ ...at, Delete: { Objects } })))
    }
    expect([await remove(1_000), await remove(1_001), await remove(0)]).toEqual([
      'accepted',
      'MalformedXML',
      'MalformedXML',
    ])
  })
})

test('how an object was sent is not how it is encoded', async () => {
  const { client, at } = await openTenant()
  const send = async (Key: string, more: object) => {
    const Body = Readable.from([Buffer.from('some bytes')])
    await client.send(new s3.PutObjectCommand({ ...at, Key, Body, ContentLength: 10, ...more }))
    const { ContentEncoding } = await client.send(new s3.HeadObjectCommand({ ...at, Key }))
    return [ContentEncoding, (await client.send(new s3.GetObjectCommand({ ...at, Key }))).ContentEncoding]
  }
  expect(await send('plain', {})).toEqual([undefined, undefined])
  expect(await send('zipped', { ContentEncoding: 'gzip' })).toEqual(['gzip', 'gzip'])
})

test('what is not kept is refused, and what is not offered says so', async () => {
  const { client, at, bucket, exchange } = await openTenant()
  const put = (more: object) => refusal(client.send(new s3.PutObjectCommand({ ...at, Key: 'a', Body: 'x', ...more })))
  expect(await put({ StorageClass: 'GLACIER' })).toBe('InvalidStorageClass')
  expect(await put({ StorageClass: 'STANDARD' })).toBe('accepted')
  expect(await put({ ServerSideEncryption: 'AES256' })).toBe('NotImplemented')
  for (const part of ['session', 'inventory', 'torrent', 'unheard'])
    expect((await exchange.askWhole({ method: 'GET', path: bucket, query: { [part]: '' } })).status).toBe(501)
  const body = Buffer.from('--x--')
  const form = await exchange.askWhole({
    method: 'POST',
    path: bucket,
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body,
  })
  expect([form.status, form.text]).toEqual([501, expect.stringContaining('NotImplemented')])
  const range = { 'x-amz-copy-source': `${bucket}/a`, 'x-amz-copy-source-range': 'bytes=0-0' }
  expect((await exchange.askWhole({ method: 'PUT', path: `${bucket}/b`, headers: range })).status).toBe(501)
})

test('what is said of an object holds as its bytes are, also several spaces', async () => {
  const { bucket, exchange } = await openTenant()
  const path = `${bucket}/a`
  const kept = { 'x-amz-meta-colour': 'blue  green', 'x-amz-meta-name': 'Zo\u00eb' }
  expect((await exchange.askWhole({ method: 'PUT', path, headers: kept, body: Buffer.from('x') })).status).toBe(200)
  const { status, headers } = await exchange.askWhole({ method: 'HEAD', path })
  expect([status, headers['x-amz-meta-colour']]).toEqual([200, kept['x-amz-meta-colour']])
})

test('a bucket name without the prefix is answered with the prefix', async () => {
  const { client, settings } = await openTenant()
  const error = await client
    .send(new s3.CreateBucketCommand({ Bucket: 'my-bucket' }))
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'AccessDenied', message: expect.stringContaining(settings.bucketPrefix) })
})

test('no more buckets are made at a time than one after the other', async () => {
  const { client, bucket } = await openTenant()
  const make = (index: number) => refusal(client.send(new s3.CreateBucketCommand({ Bucket: `${bucket}-${index}` })))
  const answers = await Promise.all(Array.from({ length: 120 }, (_none, index) => make(index)))
  expect(answers.filter((answer) => answer === 'accepted')).toHaveLength(99)
  expect((await client.send(new s3.ListBucketsCommand({}))).Buckets).toHaveLength(100)
})

test('a bucket in which the engine has started something can be deleted', async () => {
  const { client, at } = await openTenant()
  const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ ...at, Key: 'd/large' }))
  await client.send(new s3.AbortMultipartUploadCommand({ ...at, Key: 'd/large', UploadId }))
  await client.send(new s3.PutObjectCommand({ ...at, Key: 'd/e/f', Body: 'x' }))
  await client.send(new s3.DeleteObjectCommand({ ...at, Key: 'd/e/f' }))
  expect(await refusal(client.send(new s3.DeleteBucketCommand(at)))).toBe('accepted')
})
