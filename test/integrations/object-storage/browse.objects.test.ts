/** Buckets and objects as people look at them, and signed addresses, with the real engine. */
import { Agent, request as httpsRequest } from 'node:https'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Browser, openBrowser } from '../../../integrations/object-storage/browse.ts'
import { readWhole } from '../../../kit/http/bounded.ts'
import { openExchange } from '../../../kit/s3/exchange.ts'
import { presign, type SignedAddress } from '../../../kit/s3/presign.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { newTenantSettings, useObjectStorage } from '../../real-object-storage.ts'

const real = useObjectStorage()
let agent: Agent
let made = 0

beforeAll(() => {
  agent = new Agent({ ca: real.store.authority })
})
afterAll(() => agent?.destroy())

interface Tenant {
  readonly bucket: string
  readonly browser: Browser
  sign(address: Pick<SignedAddress, 'method' | 'key'> & Partial<SignedAddress>, at?: Date): string
}

async function newTenant(): Promise<Tenant> {
  const { url: endpoint, authority, control } = real.store
  const settings = newTenantSettings()
  await control.putTenant(`tenant-${(made += 1)}`, settings)
  const bucket = `${settings.bucketPrefix}one`
  const browser = openBrowser(openExchange({ url: endpoint, authority, credentials: settings, clock: systemClock }))
  await browser.createBucket(bucket)
  return {
    bucket,
    browser,
    sign: (address, at = new Date()) =>
      presign({ endpoint, bucket, expiresSeconds: 60, ...address }, { ...settings, region: 'us-east-1' }, at),
  }
}

interface Reply {
  readonly status: number | undefined
  readonly disposition: string | undefined
  readonly text: string
}

/** As a browser or curl does. */
const send = (method: string, url: string, body = '', headers: Readonly<Record<string, string>> = {}) =>
  new Promise<Reply>((resolve, reject) => {
    const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const request = httpsRequest(url, { method, agent, headers: { ...length, ...headers } }, (answer) => {
      readWhole(answer, 1e6).then(
        (whole) =>
          resolve({
            status: answer.statusCode,
            disposition: answer.headers['content-disposition'],
            text: whole.toString(),
          }),
        reject,
      )
    })
    request.once('error', reject).end(body)
  })

const HOSTILE = [
  'a+b c&d=e?f#g.txt',
  'ü/日本 <script>alert(1)</script>.html',
  'quote\'"`$(x).txt',
  '%2e%2e%2fx',
  '\u202egnp.exe',
]

test('an object is uploaded and downloaded by signed addresses, whatever its name is', async () => {
  const { sign, browser, bucket } = await newTenant()
  for (const key of HOSTILE) {
    expect(
      await send('PUT', sign({ method: 'PUT', key }), `of ${key}`, { 'content-type': 'text/plain' }),
    ).toMatchObject({
      status: 200,
    })
    const query = { 'response-content-disposition': "attachment; filename*=UTF-8''x%20%C3%BC.txt" }
    expect(await send('GET', sign({ method: 'GET', key, query }))).toEqual({
      status: 200,
      text: `of ${key}`,
      disposition: "attachment; filename*=UTF-8''x%20%C3%BC.txt",
    })
  }
  const page = await browser.page(bucket, { prefix: '', hasFolders: false, after: undefined, count: 100 })
  expect(page.objects.map(({ key }) => key).toSorted()).toEqual(HOSTILE.toSorted())
})

test('a signed address is for its method, its object and its time', async () => {
  const { sign, bucket } = await newTenant()
  const put = sign({ method: 'PUT', key: 'a' })
  expect((await send('PUT', put, 'x')).status).toBe(200)
  expect((await send('PUT', put, 'y', { 'if-none-match': '*' })).status, 'there already').toBe(412)
  const get = sign({ method: 'GET', key: 'a' })
  for (const [method, url] of [
    ['DELETE', put],
    ['GET', put],
    ['PUT', get],
    ['PUT', put.replace('/a?', '/b?')],
    ['GET', get.replace('X-Amz-Expires=60', 'X-Amz-Expires=600')],
    ['GET', `${get}&response-content-type=text%2Fhtml`],
    ['GET', sign({ method: 'GET', key: 'a' }, new Date(Date.now() - 61_000))],
  ] as const)
    expect((await send(method, url)).status, `${method} ${url}`).toBe(403)
  expect((await send('GET', get)).text).toBe('x')
  await send('PUT', sign({ method: 'PUT', key: 'secret' }), 'of the owner')
  const copy = sign({ method: 'PUT', key: 'copy' })
  for (const header of [
    { 'x-amz-copy-source': `${bucket}/secret` },
    { 'x-amz-meta-a': 'b' },
    { 'x-amz-tagging': 'a=b' },
  ])
    expect(await send('PUT', copy, '', { 'content-length': '0', ...header })).toMatchObject({
      status: 403,
      text: expect.stringContaining('which were not signed'),
    })
  expect((await send('GET', sign({ method: 'GET', key: 'copy' }))).status).toBe(404)
})

test('a bucket is looked at folder by folder, and page by page', async () => {
  const { sign, browser, bucket } = await newTenant()
  const keys = ['a/1', 'a/2', 'a/b/3', 'b c/4', 'ü/5', 'x', 'y', 'z']
  for (const key of keys) await send('PUT', sign({ method: 'PUT', key }), key)
  const top = { prefix: '', hasFolders: true, after: undefined, count: 100 }
  const first = await browser.page(bucket, top)
  expect([first.folders, first.objects.map(({ key }) => key), first.next]).toEqual([
    ['a/', 'b c/', 'ü/'],
    ['x', 'y', 'z'],
    undefined,
  ])
  const inside = await browser.page(bucket, { ...top, prefix: 'a/' })
  expect([inside.folders, inside.objects.map(({ key, bytes }) => [key, bytes])]).toEqual([
    ['a/b/'],
    [
      ['a/1', 3],
      ['a/2', 3],
    ],
  ])
  const seen: string[] = []
  let after: string | undefined
  do {
    const page = await browser.page(bucket, { ...top, after, count: 2 })
    expect(page.folders.length + page.objects.length).toBeLessThanOrEqual(2)
    seen.push(...page.folders, ...page.objects.map(({ key }) => key))
    after = page.next
  } while (after !== undefined)
  expect(seen.toSorted()).toEqual(['a/', 'b c/', 'x', 'y', 'z', 'ü/'])
})

test('a bucket with objects stays; an empty one goes; that of another tenant is not reached', async () => {
  const [ada, bob] = [await newTenant(), await newTenant()]
  await send('PUT', ada.sign({ method: 'PUT', key: 'a' }), 'x')
  const codeOf = (work: Promise<unknown>) =>
    work.then(
      () => 'done',
      (error: unknown) => (error instanceof S3Refusal ? error.code : String(error)),
    )
  expect(await codeOf(ada.browser.deleteBucket(ada.bucket))).toBe('BucketNotEmpty')
  expect(await codeOf(bob.browser.requireBucket(ada.bucket))).toBe('AccessDenied')
  expect((await send('GET', bob.sign({ method: 'GET', key: 'a', bucket: ada.bucket }))).status).toBe(403)
  expect((await bob.browser.buckets()).map(({ name }) => name)).toEqual([bob.bucket])
  await ada.browser.deleteObject(ada.bucket, 'a')
  await ada.browser.deleteObject(ada.bucket, 'a')
  await ada.browser.deleteBucket(ada.bucket)
  expect(await codeOf(ada.browser.requireBucket(ada.bucket))).toBe('NoSuchBucket')
  expect(await ada.browser.buckets()).toEqual([])
})
