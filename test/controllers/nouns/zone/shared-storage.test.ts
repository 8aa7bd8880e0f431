/** What the shared storage of a zone says moves by itself: looking at it for ever is no restless effect. */
import { expect, it } from 'vitest'
import { sharedStorageEffects } from '../../../../controllers/nouns/zone/shared-storage.ts'
import { openAnswers } from '../../../../kit/reconcile/restless.ts'
import { Zone, type ZoneSpec } from '../../../../resources/catalog/index.ts'
import { openWorld } from '../../../kit/world.ts'

const LOOKS = 30
const LOOK_MILLISECONDS = 60_000

it('is looked at again and again, also while it does not answer', async () => {
  const world = await openWorld()
  const { clock, store } = world.join('controllers')
  const { readSharedStorage } = sharedStorageEffects({ clock, store })
  const input = { access: { protocol: 'ceph' as const, secretName: 'missing' }, pools: ['vms'] }
  const answers = openAnswers()
  const zone = { apiVersion: '', kind: Zone.kind, metadata: { name: 'zone-a', uid: 'zone-a' }, spec: {} as ZoneSpec }
  const times = new Set<unknown>()
  for (let look = 0; look < LOOKS; look += 1) {
    const report = await world.settled(Promise.resolve(readSharedStorage(input, zone)))
    times.add(report?.status?.['sharedStorage'])
    if (report !== undefined) answers.judge({ uid: 'zone-a', name: 'readSharedStorage' }, input, report)
    await world.pass(LOOK_MILLISECONDS)
  }
  expect(times.size).toBe(LOOKS)
})
