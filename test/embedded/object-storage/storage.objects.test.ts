/** The proxy with the real engine behind it, used with other people's clients: Amazon's for JavaScript and rclone. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import * as s3 from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { beforeAll, describe, expect, test } from 'vitest'
import { Unavailable } from '../../../domain/problem.ts'
import { openControl, type TenantSettings } from '../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { environment, signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { newTenantSettings, s3ClientOf, useObjectStorage } from '../../real-object-storage.ts'

const run = promisify(execFile)
const MEBIBYTE = 1024 ** 2
const real = useObjectStorage()
let made = 0

beforeAll(() => writeFile(authorityFile(), real.store.authority))
const authorityFile = () => join(real.store.folder, 'authority.pem')

interface Tenant {
  readonly id: string
  readonly settings: TenantSettings
  readonly client: s3.S3Client
  /** A separate bucket. */
  readonly bucket: string
  change(settings: Partial<TenantSettings>): Promise<void>
}

const clientOf = (settings: TenantSettings): s3.S3Client =>
  s3ClientOf(real.store.url, settings, { authority: real.store.authority })

async function openTenant(more: Partial<TenantSettings> = {}): Promise<Tenant> {
  const id = `tenant-${(made += 1)}`
  const settings = newTenantSettings({ quotaBytes: 200 * MEBIBYTE, ...more })
  await real.store.control.putTenant(id, settings)
  const client = clientOf(settings)
  const bucket = `${settings.bucketPrefix}one`
  await client.send(new s3.CreateBucketCommand({ Bucket: bucket }))
  return {
    id,
    settings,
    client,
    bucket,
    change: (other) => real.store.control.putTenant(id, { ...settings, ...other }),
  }
}

const put = ({ client, bucket }: Tenant, key: string, body: string | Buffer) =>
  client.send(new s3.PutObjectCommand({ Bucket: bucket, Key: key, Body: body }))
const get = async ({ client, bucket }: Tenant, key: string, range?: string): Promise<Buffer> => {
  const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: bucket, Key: key, Range: range }))
  return Buffer.from((await Body?.transformToByteArray()) ?? [])
}
const keysOf = async ({ client, bucket }: Tenant) =>
  ((await client.send(new s3.ListObjectsV2Command({ Bucket: bucket }))).Contents ?? []).map(({ Key }) => Key)
const bucketsOnDisk = async (): Promise<readonly string[]> => {
  const numbers = await readdir(join(real.store.folder, 'tenants'))
  return (
    await Promise.all(numbers.map((number) => readdir(join(real.store.folder, 'tenants', number, 'data'))))
  ).flat()
}
const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (error: unknown) => (error instanceof Error ? error.name : String(error)),
  )

describe('a client of Amazon’s', () => {
  test('puts, reads, lists, copies and deletes', async () => {
    const ada = await openTenant()
    await put(ada, 'a/b c ü.txt', 'hello')
    expect([String(await get(ada, 'a/b c ü.txt')), String(await get(ada, 'a/b c ü.txt', 'bytes=1-2'))]).toEqual([
      'hello',
      'el',
    ])
    const source = { Bucket: ada.bucket, Key: 'copy', CopySource: `${ada.bucket}/${encodeURIComponent('a/b c ü.txt')}` }
    await ada.client.send(new s3.CopyObjectCommand(source))
    expect(await keysOf(ada)).toEqual(['a/b c ü.txt', 'copy'])
    expect(String(await get(ada, 'copy'))).toBe('hello')
    await ada.client.send(new s3.DeleteObjectsCommand({ Bucket: ada.bucket, Delete: { Objects: [{ Key: 'copy' }] } }))
    await ada.client.send(new s3.DeleteObjectCommand({ Bucket: ada.bucket, Key: 'a/b c ü.txt' }))
    expect(await keysOf(ada)).toEqual([])
    expect((await ada.client.send(new s3.ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toEqual([
      ada.bucket,
    ])
  })

  test('gets the reason why an object cannot be below another, for any size', async () => {
    const ada = await openTenant()
    await put(ada, 'a', 'an object')
    for (const bytes of [1, 100_000, 8 * MEBIBYTE]) {
      const answer = await refusal(put(ada, 'a/b', systemRandom.bytes(bytes)))
      expect([bytes, answer]).toEqual([bytes, 'ObjectParentIsFile'])
    }
    expect(String(await get(ada, 'a'))).toBe('an object')
  })

  test.each([
    ['the engine', 'a/b', 'ObjectParentIsFile', 100],
    ['the quota', 'large', 'QuotaExceeded', 4],
  ])('that reads nothing before it has sent its whole body reads the refusal of %s', async (_of, key, code, quota) => {
    const ada = await openTenant({ quotaBytes: quota * MEBIBYTE })
    await put(ada, 'a', 'an object')
    const bytes = 8 * MEBIBYTE
    const url = new URL(await getSignedUrl(ada.client, new s3.PutObjectCommand({ Bucket: ada.bucket, Key: key })))
    const socket = connectTls({
      host: '127.0.0.1',
      servername: 'localhost',
      port: real.store.running.port,
      ca: real.store.authority,
    })
    const send = (data: string | Buffer) =>
      new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.write(data, (error) => (error ? reject(error) : resolve()))
      })
    await send(`PUT ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nContent-Length: ${bytes}\r\n\r\n`)
    for (let sent = 0; sent < bytes; sent += MEBIBYTE) await send(systemRandom.bytes(MEBIBYTE))
    expect((await textOf(socket)).match(/<Code>(\w+)<\/Code>/)?.[1]).toBe(code)
  })

  test('uploads in parts, and reads what it wrote', async () => {
    const ada = await openTenant()
    const parts = [systemRandom.bytes(6 * MEBIBYTE), systemRandom.bytes(MEBIBYTE)]
    const at = { Bucket: ada.bucket, Key: 'large' }
    const { UploadId } = await ada.client.send(new s3.CreateMultipartUploadCommand(at))
    const Parts: s3.CompletedPart[] = []
    for (const [index, Body] of parts.entries()) {
      const PartNumber = index + 1
      const { ETag } = await ada.client.send(new s3.UploadPartCommand({ ...at, UploadId, PartNumber, Body }))
      Parts.push({ ETag, PartNumber })
    }
    await ada.client.send(new s3.CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload: { Parts } }))
    const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
    expect(digest(await get(ada, 'large'))).toBe(digest(Buffer.concat(parts)))
  })

  test('signs URLs that others read with, and no further', async () => {
    const ada = await openTenant()
    await put(ada, 'shared', 'for you')
    const sign = new s3.GetObjectCommand({ Bucket: ada.bucket, Key: 'shared' })
    const url = await getSignedUrl(ada.client, sign, { expiresIn: 60 })
    const curl = (address: string) => run('curl', ['--silent', '--show-error', '--cacert', authorityFile(), address])
    expect((await curl(url)).stdout).toBe('for you')
    expect((await curl(url.replace('/shared?', '/other?'))).stdout).toContain('SignatureDoesNotMatch')
    expect((await curl(url.split('?')[0] ?? '')).stdout).toContain('AccessDenied')
  })
})

describe('two tenants', () => {
  test('never reach, list or find out about each other’s buckets', async () => {
    const [ada, bob] = [await openTenant(), await openTenant()]
    await put(ada, 'secret', 'of ada')
    const asBob = { ...ada, client: bob.client }
    const nowhere = { ...bob, bucket: `${ada.settings.bucketPrefix}nothing` }
    const copy = { Bucket: bob.bucket, Key: 'stolen', CopySource: `${ada.bucket}/secret` }
    const results = await Promise.all([
      refusal(get(asBob, 'secret')),
      refusal(keysOf(asBob)),
      refusal(put(asBob, 'secret', 'of bob')),
      refusal(keysOf(nowhere)),
      refusal(bob.client.send(new s3.CreateBucketCommand({ Bucket: nowhere.bucket }))),
      refusal(bob.client.send(new s3.CopyObjectCommand(copy))),
      refusal(bob.client.send(new s3.DeleteObjectCommand({ Bucket: ada.bucket, Key: 'secret' }))),
    ])
    expect(new Set(results)).toEqual(new Set(['AccessDenied']))
    expect((await bob.client.send(new s3.ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toEqual([
      bob.bucket,
    ])
    expect(String(await get(ada, 'secret'))).toBe('of ada')
  })

  test('cannot have the same key or prefix', async () => {
    const ada = await openTenant()
    const taken = newTenantSettings({ quotaBytes: 1 })
    for (const field of ['accessKeyId', 'bucketPrefix'] as const)
      await expect(
        real.store.control.putTenant('another', { ...taken, [field]: ada.settings[field] }),
      ).rejects.toThrow()
    expect(await real.store.control.getTenant('another')).toBeUndefined()
  })
})

describe('a tenant', () => {
  test('whose secret is replaced is refused with the old one at once', async () => {
    const ada = await openTenant()
    await put(ada, 'kept', 'still here')
    const { secretAccessKey } = newTenantKeys(systemRandom)
    await ada.change({ secretAccessKey })
    expect(await refusal(keysOf(ada))).toBe('SignatureDoesNotMatch')
    const anew = { ...ada, client: clientOf({ ...ada.settings, secretAccessKey }) }
    expect(String(await get(anew, 'kept'))).toBe('still here')
  })

  test('that is full adds nothing, reads on, and has room again after it deleted something', async () => {
    const ada = await openTenant({ quotaBytes: 2 * MEBIBYTE })
    await put(ada, 'one', Buffer.alloc(MEBIBYTE))
    expect(await refusal(put(ada, 'two', Buffer.alloc(1.5 * MEBIBYTE)))).toBe('QuotaExceeded')
    const copy = { Bucket: ada.bucket, CopySource: `${ada.bucket}/one` }
    expect(await refusal(ada.client.send(new s3.CopyObjectCommand({ ...copy, Key: 'second' })))).toBe('accepted')
    expect(await refusal(ada.client.send(new s3.CopyObjectCommand({ ...copy, Key: 'third' })))).toBe('QuotaExceeded')
    const at = { Bucket: ada.bucket, Key: 'parts' }
    const { UploadId } = await ada.client.send(new s3.CreateMultipartUploadCommand(at))
    const part = { ...at, UploadId, PartNumber: 1, Body: Buffer.alloc(MEBIBYTE) }
    expect(await refusal(ada.client.send(new s3.UploadPartCommand(part)))).toBe('QuotaExceeded')
    expect((await get(ada, 'one')).length).toBe(MEBIBYTE)
    await ada.client.send(new s3.DeleteObjectCommand({ Bucket: ada.bucket, Key: 'one' }))
    await expect.poll(() => refusal(put(ada, 'two', Buffer.alloc(MEBIBYTE / 2))), { interval: 500 }).toBe('accepted')
    expect(await real.store.control.getTenant(ada.id, true)).toMatchObject({
      usedBytes: 1.5 * MEBIBYTE,
      objectCount: 2,
    })
  })

  test('that is suspended reads and deletes; one that is frozen only reads', async () => {
    const ada = await openTenant()
    await put(ada, 'kept', 'x')
    await put(ada, 'gone', 'x')
    await ada.change({ isSuspended: true })
    expect(await refusal(put(ada, 'new', 'x'))).toBe('AccountProblem')
    await ada.client.send(new s3.DeleteObjectCommand({ Bucket: ada.bucket, Key: 'gone' }))
    await ada.change({ isFrozen: true })
    expect(await refusal(put(ada, 'new', 'x'))).toBe('SlowDown')
    expect(await refusal(ada.client.send(new s3.DeleteObjectCommand({ Bucket: ada.bucket, Key: 'kept' })))).toBe(
      'SlowDown',
    )
    expect(String(await get(ada, 'kept'))).toBe('x')
    await ada.change({})
    expect(await refusal(put(ada, 'new', 'x'))).toBe('accepted')
  })

  test('goes when it has no buckets, and its key with it', async () => {
    const ada = await openTenant()
    expect(await real.store.control.removeTenant(ada.id)).toBe(false)
    await ada.client.send(new s3.DeleteBucketCommand({ Bucket: ada.bucket }))
    expect(await real.store.control.removeTenant(ada.id)).toBe(true)
    expect(await refusal(ada.client.send(new s3.ListBucketsCommand({})))).toBe('InvalidAccessKeyId')
    expect(await bucketsOnDisk()).not.toContain(ada.bucket)
  })

  test('is given buckets, again and again, and goes with them when that is wanted', async () => {
    const ada = await openTenant()
    const name = `${ada.settings.bucketPrefix}archive`
    await ada.change({ buckets: [name] })
    await put({ ...ada, bucket: name }, 'kept', 'x')
    await ada.change({ buckets: [name] })
    expect(String(await get({ ...ada, bucket: name }, 'kept'))).toBe('x')
    await expect(ada.change({ buckets: ['of-another'] })).rejects.toThrow()
    const bob = await openTenant()
    await put(bob, 'kept', 'of bob')
    expect(await real.store.control.removeTenant(ada.id, true)).toBe(true)
    expect((await bucketsOnDisk()).filter((entry) => entry.startsWith(ada.settings.bucketPrefix))).toEqual([])
    expect(await refusal(ada.client.send(new s3.ListBucketsCommand({})))).toBe('InvalidAccessKeyId')
    expect(String(await get(bob, 'kept'))).toBe('of bob')
  })

  test('finds everything again after the engine was killed', async () => {
    const ada = await openTenant()
    await put(ada, 'before', 'the crash')
    const pid = real.store.running.enginePid(ada.id) ?? 0
    signalProcess(pid, 'SIGKILL')
    await expect.poll(() => real.store.running.enginePid(ada.id)).not.toBe(pid)
    await expect.poll(() => get(ada, 'before').then(String, () => 'away'), { interval: 250 }).toBe('the crash')
    expect(await refusal(put(ada, 'after', 'it'))).toBe('accepted')
  })
})

describe('the control', () => {
  test('does not say that a tenant is served whose requests fail', async () => {
    const ada = await openTenant()
    await put(ada, 'kept', 'x')
    expect(await real.store.control.getTenant(ada.id)).toMatchObject({ accessKeyId: ada.settings.accessKeyId })
    const numbers = await readdir(join(real.store.folder, 'tenants'))
    const held = await Promise.all(numbers.map((number) => readdir(join(real.store.folder, 'tenants', number, 'data'))))
    const place = join(
      real.store.folder,
      'tenants',
      numbers[held.findIndex((names) => names.includes(ada.bucket))] ?? '',
    )
    await rename(join(place, 'data'), join(place, 'away'))
    signalProcess(real.store.running.enginePid(ada.id) ?? 0, 'SIGKILL')
    await expect.poll(() => refusal(keysOf(ada))).toBe('ServiceUnavailable')
    // Its end may be known a moment later than its connections.
    const said = () =>
      real.store.control.getTenant(ada.id).then(
        () => 'served',
        (error: unknown) => error instanceof Unavailable,
      )
    await expect.poll(said).toBe(true)
    await expect(ada.change({ quotaBytes: 1 })).rejects.toThrow(Unavailable)
    await rename(join(place, 'away'), join(place, 'data'))
    await expect.poll(() => refusal(keysOf(ada)), { timeout: 60_000 }).toBe('accepted')
    expect(await real.store.control.getTenant(ada.id)).toMatchObject({ quotaBytes: 1 })
  })

  test('answers nobody without its token', async () => {
    const never = () => ({ signal: new AbortController().signal, cancel: () => {} })
    const stranger = openControl({ url: `http://127.0.0.1:${real.store.running.port}`, token: 'other' }, never)
    await expect(stranger.getTenant('tenant-1')).rejects.toThrow()
  })
})

test('rclone copies a folder there and finds no difference', async () => {
  const ada = await openTenant()
  const [from, configuration] = [join(real.store.folder, 'files'), join(real.store.folder, 'rclone.conf')]
  await run('mkdir', ['-p', join(from, 'deep', 'er')])
  for (const [index, name] of ['one', 'deep/two', 'deep/er/three'].entries())
    await writeFile(join(from, name), systemRandom.bytes(1_000 * (index + 1)))
  const lines = {
    type: 's3',
    provider: 'Other',
    endpoint: real.store.url,
    access_key_id: ada.settings.accessKeyId,
    secret_access_key: ada.settings.secretAccessKey,
    force_path_style: 'true',
  }
  const text = Object.entries(lines).map(([name, value]) => `${name} = ${value}\n`)
  await writeFile(configuration, `[cloud]\n${text.join('')}`)
  const rclone = (...words: readonly string[]) =>
    run('rclone', ['--config', configuration, '--ca-cert', authorityFile(), ...words], {
      // Debian's does not start where AWS_CA_BUNDLE is set.
      env: { PATH: environment()['PATH'], HOME: real.store.folder },
    })
  await rclone('copy', from, `cloud:${ada.bucket}/files`)
  expect((await rclone('check', from, `cloud:${ada.bucket}/files`, '--download')).stderr).toContain('0 differences')
  expect(await keysOf(ada)).toEqual(['files/deep/er/three', 'files/deep/two', 'files/one'])
})

test('boto3 is answered as the documentation says, operation by operation', async ({ skip }) => {
  const python = ['/usr/bin/python3', 'python3']
  const able = await Promise.all(
    python.map((each) =>
      run(each, ['-c', 'import boto3']).then(
        () => true,
        () => false,
      ),
    ),
  )
  const program = python[able.indexOf(true)]
  if (program === undefined) return skip('boto3 is not installed (Debian: python3-boto3)')
  const { settings } = await openTenant()
  const { stdout } = await run(program, [join(import.meta.dirname, '../../s3-clients/operations.py')], {
    env: {
      PATH: environment()['PATH'],
      HOME: environment()['HOME'],
      AUTHORITY: authorityFile(),
      ENDPOINT: real.store.url,
      BUCKET: `${settings.bucketPrefix}all`,
      KEY: settings.accessKeyId,
      SECRET: settings.secretAccessKey,
    },
  })
  const page = await readFile(join(import.meta.dirname, '../../../docs/object-storage.md'), 'utf8')
  const documented = [...page.matchAll(/^\| (.*?) \| `?(\w+)`? \| .* \|$/gm)].map(([, name, answer]) => [name, answer])
  expect(JSON.parse(stdout)).toEqual(Object.fromEntries(documented.filter(([, answer]) => answer !== 'single')))
})
