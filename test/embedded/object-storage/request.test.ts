/** What the door reads of requests, and what it refuses to read. */
import { describe, expect, test } from 'vitest'
import { readRequest, Refusal } from '../../../embedded/object-storage/request.ts'

const SIGNED = 'AWS4-HMAC-SHA256 Credential=KEY1/20260101/us-east-1/s3/aws4_request,SignedHeaders=host,Signature=00'
const read = (method: string, target: string, headers: readonly string[] = []) =>
  readRequest({ method, target, rawHeaders: ['Authorization', SIGNED, ...headers] })
const SEALED = ['Content-Length', '2', 'X-Amz-Server-Side-Encryption-Customer-Algorithm', 'AES256']
const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
  return 'passed'
}

describe('a request', () => {
  test.each<[string, string, readonly string[], object]>([
    ['GET', '/', [], { action: 'read', bucket: undefined, hasKey: false, bytes: 0 }],
    ['GET', '/one-b?list-type=2', [], { action: 'read', bucket: 'one-b', hasKey: false }],
    ['PUT', '/one-b', ['Content-Length', '0'], { action: 'write', hasKey: false, bytes: 0 }],
    ['PUT', '/one-b/a/b%20c', ['Content-Length', '12'], { action: 'write', hasKey: true, bytes: 12 }],
    ['POST', '/one-b?delete', [], { action: 'delete' }],
    ['POST', '/one-b/a?uploads', [], { action: 'write', bytes: 0 }],
    ['DELETE', '/one-b/a', [], { action: 'delete' }],
    [
      'PUT',
      '/one-b/a',
      ['Transfer-Encoding', 'chunked', 'X-Amz-Decoded-Content-Length', '7'],
      { action: 'write', bytes: 7 },
    ],
    [
      'PUT',
      '/one-b/a',
      ['x-amz-copy-source', 'two-b/x%20y?versionId=v1'],
      { bytes: 0, copy: { bucket: 'two-b', path: '/two-b/x%20y?versionId=v1' } },
    ],
    [
      'PUT',
      '/one-b/a',
      ['x-amz-copy-source', '%2Ftwo-b%2Fx', 'x-amz-copy-source-range', 'bytes=5-9'],
      { copy: { bucket: 'two-b', path: '/two-b/x', bytes: 5 } },
    ],
  ])('%s %s %j is understood', (method, target, headers, expected) =>
    expect(read(method, target, headers)).toMatchObject({ accessKeyId: 'KEY1', ...expected }),
  )

  test('that is signed in its URL is understood', () =>
    expect(
      readRequest({
        method: 'GET',
        target: '/b-1/k?X-Amz-Credential=KEY2%2F20260101%2Fr%2Fs3%2Faws4_request',
        rawHeaders: [],
      }),
    ).toMatchObject({ accessKeyId: 'KEY2', bucket: 'b-1' }))

  test.each<[string, string, string, readonly string[], string]>([
    ['a path above the bucket', 'GET', '/one-b/../two-b/k', [], 'InvalidRequest'],
    ['one that is encoded', 'GET', '/one-b/%2e%2e/two-b/k', [], 'InvalidRequest'],
    ['one that is encoded twice', 'GET', '/one-b/%252e%252e%252ftwo-b', [], 'InvalidRequest'],
    ['one with backslashes', 'GET', '/one-b/..%5c..%5ctwo-b', [], 'InvalidRequest'],
    ['a bucket that is encoded', 'GET', '/%6fne-b/k', [], 'InvalidBucketName'],
    ['no bucket before the key', 'GET', '//one-b/k', [], 'InvalidBucketName'],
    ['a whole URL', 'GET', 'http://elsewhere/one-b', [], 'InvalidRequest'],
    ['two signatures', 'GET', '/one-b?X-Amz-Credential=K%2F1', [], 'InvalidRequest'],
    ['two keys', 'GET', '/one-b', ['authorization', SIGNED], 'InvalidRequest'],
    ['two sources', 'PUT', '/b-1/k', ['x-amz-copy-source', 'b-1/a', 'X-Amz-Copy-Source', 'c-1/a'], 'InvalidRequest'],
    ['a source above its bucket', 'PUT', '/b-1/k', ['x-amz-copy-source', 'b-1/%2e%2e/c-1/a'], 'InvalidRequest'],
    ['a body without a length', 'PUT', '/b-1/k', [], 'MissingContentLength'],
    ['chunks without a length', 'PUT', '/b-1/k', ['Transfer-Encoding', 'chunked'], 'MissingContentLength'],
    ['a policy', 'PUT', '/b-1?policy', ['Content-Length', '2'], 'NotImplemented'],
    ['a grant', 'PUT', '/b-1', ['x-amz-grant-read', 'id=x'], 'NotImplemented'],
    ['a public bucket', 'PUT', '/b-1', ['x-amz-acl', 'public-read'], 'NotImplemented'],
    ['a key to seal it with', 'PUT', '/b-1/k', SEALED, 'NotImplemented'],
    [
      'one for what it copies',
      'PUT',
      '/b-1/k',
      ['x-amz-copy-source-server-side-encryption-customer-key', 'x'],
      'NotImplemented',
    ],
    ['one in its URL', 'PUT', '/b-1/k?X-Amz-Server-Side-Encryption=AES256', ['Content-Length', '2'], 'NotImplemented'],
    ['buckets that are to be sealed', 'PUT', '/b-1?encryption', ['Content-Length', '2'], 'NotImplemented'],
    ['another method', 'TRACE', '/b-1', [], 'MethodNotAllowed'],
  ])('with %s is refused', (_what, method, target, headers, code) =>
    expect(codeOf(() => read(method, target, headers))).toBe(code),
  )

  test('of nobody, or signed as of old, is refused', () => {
    expect(codeOf(() => readRequest({ method: 'GET', target: '/b-1', rawHeaders: [] }))).toBe('AccessDenied')
    const old = ['Authorization', 'AWS KEY1:signature']
    expect(codeOf(() => readRequest({ method: 'GET', target: '/b-1', rawHeaders: old }))).toBe('InvalidRequest')
  })
})
