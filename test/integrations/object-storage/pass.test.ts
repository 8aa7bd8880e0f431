/** Passes between simulated stores in virtual time, where some requests fail. Real ones are in `pass.ceph.test.ts`. */
import { expect, test } from 'vitest'
import type { Stores } from '../../../integrations/object-storage/copy-object.ts'
import { BEGINNING, type PassKind, runPass } from '../../../integrations/object-storage/pass.ts'
import { s3Of } from '../../sim/object-s3.ts'
import {
  type Bucket,
  digestOf,
  newObjectStores,
  type SimulatedStore,
  type StoredTenant,
  type StoreRates,
} from '../../sim/object-stores.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'

const OBJECTS = 350
const KEY = { accessKeyId: 'A', secretAccessKey: 'secret' }
const CALM: StoreRates = { breaks: 0, losesAnswer: 0, crashes: 0, refuses: 0, cutsShort: 0 }
const A_HUNDREDTH: StoreRates = { breaks: 0.01, losesAnswer: 0.01, crashes: 0, refuses: 0.01, cutsShort: 0.01 }
const HOUR_MILLISECONDS = 3_600_000

const bucketOf = (names: readonly string[], now: Date): Bucket =>
  new Map(
    names.map((name) => {
      const content = `of ${name}`
      const kept = { 'x-amz-meta-name': name }
      return [name, { content, etag: digestOf(content), modifiedAt: now, kept, tags: ['name', name] }]
    }),
  )

function openMove(rates: StoreRates) {
  const scheduler = new Scheduler(7)
  const stores = newObjectStores(scheduler)
  stores.rates = rates
  const process = new SimulatedProcess('mover', scheduler)
  process.begin()
  const filled = (store: SimulatedStore, names: readonly string[]) => {
    const buckets = new Map([['data', bucketOf(names, scheduler.now())]])
    store.tenants.set('t', { settings: KEY, buckets } as unknown as StoredTenant) // all that S3 looks at
    return buckets
  }
  const names = Array.from({ length: OBJECTS }, (_none, index) => `o${String(index).padStart(4, '0')}`)
  const [source, target] = [filled(stores.single, names), filled(stores.gateway, ['left-over'])]
  const ends: Stores = {
    source: s3Of(stores, stores.single, process, KEY),
    target: s3Of(stores, stores.gateway, process, KEY),
  }
  const patience = {
    random: scheduler.random,
    clock: { sleep: (milliseconds: number) => scheduler.pause(milliseconds) },
  }
  return {
    source,
    target,
    scheduler,
    stores,
    async pass(kind: PassKind) {
      let isOver = false
      const going = runPass(ends, { kind, from: BEGINNING, isOver: () => false, patience })
      going.finally(() => (isOver = true)).catch(() => {}) // everybody who waits for it learns it
      await scheduler.runUntil(scheduler.nowMilliseconds + HOUR_MILLISECONDS, () => isOver)
      return going
    },
  }
}

test('continue while one request in a hundred fails, and are exact at the end', async () => {
  const { pass, source, target } = openMove(A_HUNDREDTH)
  expect(await pass('live')).toMatchObject({ objects: OBJECTS, changed: OBJECTS, next: undefined })
  for (const kind of ['exact', 'prune'] as const) await pass(kind)
  expect(await pass('check')).toMatchObject({ objects: OBJECTS, changed: 0 })
  const held = (buckets: typeof source) =>
    [...(buckets.get('data') ?? [])]
      .map(([name, { content, kept, tags }]) => [name, content, kept['x-amz-meta-name'], ...tags])
      .toSorted()
  expect(held(target)).toEqual(held(source))
})

test('end soon at a store that is away, and at once at one that refuses', async () => {
  const { pass, stores, scheduler } = openMove(CALM)
  stores.cut(stores.gateway, HOUR_MILLISECONDS)
  await expect(pass('live')).rejects.toThrow('it is away')
  expect(scheduler.nowMilliseconds).toBeLessThan(10_000)
  const other = openMove(CALM)
  const tenant = other.stores.gateway.tenants.get('t')
  if (tenant !== undefined) tenant.settings = { ...tenant.settings, secretAccessKey: 'another' }
  await expect(other.pass('live')).rejects.toThrow('SignatureDoesNotMatch')
  expect(other.scheduler.nowMilliseconds).toBeLessThan(200)
})
