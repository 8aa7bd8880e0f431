/** Signatures are proven as Amazon's clients make them, in any region. */
import { createHash, createHmac } from 'node:crypto'
import * as s3 from '@aws-sdk/client-s3'
import { getSignedUrl } from '@aws-sdk/s3-request-presigner'
import { describe, expect, test } from 'vitest'
import { signRequest } from '../../../kit/chunks/sign-request.ts'
import { readOperation } from '../../../kit/s3/operation.ts'
import { absentHeaders, presign as presignAddress } from '../../../kit/s3/presign.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'
import { prove, readSignature, signingKey } from '../../../kit/s3/signature.ts'
import type { RawRequest } from '../../../kit/s3/target.ts'

const AT = new Date('2026-02-03T04:05:06Z')
const SECRET = 'secret+/of KEY1'
const later = (seconds: number): Date => new Date(AT.getTime() + seconds * 1_000)

function outcomeOf(raw: RawRequest, secret = SECRET, now = AT): string {
  try {
    const operation = readOperation(raw)
    if (operation instanceof S3Refusal) return operation.code
    const signature = readSignature(operation.headers, operation.parameters)
    prove(raw, signature, signingKey(secret, signature.day, signature.region), now)
    return `${operation.name} of ${signature.accessKeyId}`
  } catch (error) {
    if (error instanceof S3Refusal) return error.code
    throw error
  }
}

/** What the client of Amazon's for JavaScript would send. */
async function sentBy(command: object, region = 'eu-1a'): Promise<RawRequest> {
  const sent: RawRequest[] = []
  const client = new s3.S3Client({
    endpoint: 'https://localhost:9',
    region,
    forcePathStyle: true,
    systemClockOffset: AT.getTime() - Date.now(),
    credentials: { accessKeyId: 'KEY1', secretAccessKey: SECRET },
    maxAttempts: 1,
    requestHandler: {
      handle: async (request: { method: string; path: string; query: object; headers: Record<string, string> }) => {
        const query = Object.entries(request.query).map(
          ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value ?? ''))}`,
        )
        const target = query.length === 0 ? request.path : `${request.path}?${query.join('&')}`
        sent.push({ method: request.method, target, rawHeaders: Object.entries(request.headers).flat() })
        throw new Error('caught')
      },
    } as never, // of an interface that changes with each release
  })
  await client.send(command as s3.ListBucketsCommand).catch(() => {})
  const [request] = sent
  if (request === undefined) throw new Error('nothing was sent')
  return request
}

const at = { Bucket: 'one-b', Key: "a b/ü+&=*()'!~.txt" }

describe('a signature in the header', () => {
  test.each([
    ['GetObject', new s3.GetObjectCommand({ ...at, Range: 'bytes=0-1' })],
    ['PutObject', new s3.PutObjectCommand({ ...at, Body: 'x', Metadata: { colour: 'blue  green' } })],
    ['ListObjectsV2', new s3.ListObjectsV2Command({ Bucket: 'one-b', Prefix: 'a b/ü+&=', Delimiter: '/' })],
    ['DeleteObjects', new s3.DeleteObjectsCommand({ Bucket: 'one-b', Delete: { Objects: [{ Key: 'a' }] } })],
    ['CopyObject', new s3.CopyObjectCommand({ ...at, CopySource: 'one-b/a%20b' })],
    ['ListBuckets', new s3.ListBucketsCommand({})],
  ])('of %s is proven, and only by its secret', async (name, command) => {
    for (const region of ['eu-1a', 'us-east-1', 'auto']) {
      const raw = await sentBy(command, region)
      expect(outcomeOf(raw)).toBe(`${name} of KEY1`)
      expect(outcomeOf(raw, 'another')).toBe('SignatureDoesNotMatch')
    }
  })

  test('holds for what was signed, for a quarter of an hour', async () => {
    const raw = await sentBy(new s3.GetObjectCommand(at))
    expect(outcomeOf({ ...raw, method: 'HEAD' })).toBe('SignatureDoesNotMatch')
    expect(outcomeOf({ ...raw, target: '/one-b/other' })).toBe('SignatureDoesNotMatch')
    expect(outcomeOf({ ...raw, target: `${raw.target}&versionId=null` })).toBe('SignatureDoesNotMatch')
    const other = raw.rawHeaders.map((value, index) => (raw.rawHeaders[index - 1] === 'host' ? 'elsewhere' : value))
    expect(outcomeOf({ ...raw, rawHeaders: other })).toBe('SignatureDoesNotMatch')
    for (const seconds of [-890, 890]) expect(outcomeOf(raw, SECRET, later(seconds))).toBe('GetObject of KEY1')
    for (const seconds of [-910, 910]) expect(outcomeOf(raw, SECRET, later(seconds))).toBe('RequestTimeTooSkewed')
  })

  test.each([
    ['ListObjectsV2', { method: 'GET', url: new URL('https://localhost:9/one-b?list-type=2&prefix=a%20b') }],
    [
      'PutObject',
      {
        method: 'PUT',
        url: new URL('https://localhost:9/one-b/a'),
        body: Buffer.from('x'),
        headers: { 'content-type': 'text/plain', 'x-amz-meta-colour': 'blue  green', 'x-amz-meta-name': 'Zo\u00eb' },
      },
    ],
  ] as const)('of %s by the platform’s own client is proven', (name, request) => {
    const { url, method } = request
    const credentials = { accessKeyId: 'KEY1', secretAccessKey: SECRET, region: 'x' }
    const sent = { ...signRequest(request, credentials, AT), host: url.host }
    const raw = { method, target: `${url.pathname}${url.search}`, rawHeaders: Object.entries(sent).flat() }
    expect(outcomeOf(raw)).toBe(`${name} of KEY1`)
  })
})

describe('a signature in the address', () => {
  const presign = async (region: string): Promise<RawRequest> => {
    const credentials = { accessKeyId: 'KEY1', secretAccessKey: SECRET }
    const client = new s3.S3Client({ endpoint: 'https://localhost:9', region, forcePathStyle: true, credentials })
    const url = new URL(await getSignedUrl(client, new s3.GetObjectCommand(at), { expiresIn: 60, signingDate: AT }))
    return { method: 'GET', target: `${url.pathname}${url.search}`, rawHeaders: ['Host', url.host] }
  }

  test('is proven until it expires, by its secret', async () => {
    for (const region of ['eu-1a', 'us-east-1']) {
      const raw = await presign(region)
      expect(outcomeOf(raw)).toBe('GetObject of KEY1')
      expect(outcomeOf(raw, SECRET, later(59))).toBe('GetObject of KEY1')
      expect(outcomeOf(raw, SECRET, later(61))).toBe('AccessDenied')
      expect(outcomeOf(raw, 'another')).toBe('SignatureDoesNotMatch')
      expect(outcomeOf({ ...raw, target: raw.target.replace('X-Amz-Expires=60', 'X-Amz-Expires=600') })).toBe(
        'SignatureDoesNotMatch',
      )
    }
  })

  /** The signature that the gateway of Ceph expects: it skips signed headers that the request does not have. */
  const signatureOfGateway = (url: URL, headers: Readonly<Record<string, string>>): string => {
    const hash = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
    const signed = url.searchParams.get('X-Amz-SignedHeaders') ?? ''
    const lines = signed.split(';').flatMap((name) => (name in headers ? [`${name}:${headers[name]}\n`] : []))
    const query = url.search
      .slice(1)
      .split('&')
      .filter((part) => !part.startsWith('X-Amz-Signature='))
      .toSorted()
    const canonical = ['PUT', url.pathname, query.join('&'), lines.join(''), signed, 'UNSIGNED-PAYLOAD'].join('\n')
    const [, day = '', region = ''] = (url.searchParams.get('X-Amz-Credential') ?? '').split('/')
    const digest = createHash('sha256').update(canonical).digest('hex')
    const text = [
      'AWS4-HMAC-SHA256',
      url.searchParams.get('X-Amz-Date'),
      `${day}/${region}/s3/aws4_request`,
      digest,
    ].join('\n')
    const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hash, `AWS4${SECRET}`)
    return hash(key, text).toString('hex')
  }

  test('for the gateway of Ceph is broken by a header that does more than to store', () => {
    const put = {
      method: 'PUT',
      endpoint: 'https://localhost:9',
      bucket: 'one-b',
      key: 'a ü',
      expiresSeconds: 60,
    } as const
    const credentials = { accessKeyId: 'KEY1', secretAccessKey: SECRET, region: 'us-east-1' }
    const sign = (backend: 'rgw' | 'svc-s3-single') =>
      new URL(presignAddress({ ...put, absent: absentHeaders('PUT', backend) }, credentials, AT))
    const url = sign('rgw')
    const signature = url.searchParams.get('X-Amz-Signature')
    const host = url.host
    expect(signatureOfGateway(url, { host })).toBe(signature)
    expect(signatureOfGateway(url, { host, 'content-type': 'text/plain', 'x-amz-meta-a': 'b' })).toBe(signature)
    for (const name of ['x-amz-copy-source', 'x-amz-acl', 'x-amz-grant-read', 'x-amz-object-lock-mode'])
      expect(signatureOfGateway(url, { host, [name]: 'x' }), name).not.toBe(signature)
    expect(sign('svc-s3-single').searchParams.get('X-Amz-SignedHeaders')).toBe('host')
    expect(absentHeaders('GET', 'rgw')).toEqual([])
    const names = absentHeaders('PUT', 'rgw')
    expect(names).toEqual(names.toSorted())
  })

  test('of Amazon’s second version is refused by the name of the fourth', () => {
    const target = '/one-b/a?AWSAccessKeyId=KEY1&Expires=1&Signature=x'
    expect(outcomeOf({ method: 'GET', target, rawHeaders: [] })).toBe('InvalidRequest')
  })
})
