/** Quota and standing hold for every operation that adds, whatever its method. */
import { describe, expect, test } from 'vitest'
import { admit, filesMaximum } from '../../../embedded/object-storage/admission.ts'
import { readRequest, S3Refusal } from '../../../embedded/object-storage/request.ts'
import { openFolderUsage } from '../../../embedded/object-storage/usage.ts'
import { operationEntries } from '../../../kit/s3/operation.ts'

const NOW = new Date('2026-02-03T04:05:06Z')
const SIGNED = [
  'Authorization',
  `AWS4-HMAC-SHA256 Credential=K/20260203/r/s3/aws4_request, SignedHeaders=host, Signature=${'0'.repeat(64)}`,
  'X-Amz-Date',
  '20260203T040506Z',
]
const UPLOAD = '0f0f0f0f-1111-2222-3333-444444444444'
const VALUES: Readonly<Record<string, string>> = { 'list-type': '2', partNumber: '1', uploadId: UPLOAD }

interface Standing {
  readonly isSuspended?: boolean
  readonly isFrozen?: boolean
  readonly quotaBytes?: number
  readonly bytes?: number
  readonly files?: number
  readonly sourceBytes?: number
}

function openTenant({
  isSuspended = false,
  isFrozen = false,
  quotaBytes = 1_000,
  sourceBytes = 10,
  ...more
}: Standing) {
  const measured = { bytes: 0, objects: 0, buckets: 1, files: 0, ...more }
  const usage = openFolderUsage(
    async () => measured,
    () => NOW,
  )
  const tenant = {
    id: 'ada',
    bucketPrefix: 'one-',
    quotaBytes,
    isSuspended,
    isFrozen,
    usage,
    upstream: undefined,
  }
  const parts = {
    tenants: { find: () => tenant },
    engines: { sizeOf: async () => sourceBytes },
    clock: { now: () => NOW },
  }
  const ask = async (method: string, target: string, headers: readonly string[] = []): Promise<string> => {
    const asked = readRequest({ method, target, rawHeaders: [...SIGNED, ...headers] })
    // What it looks at of them.
    return admit(parts as never, tenant as never, asked).then(
      (release) => {
        release(true)
        return 'admitted'
      },
      (error: unknown) => (error instanceof S3Refusal ? error.code : Promise.reject(error)),
    )
  }
  return { ask, usage }
}

const requests = operationEntries().flatMap(
  ({ name, method, resource, selectors = [], isCopy, body, class: kind, isElsewhere }) => {
    if (isElsewhere) return []
    const path = { service: '/', bucket: '/one-b', object: '/one-b/a' }[resource]
    const query = selectors.map((selector) => `${selector}=${VALUES[selector] ?? ''}`).join('&')
    const copy = isCopy ? ['x-amz-copy-source', 'one-b/x'] : []
    const headers = [...copy, ...(body === undefined ? [] : ['content-length', '7'])]
    return [{ name, kind, method, target: query === '' ? path : `${path}?${query}`, headers }]
  },
)

describe('every operation', () => {
  test.each(requests)('$name is held up by suspension as it $kind', async ({ kind, method, target, headers }) => {
    const expected = kind === 'adds' ? 'AccountProblem' : 'admitted'
    expect(await openTenant({ isSuspended: true }).ask(method, target, headers)).toBe(expected)
    expect(await openTenant({ isFrozen: true }).ask(method, target, headers)).toBe(
      kind === 'reads' ? 'admitted' : 'SlowDown',
    )
    expect(await openTenant({}).ask(method, target, headers)).toBe('admitted')
  })
})

describe('a tenant that is full', () => {
  const COPY = ['x-amz-copy-source', 'one-b/x']
  test.each<[string, string, readonly string[], string]>([
    ['PUT', '/one-b/a', ['content-length', '7'], 'QuotaExceeded'],
    ['PUT', '/one-b/a', ['content-length', '4'], 'admitted'],
    ['PUT', `/one-b/a?partNumber=1&uploadId=${UPLOAD}`, ['content-length', '7'], 'QuotaExceeded'],
    ['PUT', '/one-b/a', COPY, 'QuotaExceeded'],
    ['PUT', `/one-b/a?partNumber=1&uploadId=${UPLOAD}`, COPY, 'QuotaExceeded'],
    [
      'PUT',
      `/one-b/a?partNumber=1&uploadId=${UPLOAD}`,
      [...COPY, 'x-amz-copy-source-range', 'bytes=0-6'],
      'QuotaExceeded',
    ],
    ['PUT', `/one-b/a?partNumber=1&uploadId=${UPLOAD}`, [...COPY, 'x-amz-copy-source-range', 'bytes=0-3'], 'admitted'],
    ['DELETE', '/one-b/a', [], 'admitted'],
    ['GET', '/one-b/a', [], 'admitted'],
  ])('is answered %s %s %j with %s', async (method, target, headers, expected) => {
    expect(await openTenant({ bytes: 995, quotaBytes: 1_000 }).ask(method, target, headers)).toBe(expected)
  })

  test('of files adds nothing, however small it is', async () => {
    const maximum = filesMaximum(1_000)
    const empty = ['content-length', '0']
    const { ask, usage } = openTenant({ files: maximum - 3 })
    expect(await ask('PUT', '/one-b/a', empty)).toBe('admitted')
    // An object and the folder that it may need.
    expect(usage.files()).toBe(maximum - 1)
    for (const [method, target, headers] of [
      ['PUT', '/one-b/b', empty],
      ['PUT', '/one-b/b', COPY],
      ['POST', '/one-b/b?uploads', []],
      ['PUT', `/one-b/b?partNumber=1&uploadId=${UPLOAD}`, empty],
    ] as const)
      expect([target, await openTenant({ files: maximum - 1 }).ask(method, target, headers)]).toEqual([
        target,
        'QuotaExceeded',
      ])
    expect(await openTenant({ files: maximum }).ask('DELETE', '/one-b/b')).toBe('admitted')
  })

  test('has more of them with more bytes', () => expect(filesMaximum(1024 ** 3)).toBe(100_000 + 65_536))
})
