/** What every volume store must do. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { VolumeStore } from '../../../agents/node/drivers/storage/volume-store.ts'
import type { TemplateImage } from '../../../agents/node/images/recipe.ts'

export interface VolumeWorld {
  /** As a newly started agent opens it, on the same host. */
  open(): Promise<VolumeStore>
  readonly template: TemplateImage
  close(): Promise<void>
}

export function volumeStoreContract(openWorld: () => Promise<VolumeWorld>): void {
  describe('a volume store', () => {
    let world: VolumeWorld
    let volumes: VolumeStore
    beforeEach(async () => {
      world = await openWorld()
      volumes = await world.open()
    })
    afterEach(() => world.close())

    it('makes volumes once, keeps them for the next agent, and removes them', async () => {
      expect([await volumes.list(), await volumes.inspect('a')]).toEqual([[], undefined])
      await volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template })
      await volumes.create({ name: 'a', sizeGibibytes: 9 })
      await volumes.create({ name: 'b', sizeGibibytes: 1 })
      const a = { name: 'a', sizeGibibytes: 2, source: { name: world.template.name, version: world.template.version } }
      volumes = await world.open()
      expect(await volumes.inspect('a')).toEqual(a)
      expect([...await volumes.list()].sort((one, other) => one.name.localeCompare(other.name))).toEqual([a, { name: 'b', sizeGibibytes: 1 }])
      await volumes.grow('a', 3)
      await volumes.grow('a', 3)
      await volumes.grow('a', 1)
      await volumes.grow('nobody', 3)
      volumes = await world.open()
      expect([await volumes.inspect('a'), await volumes.inspect('nobody')]).toEqual([{ ...a, sizeGibibytes: 3 }, undefined])
      await volumes.remove('a')
      await volumes.remove('a')
      expect((await volumes.list()).map(({ name }) => name)).toEqual(['b'])
    })
  })
}
