/** What a guest boots, by what its host holds of its disk. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { VolumeStore } from '../../../agents/node/drivers/storage/volume-store.ts'
import { simulatedVolumes } from '../../../agents/node/drivers/storage/simulated.ts'
import { openTemplateStore } from '../../../agents/node/images/template-store.ts'
import { imageOf, isUsable } from '../../../agents/node/instance/guest-definition.ts'
import { ledgerInMemory } from '../../../agents/node/ledger.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import type { InstanceSpec } from '../../../resources/instance/index.ts'

const BOOTS_ITSELF = { is: 'ready', image: { boot: undefined } }

test.each([
  ['no disk yet', undefined, 'debian-12', { is: 'unavailable', reason: 'template debian-12 is not on this host' }],
  ['a disk that began as no template', {}, 'debian-12', BOOTS_ITSELF],
  ['and of a server that names none', {}, '', BOOTS_ITSELF],
  [
    'a disk that began as a version of one',
    { origin: { name: 'tiny-linux', version: '1' } },
    'debian-12',
    { is: 'unavailable', reason: 'version 1 of template tiny-linux is not on this host' },
  ],
])('%s', async (_what, disk, template, expected) => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-templates-'))
  const images = openTemplateStore({ folder, clock: systemClock, log: silentLog })
  const volumes = simulatedVolumes(new Map())
  if (disk !== undefined) await volumes.create({ name: 'boot', sizeGibibytes: 1, ...disk })
  // nothing else is read
  const spec = { template, disks: [{ volume: 'boot', serial: 'boot' }] } as unknown as InstanceSpec
  const { reason, ...rest } = expected as { readonly reason?: string }
  expect(await imageOf({ volumes, images }, spec)).toMatchObject({
    ...rest,
    ...(reason === undefined ? {} : { reason: expect.stringContaining(reason) }),
  })
  await rm(folder, { recursive: true })
})

test('a disk that another host was given is not used by an older state of its object', async () => {
  const ledger = ledgerInMemory()
  const served = { id: 'op-1', generation: 3 }
  ledger.putBytes('volume', 'boot', { uid: 'u', state: 'made', at: '2030-01-01T00:00:00Z', served })
  const usable = (generation: number, serve?: object) => {
    const object = { metadata: { name: 'boot', uid: 'u', generation }, spec: { ...(serve && { serve }) } }
    return isUsable(
      {
        ledger,
        namespace: 'node-n1',
        caches: { of: () => ({ get: () => object }) } as unknown as Caches,
        volumes: { inspect: async () => ({ name: 'boot', sizeGibibytes: 1 }) } as unknown as VolumeStore,
      },
      'boot',
    )
  }
  expect(await Promise.all([usable(2), usable(2, { id: 'op-0' }), usable(2, { id: 'op-1' }), usable(4)])).toEqual([
    false,
    false,
    true,
    true,
  ])
})
