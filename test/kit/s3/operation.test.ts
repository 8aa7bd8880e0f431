/** Which requests are operations of S3, and that nothing else is. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { operationEntries, readOperation } from '../../../kit/s3/operation.ts'
import { OPERATIONS } from '../../../kit/s3/operation-table.ts'
import { S3Refusal } from '../../../kit/s3/refusal.ts'

const UPLOAD = '0f0f0f0f-1111-2222-3333-444444444444'
const VALUES: Readonly<Record<string, string>> = {
  'list-type': '2',
  partNumber: '1',
  uploadId: UPLOAD,
  versionId: 'null',
  'encoding-type': 'url',
  'max-keys': '3',
  'max-parts': '3',
  'max-uploads': '3',
  'max-buckets': '3',
  'fetch-owner': 'true',
  'part-number-marker': '1',
  'continuation-token': 'a',
  'upload-id-marker': UPLOAD,
}
const codeOf = (method: string, target: string, rawHeaders: readonly string[] = []): string => {
  const read = readOperation({ method, target, rawHeaders })
  return read instanceof S3Refusal ? `${read.status} ${read.code}` : read.name
}

const PATHS = { service: '/', bucket: '/one-b', object: '/one-b/a' }
const queryOf = (names: readonly string[]): string =>
  names.length === 0 ? '' : `?${names.map((name) => `${name}=${VALUES[name] ?? ''}`).join('&')}`
const copyOf = (isCopy: boolean | undefined): readonly string[] => (isCopy ? ['x-amz-copy-source', 'one-b/x'] : [])

describe('the table', () => {
  test.each(operationEntries().map((entry) => [entry.name, entry] as const))('has %s', (name, entry) => {
    const { method, resource, selectors = [], parameters = [], isCopy } = entry
    const path = PATHS[resource]
    expect(codeOf(method, `${path}${queryOf(selectors)}`, copyOf(isCopy))).toBe(name)
    for (const parameter of parameters)
      expect([parameter, codeOf(method, `${path}${queryOf([...selectors, parameter])}`, copyOf(isCopy))]).toEqual([
        parameter,
        name,
      ])
  })

  test('has no request for two operations', () => {
    const keys = operationEntries().map(({ method, resource, selectors = [], isCopy }) =>
      [method, resource, ...[...selectors].toSorted(), isCopy ?? false].join(' '),
    )
    expect(new Set(keys).size).toBe(keys.length)
  })

  test('deletes nothing by what reads or adds', () => {
    for (const [name, { method, class: kind }] of Object.entries(OPERATIONS))
      expect([name, kind]).toEqual([
        name,
        name === 'DeleteObjects' || method === 'DELETE'
          ? 'removes'
          : ['GET', 'HEAD'].includes(method)
            ? 'reads'
            : 'adds',
      ])
  })
})

describe('everything that is not in the table is refused', () => {
  test.each([
    ['GET', '/one-b?session'],
    ['GET', '/one-b?inventory'],
    ['GET', '/one-b/a?torrent'],
    ['POST', '/one-b'],
    ['POST', '/one-b/a'],
    ['POST', '/one-b/a?select&select-type=2'],
    ['POST', '/one-b/a?restore'],
    ['POST', `/one-b?delete&uploadId=${UPLOAD}`],
    ['POST', `/one-b/a?delete&uploadId=${UPLOAD}`],
    ['PUT', '/one-b?policy'],
    ['PUT', '/one-b?acl'],
    ['PUT', '/one-b?publicAccessBlock'],
    ['PUT', '/one-b?website'],
    ['PUT', '/one-b?unheard'],
    ['PUT', `/one-b/a?uploadId=${UPLOAD}`],
    ['PUT', '/one-b/a?partNumber=1'],
    ['PUT', '/one-b/a?acl'],
    ['PUT', `/one-b/a?tagging&uploadId=${UPLOAD}&partNumber=1`],
    ['DELETE', `/one-b/a?tagging&uploadId=${UPLOAD}`],
    ['DELETE', '/one-b/a?UploadId=../..'],
    ['GET', '/one-b/a?UPLOADID=x'],
    ['GET', '/one-b/a?VersionId=x'],
    ['GET', '/one-b?List-Type=2'],
    ['GET', '/one-b?list-type=3'],
    ['GET', '/one-b/a?uploadId;x=1'],
  ])('%s %s', (method, target) => expect(codeOf(method, target)).toBe('501 NotImplemented'))

  test.each([
    ['PUT', '/one-b/a', 'x-amz-server-side-encryption', 'AES256'],
    ['GET', '/one-b/a', 'x-amz-server-side-encryption-customer-key', 'x'],
    ['PUT', '/one-b/a', 'x-amz-grant-read', 'id=x'],
    ['PUT', '/one-b', 'x-amz-acl', 'public-read'],
    ['PUT', '/one-b/a', 'X-Amz-ACL', 'authenticated-read'],
    ['PUT', '/one-b/a', 'x-amz-rename-source', 'x'],
    ['PUT', '/one-b', 'x-amz-object-ownership', 'ObjectWriter'],
    ['DELETE', '/one-b/a', 'x-amz-mfa', 'x'],
    ['GET', '/one-b', 'x-amz-copy-source', 'one-b/a'],
  ])('%s %s with %s: %s', (method, target, ...header) =>
    expect(codeOf(method, target, header)).toBe('501 NotImplemented'),
  )

  test('copying a range into a separate object is no operation', () => {
    const headers = ['x-amz-copy-source', 'one-b/x', 'x-amz-copy-source-range', 'bytes=0-1']
    expect(codeOf('PUT', '/one-b/a', headers)).toBe('501 NotImplemented')
    expect(codeOf('PUT', `/one-b/a?partNumber=1&uploadId=${UPLOAD}`, headers)).toBe('UploadPartCopy')
  })

  test.each([
    ['OPTIONS', '/one-b/a'],
    ['PATCH', '/one-b/a'],
    ['TRACE', '/one-b'],
    ['PUT', '/'],
    ['DELETE', '/'],
    ['POST', '/?delete'],
  ])('%s %s by its method', (method, target) => expect(codeOf(method, target)).toBe('405 MethodNotAllowed'))
})

describe('names and values have their exact form', () => {
  test.each([
    ['GET', '/one-b/../two-b/k', '400 InvalidRequest'],
    ['GET', '/one-b/%2e%2e/two-b/k', '400 InvalidRequest'],
    ['GET', '/one-b/a/%2E./b', '400 InvalidRequest'],
    ['GET', '/one-b/a/..', '400 InvalidRequest'],
    ['GET', '/one-b/.', '400 InvalidRequest'],
    ['GET', '/one-b/a%2f..%2fb', '400 InvalidRequest'],
    ['GET', '/one-b/a%00b', '400 InvalidRequest'],
    ['GET', '/one-b/%c0%ae%c0%ae/x', '400 InvalidRequest'],
    ['GET', '/one-b/%ff', '400 InvalidRequest'],
    ['GET', '/one-b/%ed%a0%80', '400 InvalidRequest'],
    ['GET', '/one-b/%zz', '400 InvalidRequest'],
    ['GET', '/one-b/a#b', '400 InvalidRequest'],
    ['GET', '/one-b/a\\b', '400 InvalidRequest'],
    ['GET', `/one-b/${'x/'.repeat(513)}`, '400 KeyTooLongError'],
    ['GET', '/%6fne-b/k', '400 InvalidBucketName'],
    ['GET', '//one-b/k', '400 InvalidBucketName'],
    ['GET', '/One-b/k', '400 InvalidBucketName'],
    ['GET', '/../one-b', '400 InvalidBucketName'],
    ['GET', '/a..b/k', '400 InvalidBucketName'],
    ['GET', '/127.0.0.1/k', '400 InvalidBucketName'],
    ['GET', '/.sgwtmp/k', '400 InvalidBucketName'],
    ['GET', 'http://elsewhere/one-b', '400 InvalidRequest'],
    ['GET', `/one-b/a?uploadId=../../../../two-b`, '404 NoSuchUpload'],
    ['DELETE', '/one-b/a?uploadId=%2e%2e', '404 NoSuchUpload'],
    ['DELETE', `/one-b/a?uploadId=${UPLOAD}/..`, '404 NoSuchUpload'],
    ['DELETE', `/one-b/a?uploadId=${UPLOAD}%00`, '400 InvalidArgument'],
    ['DELETE', '/one-b/a?uploadId=', '404 NoSuchUpload'],
    ['DELETE', `/one-b/a?uploadId=${UPLOAD}&uploadId=..`, '400 InvalidArgument'],
    ['DELETE', `/one-b/a?uploadId=${UPLOAD}&UploadId=..`, '400 InvalidArgument'],
    ['DELETE', `/one-b/a?uploadId=${UPLOAD}&upload%49d=..`, '400 InvalidArgument'],
    ['GET', '/one-b/a?versionId=../x', '400 InvalidArgument'],
    ['GET', '/one-b/a?versionId=..', '400 InvalidArgument'],
    ['GET', '/one-b/a?versionId=%2e', '400 InvalidArgument'],
    ['GET', '/one-b/a?versionId=', '400 InvalidArgument'],
    ['PUT', `/one-b/a?partNumber=0&uploadId=${UPLOAD}`, '400 InvalidArgument'],
    ['PUT', `/one-b/a?partNumber=10001&uploadId=${UPLOAD}`, '400 InvalidArgument'],
    ['PUT', `/one-b/a?partNumber=..&uploadId=${UPLOAD}`, '400 InvalidArgument'],
    ['GET', '/one-b?prefix=../two-b/', '400 InvalidArgument'],
    ['GET', '/one-b?list-type=2&start-after=a/../../two-b/', '400 InvalidArgument'],
    ['GET', '/one-b?list-type=2&continuation-token=', '400 InvalidArgument'],
    ['GET', '/one-b?list-type=2&prefix=..', 'ListObjectsV2'],
    ['GET', '/one-b?encoding-type=base64', '400 InvalidArgument'],
    ['GET', '/one-b?encoding-type=url', 'ListObjects'],
    ['GET', '/one-b?max-keys=x', '400 InvalidArgument'],
    ['GET', '/one-b?versions&version-id-marker=..&key-marker=a', '400 InvalidArgument'],
    ['GET', '/one-b?', 'ListObjects'],
    ['GET', '/one-b/', 'ListObjects'],
    ['GET', '/one-b/%252e%252e/x', 'GetObject'],
  ])('%s %s: %s', (method, target, expected) => expect(codeOf(method, target)).toBe(expected))

  test.each([
    ['x-amz-storage-class', 'GLACIER', '400 InvalidStorageClass'],
    ['x-amz-storage-class', 'STANDARD', 'PutObject'],
    ['x-amz-api-version', '2006-03-01', 'PutObject'],
    ['x-amz-te', 'append-md5', 'PutObject'],
    ['x-amz-decoded-content-length', '5', '400 InvalidRequest'],
    ['x-amz-meta-anything', '..', 'PutObject'],
    ['content-md5', 'x', '400 InvalidDigest'],
    ['x-amz-content-sha256', '..', '400 InvalidArgument'],
    ['x-amz-copy-source', 'one-b/../two-b/x', '400 InvalidRequest'],
    ['x-amz-copy-source', 'one-b/%2e%2e/two-b/x', '400 InvalidRequest'],
    ['x-amz-copy-source', 'one-b/x?versionId=..', '400 InvalidRequest'],
    ['x-amz-copy-source', 'one-b/x%3FversionId=..', '400 InvalidRequest'],
    ['x-amz-copy-source', 'one-b/x?versionId=a&versionId=..', '400 InvalidRequest'],
    ['x-amz-copy-source', 'one-b/a+b', '400 InvalidRequest'],
    ['x-amz-copy-source', '/one-b/a%2Bb', 'CopyObject'],
    ['x-amz-copy-source', 'arn:aws:s3:::one-b/a', '400 InvalidBucketName'],
  ])('%s: %s: %s', (name, value, expected) => expect(codeOf('PUT', '/one-b/a', [name, value])).toBe(expected))

  test('a header of Amazon’s is there once, and metadata as often as it is', () => {
    const twice = (name: string) => codeOf('PUT', '/one-b/a', [name, 'one-b/x', name.toUpperCase(), 'two-b/x'])
    expect(twice('x-amz-copy-source')).toBe('400 InvalidRequest')
    expect(twice('x-amz-tagging')).toBe('400 InvalidRequest')
    expect(twice('x-amz-meta-a')).toBe('PutObject')
  })

  test.each(['bytes=5-', 'bytes=9-5', 'bytes=-5', 'bytes=0-1,3-4', 'bytes=a-b', '0-5'])('the range %s', (range) =>
    expect(
      codeOf('PUT', `/one-b/a?partNumber=1&uploadId=${UPLOAD}`, [
        'x-amz-copy-source',
        'one-b/x',
        'x-amz-copy-source-range',
        range,
      ]),
    ).toBe('400 InvalidArgument'),
  )
})

test('the documentation lists every operation, by what it does', async () => {
  const page = (await readFile(join(import.meta.dirname, '../../../docs/object-storage.md'), 'utf8')).replaceAll(
    '\n',
    ' ',
  )
  const section = page.slice(page.indexOf('## Accepted requests'), page.indexOf('The signature (version 4'))
  const documented = [...section.matchAll(/(Reads|Writes|Deletions|Only after)[^`]*((?:`\w+`,? ?)+)/g)].map(
    ([, kind = '', names = '']) => [kind, [...names.matchAll(/\w+/g)].map(([name]) => name).toSorted()],
  )
  const namesOf = (isWanted: (entry: ReturnType<typeof operationEntries>[number]) => boolean) =>
    operationEntries()
      .filter(isWanted)
      .map(({ name }) => name)
      .toSorted()
  const ofClass = (kind: string) => namesOf((entry) => entry.class === kind && !entry.isElsewhere)
  expect(Object.fromEntries(documented)).toEqual({
    Reads: ofClass('reads'),
    Writes: ofClass('adds'),
    Deletions: ofClass('removes'),
    'Only after': namesOf((entry) => entry.isElsewhere ?? false),
  })
})
