/** What a dry run writes to Kubernetes: the API answers it, nobody keeps it, and the dry run reads it. */
import { expect, test } from 'vitest'
import { ADMIN, openCore } from '../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'
import { Cache } from '../../../kit/kube/cache.ts'
import { openClient } from '../../../kit/kube/client.ts'
import { Namespace, Secret } from '../../../kit/kube/object.ts'
import { dryRunObjects, withDryRuns } from '../../../kit/kube/dry-run-store.ts'
import { isAlreadyExists, isNotFound } from '../../../kit/kube/store.ts'
import type { TransportRequest } from '../../../kit/kube/transport.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { inDryRun } from '../../../kit/sys/dry-run.ts'

async function open() {
  const own = { clock: systemClock, random: systemRandom }
  const core = await openCore({ ...own, log: silentLog, storage: memoryStorage() })
  const requests: TransportRequest[] = []
  const client = openClient({
    ...own,
    fieldManager: 'test',
    transport: (request) => (requests.push(request), core.handle(request, ADMIN)),
  })
  return { client, store: withDryRuns(client), requests, close: () => core.close() }
}
const dryRun = () => ({ startedAt: new Date('2026-01-01T00:00:00Z') })
const secret = (namespace: string, name: string, data = {}) => ({
  metadata: { namespace, name },
  spec: undefined,
  type: 'Opaque',
  data,
})

test('every write is sent as a dry run, and nothing is kept', async () => {
  const { client, store, requests, close } = await open()
  await client.create(Namespace, { metadata: { name: 'there' }, spec: {} })
  const kept = await client.create(Secret, secret('there', 'kept', { word: 'YQ==' }))
  const leaving = { metadata: { namespace: 'there', name: 'leaving', finalizers: ['example.com/it'] }, spec: undefined }
  await client.create(Secret, leaving)
  requests.length = 0
  const tried = dryRun()
  await inDryRun(tried, async () => {
    await store.create(Secret, secret('there', 'new'))
    expect(await store.get(Secret, { namespace: 'there', name: 'new' })).toMatchObject({ metadata: { name: 'new' } })
    await expect(store.create(Secret, secret('there', 'new'))).rejects.toSatisfy(isAlreadyExists)
    await store.patch(Secret, { namespace: 'there', name: 'new' }, { metadata: { labels: { a: 'b' } } })
    const changed = { ...kept, data: { word: 'Yg==' } }
    expect(await store.replace(Secret, changed)).toMatchObject({ data: { word: 'Yg==' } })
    await store.patch(Secret, { namespace: 'there', name: 'kept' }, { data: { word: null, other: 'Yw==' } })
    expect((await store.get(Secret, { namespace: 'there', name: 'kept' }))?.data).toEqual({ other: 'Yw==' })
    await store.delete(Secret, { namespace: 'there', name: 'kept' })
    expect(await store.get(Secret, { namespace: 'there', name: 'kept' })).toBeUndefined()
    await store.delete(Secret, { namespace: 'there', name: 'leaving' })
    expect(await store.get(Secret, { namespace: 'there', name: 'leaving' })).toMatchObject({
      metadata: { deletionTimestamp: '2026-01-01T00:00:00.000Z' },
    })
  })
  const writes = requests.filter(({ method }) => method !== 'GET')
  expect(writes.length).toBeGreaterThan(0)
  for (const { path, body } of writes) expect(`${path} ${body}`).toContain('dryRun')
  expect((await client.get(Secret, { namespace: 'there', name: 'kept' }))?.data).toEqual({ word: 'YQ==' })
  expect(await client.get(Secret, { namespace: 'there', name: 'new' })).toBeUndefined()
  const left = await client.get(Secret, { namespace: 'there', name: 'leaving' })
  expect(left?.metadata.deletionTimestamp).toBeUndefined()
  expect(dryRunObjects(tried).map(({ before, after }) => [before?.metadata.name, after?.metadata.name])).toEqual([
    [undefined, 'new'],
    ['kept', undefined],
    ['leaving', 'leaving'],
  ])
  await close()
})

test('the refusals of the Kubernetes API are those of a write', async () => {
  const { store, close } = await open()
  await inDryRun(dryRun(), async () => {
    await expect(store.create(Secret, secret('nowhere', 'new'))).rejects.toSatisfy(isNotFound)
    // Its namespace would exist by then.
    await store.create(Namespace, { metadata: { name: 'nowhere' }, spec: {} })
    expect(await store.create(Secret, secret('nowhere', 'new'))).toMatchObject({ kind: 'Secret' })
  })
  await close()
})

test('a cache takes nothing of a dry run', async () => {
  const { store, close } = await open()
  const cache = new Cache(Namespace, () => {})
  cache.takeList({ items: [], resourceVersion: '1' })
  const made = await inDryRun(dryRun(), async () => {
    await store.create(Namespace, { metadata: { name: 'a' }, spec: {} })
    return store.patch(Namespace, { name: 'a' }, { metadata: { resourceVersion: '99' } })
  })
  cache.apply(made)
  expect(cache.size).toBe(0)
  // As if it had been written.
  cache.apply({ ...made })
  expect(cache.size).toBe(1)
  await close()
})
