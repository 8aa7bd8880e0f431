/** What is watched of object storage while a world of `objects.seeds.test.ts` runs is tested as well. */
import { expect, it } from 'vitest'
import { newObjectStores, type StoredTenant } from './object-stores.ts'
import { watchObjects } from './objects.ts'
import { Scheduler } from './scheduler.ts'

it('finds a key that holds after it was replaced', () => {
  const stores = newObjectStores(new Scheduler(1))
  const settings = { accessKeyId: 'A', secretAccessKey: 'before' }
  stores.gateway.tenants.set('t', { settings } as StoredTenant)
  const place = { key: { ...settings, secretAccessKey: 'after' }, dead: new Set(['before']) }
  const objects = { places: [place] } as unknown as NonNullable<Parameters<typeof watchObjects>[0]['objects']>
  expect(watchObjects({ stores, objects })).toEqual(['rgw lets in a key that was replaced'])
})
