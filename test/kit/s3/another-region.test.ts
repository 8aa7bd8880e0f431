/** Requests that are signed for another region are signed again: with the same secret, for the same request. */
import { createHash, createHmac } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { signForRegion, signWithBody } from '../../../kit/s3/another-region.ts'
import { readOperation } from '../../../kit/s3/operation.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'
import { prove, readSignature, scopeText, type Signature, signatureOf, signingKey } from '../../../kit/s3/signature.ts'
import type { RawRequest } from '../../../kit/s3/target.ts'

const [SECRET, AT, INSTANT] = ['a secret', new Date('2026-02-03T04:05:06Z'), '20260203T040506Z']
const NOTHING = createHash('sha256').digest('hex')

const read = (raw: RawRequest): Signature => {
  const operation = readOperation(raw)
  if (operation instanceof S3Refusal) throw operation
  return readSignature(operation.headers, operation.parameters)
}
const check = (raw: RawRequest): string => {
  const signature = read(raw)
  prove(raw, signature, signingKey(SECRET, signature.day, signature.region), AT)
  return signature.region
}

function signed(method: string, target: string, headers: readonly string[], region = 'eu-1a'): RawRequest {
  const names = ['host', 'x-amz-date', ...headers.filter((_value, index) => index % 2 === 0)].toSorted()
  const signature: Signature = {
    kind: 'header',
    accessKeyId: 'KEY1',
    day: '20260203',
    region,
    instant: INSTANT,
    signedHeaders: names,
    signature: '',
    expiresSeconds: undefined,
  }
  const raw = { method, target, rawHeaders: ['host', 'h', 'x-amz-date', INSTANT, ...headers] }
  const text = signatureOf(raw, signature, signingKey(SECRET, '20260203', region))
  const scope = scopeText(signature)
  const authorization = `AWS4-HMAC-SHA256 Credential=KEY1/${scope},SignedHeaders=${names.join(';')},Signature=${text}`
  return { ...raw, rawHeaders: [...raw.rawHeaders, 'Authorization', authorization] }
}

describe('a request', () => {
  test('that is signed in its header', () => {
    const raw = signed('GET', '/one-b?list-type=2&prefix=a%20b', ['x-amz-content-sha256', NOTHING])
    expect(check(raw)).toBe('eu-1a')
    const anew = signForRegion(raw, read(raw), SECRET, 'us-east-1').raw
    expect(check(anew)).toBe('us-east-1')
    expect(anew.rawHeaders.length).toBe(raw.rawHeaders.length)
  })

  test('that is signed in its address', () => {
    const more = `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=KEY1%2F20260203%2Feu-1a%2Fs3%2Faws4_request`
    const target = `/one-b/a?${more}&X-Amz-Date=${INSTANT}&X-Amz-Expires=60&X-Amz-SignedHeaders=host`
    const bare = { method: 'GET', target: `${target}&X-Amz-Signature=${'0'.repeat(64)}`, rawHeaders: ['host', 'h'] }
    const signature = signatureOf(bare, read(bare), signingKey(SECRET, '20260203', 'eu-1a'))
    const raw = { ...bare, target: `${target}&X-Amz-Signature=${signature}` }
    expect(check(raw)).toBe('eu-1a')
    expect(check(signForRegion(raw, read(raw), SECRET, 'us-east-1').raw)).toBe('us-east-1')
  })

  test('with another body', () => {
    const digests = [
      'content-length',
      '9',
      'x-amz-content-sha256',
      NOTHING,
      'x-amz-checksum-crc32',
      'x',
      'content-md5',
      'y',
    ]
    const raw = signed('PUT', '/one-b', digests.slice(0, 6))
    const anew = signWithBody(raw, read(raw), SECRET, { region: 'us-east-1', digest: 'a'.repeat(64), bytes: 3 })
    expect(check(anew)).toBe('us-east-1')
    expect(anew.rawHeaders.join(' ')).toContain(`content-length 3 x-amz-content-sha256 ${'a'.repeat(64)}`)
    expect(anew.rawHeaders.join(' ')).not.toContain('checksum')
  })
})

describe('signed chunks', () => {
  const SEED = '5'.repeat(64)
  const sideOf = (region: string) => ({
    key: signingKey(SECRET, '20260203', region),
    scope: `20260203/${region}/s3/aws4_request`,
  })

  function bodyOf(chunks: readonly string[], region: string, seed: string, trailer = ''): string {
    const { key, scope } = sideOf(region)
    let last = seed
    const sign = (kind: string, ...digests: readonly string[]): string => {
      last = createHmac('sha256', key)
        .update([`AWS4-HMAC-SHA256-${kind}`, INSTANT, scope, last, ...digests].join('\n'))
        .digest('hex')
      return last
    }
    const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
    const pieces = chunks.map(
      (chunk) =>
        `${chunk.length.toString(16)};chunk-signature=${sign('PAYLOAD', NOTHING, sha256(chunk))}\r\n${chunk}\r\n`,
    )
    const end = `0;chunk-signature=${sign('PAYLOAD', NOTHING, NOTHING)}\r\n`
    const last2 =
      trailer === '' ? '' : `${trailer}\r\nx-amz-trailer-signature:${sign('TRAILER', sha256(`${trailer}\n`))}\r\n`
    return [...pieces, end, last2, '\r\n'].join('')
  }

  const anewOf = (size: number) => {
    const payload = 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER'
    const raw = signed('PUT', '/one-b/a', ['x-amz-content-sha256', payload, 'x-amz-decoded-content-length', '9'])
    const signature = { ...read(raw), signature: SEED }
    const { raw: anew, chunks } = signForRegion(raw, signature, SECRET, 'us-east-1')
    if (chunks === undefined) throw new Error('no chunks')
    const through = async (body: string): Promise<string> => {
      const whole = buffer(chunks)
      for (let at = 0; at < body.length; at += size) chunks.write(Buffer.from(body.slice(at, at + size), 'latin1'))
      chunks.end()
      return (await whole).toString('latin1')
    }
    return { seed: read(anew).signature, through }
  }

  const CHUNKS = ['x'.repeat(70_000), 'a\r\nb', 'y']
  const TRAILER = 'x-amz-checksum-crc32:AAAAAA=='
  test.each([
    [100_000, ''],
    [4_096, TRAILER],
    [777, ''],
  ])('in pieces of %i bytes, with the trailer %j', async (size, trailer) => {
    const { seed, through } = anewOf(size)
    const body = bodyOf(CHUNKS, 'eu-1a', SEED, trailer)
    const anew = await through(body)
    expect(anew).toBe(bodyOf(CHUNKS, 'us-east-1', seed, trailer))
    expect(anew.length).toBe(body.length)
  })

  const whole = bodyOf(['some bytes'], 'eu-1a', SEED, TRAILER)
  test.each([
    ['another byte', whole.replace('some', 'same'), 'SignatureDoesNotMatch'],
    ['another trailer', whole.replace('AAAAAA', 'AAAAAB'), 'SignatureDoesNotMatch'],
    ['another signature', whole.replace(/signature=./, 'signature=g'), 'InvalidRequest'],
    ['no end', whole.slice(0, -2), 'IncompleteBody'],
    ['more behind its end', `${whole}x`, 'InvalidRequest'],
    ['a chunk that is too large', `7fffffff;chunk-signature=${SEED}\r\n`, 'InvalidRequest'],
    ['a line without an end', 'x'.repeat(3_000), 'InvalidRequest'],
    ['no signature', '4\r\nsome\r\n0\r\n\r\n', 'InvalidRequest'],
  ])('with %s are refused', async (_what, body, code) => {
    await expect(anewOf(1_000).through(body)).rejects.toMatchObject({ code })
  })
})
