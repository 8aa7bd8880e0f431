/** What is done about points in a disk that no object names. */
import { expect, it } from 'vitest'
import { crds } from '../../../../controllers/kit/crds.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { COPIES_OF, readPoints, SNAPSHOTS_OF } from '../../../../controllers/nouns/storage/points.ts'
import type { StorageObject, VolumeObject } from '../../../../controllers/nouns/storage/volumes.ts'
import { orderRemoval } from '../../../../db/removal/index.ts'
import { ADMIN, openCore } from '../../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../../embedded/kubernetes/storage/memory.ts'
import { openCaches } from '../../../../kit/kube/caches.ts'
import { openClient } from '../../../../kit/kube/client.ts'
import { installCrds } from '../../../../kit/kube/crd.ts'
import { Namespace } from '../../../../kit/kube/object.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openRegistry } from '../../../../kit/sys/metrics.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import { Snapshot } from '../../../../resources/snapshot/index.ts'
import { Storage } from '../../../../resources/storage/index.ts'
import { useDatabase } from '../../../database.ts'

const database = useDatabase()
const NAMESPACE = 'acct-1'

it('leaves a point that nobody knows and nobody ordered to go', async () => {
  const core = await openCore({ clock, random, log, storage: memoryStorage() })
  const store = openClient({
    transport: (request) => core.handle(request, ADMIN),
    fieldManager: 'tests',
    clock,
    random,
  })
  await installCrds(store, crds(), clock)
  await store.create(Namespace, { metadata: { name: NAMESPACE }, spec: {} })
  const caches = openCaches({ store, clock, random, log, registry: openRegistry({ isProcessWide: false }) })
  caches.of(Snapshot).addIndex(SNAPSHOTS_OF, () => [])
  caches.of(Storage).addIndex(COPIES_OF, () => [])
  const { db } = database
  await orderRemoval(
    db,
    { kind: 'Snapshot', namespace: NAMESPACE, name: 'old', uid: 'deleted' },
    { reason: 'deleted', clock, random },
  )
  const storage = { metadata: { namespace: NAMESPACE, name: 'data', uid: 'v' } } as StorageObject // what is read of it
  const points = ['forgotten', 'deleted'].map((name) => ({ name, sizeGibibytes: 1, isFrozen: false }))
  const volume = { metadata: { name: 'v' }, status: { state: 'ready', snapshots: points } } as VolumeObject // the same
  const parts = { caches, store, db } as unknown as Parts // what it reads
  expect(await readPoints(parts, storage, [volume])).toEqual({ points: [], strays: ['deleted'] })
})
