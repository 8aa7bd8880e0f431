/** What the proxy reads of requests, and what it refuses to read. */
import { describe, expect, test } from 'vitest'
import { checkForEngine, readRequest, S3Refusal, sourcePath } from '../../../embedded/object-storage/request.ts'

const SIGNATURE = '0'.repeat(64)
const SIGNED =
  `AWS4-HMAC-SHA256 Credential=KEY1/20260101/eu-1a/s3/aws4_request,` + `SignedHeaders=host,Signature=${SIGNATURE}`
const NOW = ['X-Amz-Date', '20260101T000000Z']
const read = (method: string, target: string, headers: readonly string[] = []) =>
  readRequest({ method, target, rawHeaders: ['Authorization', SIGNED, ...NOW, ...headers] })
const codeOf = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof S3Refusal) return error.code
    throw error
  }
  return 'passed'
}
const BODY = ['Content-Length', '2']
const UPLOAD = '0f0f0f0f-1111-2222-3333-444444444444'

describe('a request', () => {
  test('says who asks, and from which region', () =>
    expect(read('GET', '/one-b/k').signature).toMatchObject({ accessKeyId: 'KEY1', region: 'eu-1a', kind: 'header' }))

  const signedAddress = (signedHeaders = 'host'): string => {
    const signature = [
      'X-Amz-Algorithm=AWS4-HMAC-SHA256',
      'X-Amz-Date=20260101T000000Z',
      'X-Amz-Expires=60',
      `X-Amz-SignedHeaders=${encodeURIComponent(signedHeaders)}`,
      `X-Amz-Signature=${SIGNATURE}`,
    ].join('&')
    return `/b-1/k?X-Amz-Credential=KEY2%2F20260101%2Fr%2Fs3%2Faws4_request&${signature}`
  }

  test('that is signed in its URL is understood', () =>
    expect(readRequest({ method: 'GET', target: signedAddress(), rawHeaders: [] }).signature).toMatchObject({
      accessKeyId: 'KEY2',
      kind: 'address',
      expiresSeconds: 60,
    }))

  test.each([
    ['x-amz-copy-source', 'b-1/other'],
    ['X-Amz-Meta-A', 'b'],
    ['x-amz-tagging', 'a=b'],
  ])('that is signed in its URL has no %s that was not signed', (name, value) => {
    const rawHeaders = ['Content-Length', '0', name, value]
    const put = (signedHeaders: string) =>
      readRequest({ method: 'PUT', target: signedAddress(signedHeaders), rawHeaders })
    expect(codeOf(() => put('host'))).toBe('AccessDenied')
    expect(() => put('host')).toThrow(
      `There were headers present in the request which were not signed: ${name.toLowerCase()}`,
    )
    expect(codeOf(() => put(`host;${name.toLowerCase()}`))).toBe('passed')
  })

  test.each<[string, string, readonly string[], object]>([
    ['PUT', '/one-b', ['Content-Length', '0'], { bytes: 0, files: 0 }],
    ['PUT', '/one-b/a/b%20c', ['Content-Length', '12'], { bytes: 12, files: 3, isWhole: true }],
    ['PUT', '/one-b/a', ['Content-Length', '0'], { bytes: 0, files: 2 }],
    ['POST', '/one-b/a?uploads', [], { bytes: 0, files: 2 }],
    ['DELETE', '/one-b/a', [], { bytes: 0, files: 0 }],
    [
      'PUT',
      '/one-b/a',
      [
        'Transfer-Encoding',
        'chunked',
        'X-Amz-Decoded-Content-Length',
        '7',
        'X-Amz-Content-Sha256',
        'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
      ],
      { bytes: 7, isWhole: false },
    ],
    [
      'PUT',
      `/one-b/a?partNumber=1&uploadId=${UPLOAD}`,
      ['x-amz-copy-source', '%2Ftwo-b%2Fx', 'x-amz-copy-source-range', 'bytes=5-9'],
      { bytes: 0, operation: { name: 'UploadPartCopy', copy: { bucket: 'two-b', key: 'x', bytes: 5 } } },
    ],
  ])('%s %s %j adds', (method, target, headers, expected) =>
    expect(read(method, target, headers)).toMatchObject(expected),
  )

  test('to copy says where the engine finds the source', () => {
    const { copy } = read('PUT', '/one-b/a', ['x-amz-copy-source', 'two-b/x%20y?versionId=v1']).operation
    expect(copy === undefined ? '' : sourcePath(copy)).toBe('/two-b/x%20y?versionId=v1')
  })

  test.each<[string, string, string, readonly string[], string]>([
    ['two signatures', 'GET', '/one-b?X-Amz-Credential=K%2F1', [], 'InvalidRequest'],
    ['two keys', 'GET', '/one-b', ['authorization', SIGNED], 'InvalidRequest'],
    ['a body without a length', 'PUT', '/b-1/k', [], 'MissingContentLength'],
    ['chunks without a length', 'PUT', '/b-1/k', ['Transfer-Encoding', 'chunked'], 'MissingContentLength'],
    ['a document in chunks', 'POST', '/b-1?delete', ['Transfer-Encoding', 'chunked'], 'MissingContentLength'],
    ['a body where none is', 'DELETE', '/b-1/k', BODY, 'InvalidRequest'],
    ['somebody else as the owner', 'GET', '/b-1/k', ['x-amz-expected-bucket-owner', 'KEY2'], 'AccessDenied'],
  ])('with %s is refused', (_what, method, target, headers, code) =>
    expect(codeOf(() => read(method, target, headers))).toBe(code),
  )

  test.each<[string, string, readonly string[], string]>([
    ['of Amazon’s second version', 'GET', ['authorization', 'AWS KEY1:abcdef='], 'InvalidRequest'],
    ['that is none', 'GET', [], 'AccessDenied'],
  ])('with a signature %s is refused', (_what, method, rawHeaders, code) =>
    expect(codeOf(() => readRequest({ method, target: '/b-1/k', rawHeaders }))).toBe(code),
  )
})

describe('the engine of a single host is not asked', () => {
  test.each<[string, string, string, readonly string[], string]>([
    ['an empty segment', 'GET', '/b-1/a//b', [], 'InvalidRequest'],
    ['a key that begins with a slash', 'PUT', '/b-1//a', BODY, 'InvalidRequest'],
    ['one that is encoded', 'PUT', '/b-1/%2Fa', BODY, 'InvalidRequest'],
    ['its own folder', 'GET', '/b-1/.sgwtmp/multipart/x', [], 'InvalidRequest'],
    ['its own folder below', 'PUT', '/b-1/d/.SGWTMP', BODY, 'InvalidRequest'],
    ['the name of its own file', 'PUT', '/b-1/d/.x.sgwtmp.12', BODY, 'InvalidRequest'],
    ['a control character', 'PUT', '/b-1/a%03b', BODY, 'InvalidRequest'],
    ['a segment that no file system has', 'GET', `/b-1/${'x'.repeat(256)}`, [], 'KeyTooLongError'],
    ['a source with an empty segment', 'PUT', '/b-1/a', ['x-amz-copy-source', 'b-1/a//b'], 'InvalidRequest'],
    ['rules that it does not have', 'GET', '/b-1?lifecycle', [], 'NotImplemented'],
  ])('for %s', (_what, method, target, headers, code) =>
    expect(codeOf(() => checkForEngine(read(method, target, headers)))).toBe(code),
  )

  test('but what lay under such a name before is read and deleted', () => {
    for (const method of ['GET', 'DELETE'])
      for (const target of ['/b-1/a%03b', '/b-1/d/.sgwtmp/x'])
        expect(codeOf(() => checkForEngine(read(method, target)))).toBe('passed')
  })

  test('and folders, dots and spaces are names as others', () => {
    for (const key of ['a/', 'a/.b', '...', 'a..b', '%20', 'a%09b', '%252e%252e/x', '.sgw', 'a%5C..%5Cb'])
      expect([key, codeOf(() => checkForEngine(read('PUT', `/b-1/${key}`, BODY)))]).toEqual([key, 'passed'])
  })
})
