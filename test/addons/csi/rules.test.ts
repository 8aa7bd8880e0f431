import { expect, test } from 'vitest'
import { createClient, OperationFailed, SvccloudError } from '../../../client/index.ts'
import { controllerService } from '../../../addons/csi/controller.ts'
import { oneAtATime } from '../../../addons/csi/busy.ts'
import { faultOf } from '../../../addons/csi/capabilities.ts'
import { volumeGibibytes, volumeTier } from '../../../addons/csi/create-volume.ts'
import { csiRefusal, Refused } from '../../../addons/csi/refusal.ts'
import { makeOnce, itemsPage, titleOf } from '../../../addons/csi/storages.ts'
import { Unavailable } from '../../../domain/problem.ts'

const GIBIBYTE = 1024 ** 3

test.each([
  ['nothing asked for', 0, 0, 1],
  ['a byte', 1, 0, 1],
  ['a byte more than a GiB', GIBIBYTE + 1, 0, 2],
  ['exactly the limit', GIBIBYTE, GIBIBYTE, 1],
])('a volume has whole GiB: %s', (_what, requiredBytes, limitBytes, size) =>
  expect(volumeGibibytes({ requiredBytes, limitBytes })).toBe(size),
)

test.each([
  ['between two sizes', GIBIBYTE + 1, GIBIBYTE + 2, 'OUT_OF_RANGE'],
  ['more than there is', 16_385 * GIBIBYTE, 0, 'OUT_OF_RANGE'],
  ['negative', -1, 0, 'INVALID_ARGUMENT'],
])('a size that cannot be: %s', (_what, requiredBytes, limitBytes, code) =>
  expect(() => volumeGibibytes({ requiredBytes, limitBytes })).toThrow(expect.objectContaining({ code })),
)

test('classes say the tier and nothing unknown', () => {
  expect(volumeTier({})).toBe('standard')
  expect(volumeTier({ tier: 'local-nvme', 'csi.storage.k8s.io/pvc/name': 'data' })).toBe('local-nvme')
  expect(() => volumeTier({ tier: 'gold' })).toThrow('tier is one of')
  expect(() => volumeTier({ typo: 'x' })).toThrow('unknown parameters: typo')
})

test('a title is what people know it by, as far as there is room', () => {
  const keys = ['namespace', 'name']
  expect(titleOf({ namespace: 'shop', name: 'data' }, keys)).toBe('shop/data')
  expect(titleOf({ namespace: 'shop', name: 'x'.repeat(253) }, keys)).toBe(`shop/${'x'.repeat(250)}`)
  expect(titleOf({ name: 'data' }, keys)).toBeUndefined()
})

test.each([
  ['ext4 by default', { mount: { fsType: '', mountFlags: [] }, accessMode: { mode: 'SINGLE_NODE_WRITER' } }, true],
  ['raw', { block: {}, accessMode: { mode: 'SINGLE_NODE_SINGLE_WRITER' } }, true],
  ['several nodes', { block: {}, accessMode: { mode: 'MULTI_NODE_MULTI_WRITER' } }, false],
  ['readers on several nodes', { block: {}, accessMode: { mode: 'MULTI_NODE_READER_ONLY' } }, false],
  ['no mode', { block: {}, accessMode: null }, false],
  ['neither', { accessMode: { mode: 'SINGLE_NODE_WRITER' } }, false],
  ['btrfs', { mount: { fsType: 'btrfs', mountFlags: [] }, accessMode: { mode: 'SINGLE_NODE_WRITER' } }, false],
] as const)('how a volume is used: %s', (_what, capability, isPossible) =>
  expect(faultOf(capability) === undefined).toBe(isPossible),
)

const refused = (status: number, reason?: string) =>
  new SvccloudError(new Response(null, { status }), { reason } as never)

test.each([
  [refused(409, 'operation_in_progress'), 'ABORTED'],
  [refused(409, 'in_use'), 'FAILED_PRECONDITION'],
  [refused(503, 'no_capacity'), 'RESOURCE_EXHAUSTED'],
  [refused(503), 'UNAVAILABLE'],
  [refused(422, 'quota_exceeded'), 'RESOURCE_EXHAUSTED'],
  [refused(500), 'INTERNAL'],
  [new Unavailable('the API'), 'UNAVAILABLE'],
  [new OperationFailed({ id: 'o', kind: 'storage.attach', status: 'failed', error: 'no' } as never), 'INTERNAL'],
  [new Refused('OUT_OF_RANGE', 'no'), 'OUT_OF_RANGE'],
  [new TypeError('a bug'), undefined],
])('what is refused has a code: %s', (error, code) => expect(csiRefusal(error)?.code).toBe(code))

test('a second call for a volume is aborted during the first, and neither blocks later ones', async () => {
  const once = oneAtATime()
  let end = () => {}
  const first = once('a', () => new Promise<void>((resolve) => void (end = resolve)))
  await expect(once('a', async () => 1)).rejects.toMatchObject({ code: 'ABORTED' })
  expect(await once('b', async () => 2)).toBe(2)
  end()
  await first
  await expect(once('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await once('a', async () => 3)).toBe(3)
})

const answered = <Value>(value: Value, headers: Record<string, string> = {}) => ({
  data: value,
  response: new Response(null, { status: 202, headers }),
})

test('what was created and deleted today is created again, and what exists is not', async () => {
  const keys: string[] = []
  const there = new Set<number>()
  const make = () =>
    makeOnce({
      text: 'volume',
      async post(key) {
        const known = keys.indexOf(key)
        if (known >= 0) return answered({ number: known }, { 'idempotent-replayed': 'true' })
        there.add(keys.length)
        return answered({ number: keys.push(key) - 1 })
      },
      isThere: async ({ number }: { number: number }) => there.has(number),
    })
  expect(await make()).toEqual({ number: 0 })
  expect(await make()).toEqual({ number: 0 })
  there.delete(0)
  expect(await make()).toEqual({ number: 1 })
  expect(await make()).toEqual({ number: 1 })
})

test('pages are read to their end, or to as many as are wanted', async () => {
  const states = (index: number) => (index === 100 ? 'deleting' : 'online')
  const all = Array.from({ length: 250 }, (_, index) => ({ index, state: states(index) }))
  const there = all.filter(({ state }) => state === 'online')
  const read = async ({ cursor = '0', limit }: { readonly cursor?: string; readonly limit: number }) => {
    if (cursor === 'nonsense') throw refused(400)
    const end = Number(cursor) + limit
    return { items: all.slice(Number(cursor), end), next_cursor: end < all.length ? String(end) : null }
  }
  expect(await itemsPage({ maxEntries: 0, startingToken: '' }, read)).toEqual({ items: there, nextToken: '' })
  expect(await itemsPage({ maxEntries: 2, startingToken: '' }, read)).toEqual({
    items: all.slice(0, 2),
    nextToken: '2',
  })
  expect(await itemsPage({ maxEntries: 0, startingToken: '248' }, read)).toEqual({
    items: all.slice(248),
    nextToken: '',
  })
  expect((await itemsPage({ maxEntries: 200, startingToken: '' }, read)).nextToken).toBe('201')
  await expect(itemsPage({ maxEntries: 0, startingToken: 'nonsense' }, read)).rejects.toMatchObject({ code: 'ABORTED' })
  await expect(itemsPage({ maxEntries: -1, startingToken: '' }, read)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
  })
})

test('a volume comes to the server of a node, whose id is no UUID; what is no id is asked for nowhere', async () => {
  const [volumeId, nodeId] = ['6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11', `machine-node-${'0'.repeat(8)}`]
  const CAPABILITY = { mount: { fsType: '', mountFlags: [] }, accessMode: { mode: 'SINGLE_NODE_WRITER' } } as const
  const OWN = { labels: { 'kubernetes-cluster': 'c' } }
  const asked: string[] = []
  const answers: Readonly<Record<string, object>> = {
    [`/v1/storages/${volumeId}`]: {
      storage: { ...OWN, id: volumeId, server_id: null, serial: 's', active_operation: null },
    },
    [`/v1/servers/${nodeId}`]: { server: { id: nodeId } },
    [`/v1/storages/${volumeId}/attach`]: { operation: { id: 'o' } },
    '/v1/operations/o': { operation: { id: 'o', status: 'succeeded' } },
  }
  const client = createClient({
    url: 'http://platform.test',
    fetch: async ({ method, url }) => {
      const { pathname } = new URL(url)
      asked.push(`${method} ${pathname}`)
      const answer = answers[pathname]
      return Response.json(answer ?? {}, { status: answer === undefined ? 404 : 200 })
    },
  })
  const { ControllerPublishVolume: publish } = controllerService({ client, clusterId: 'c', zone: 'z' })
  const to = (node: string) => publish({ volumeId, nodeId: node, volumeCapability: CAPABILITY })
  expect(await to(nodeId)).toEqual({ publishContext: { serial: 's' } })
  expect(asked).toContain(`POST /v1/storages/${volumeId}/attach`)
  asked.length = 0
  await expect(to('../networks')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  expect(asked).toEqual([`GET /v1/storages/${volumeId}`])
})
