/** What every volume store must do. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SourceLost, type TakeInGuest, type VolumeStore } from '../../../agents/node/drivers/storage/volume-store.ts'
import type { TemplateImage } from '../../../agents/node/images/recipe.ts'
import { defined } from '../../../domain/defined.ts'

export interface VolumeWorld {
  /** As a newly started agent opens it, on the same host. */
  open(): Promise<VolumeStore>
  /** As an agent of another host opens it, which has mounted the same pool. */
  openOther(): Promise<VolumeStore>
  readonly template: TemplateImage
  /** As the guest that has the disk does it, frozen. */
  readonly takeFrozen: TakeInGuest
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
      expect([...(await volumes.list())].sort((one, other) => one.name.localeCompare(other.name))).toEqual([
        a,
        { name: 'b', sizeGibibytes: 1 },
      ])
      await volumes.grow('a', 3)
      await volumes.grow('a', 3)
      await volumes.grow('a', 1)
      await volumes.grow('nobody', 3)
      volumes = await world.open()
      expect([await volumes.inspect('a'), await volumes.inspect('nobody')]).toEqual([
        { ...a, sizeGibibytes: 3 },
        undefined,
      ])
      await volumes.remove('a')
      await volumes.remove('a')
      expect((await volumes.list()).map(({ name }) => name)).toEqual(['b'])
    })

    it('records beside a disk in a pool which host has it, and lets one of several change that', async () => {
      const other = await world.openOther()
      const [pool = ''] = volumes.pools
      await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
      await volumes.create({ name: 'own', sizeGibibytes: 1 })
      const alpha = { node: 'alpha', bootId: 'boot of alpha' }
      const beta = { node: 'beta', bootId: 'boot of beta' }
      const owners = async () => [await volumes.ownerOf('a'), await other.ownerOf('a', pool)]
      expect([await owners(), await volumes.ownerOf('own')]).toEqual([[undefined, undefined], undefined])
      await other.adopt('a', pool)
      const taken = await Promise.all([
        volumes.changeOwner('a', undefined, alpha),
        other.changeOwner('a', undefined, beta),
      ])
      expect(taken.toSorted()).toEqual([false, true])
      const [winner, loser] = taken[0] === true ? [alpha, beta] : [beta, alpha]
      expect(await owners()).toEqual([winner, winner])
      expect(await volumes.changeOwner('a', loser, undefined)).toBe(false)
      volumes = await world.open()
      expect([await volumes.changeOwner('a', winner, loser), await owners()]).toEqual([true, [loser, loser]])
      expect([await other.changeOwner('a', loser, undefined), await owners()]).toEqual([true, [undefined, undefined]])
      expect([await volumes.changeOwner('own', undefined, alpha), await volumes.ownerOf('own')]).toEqual([
        true,
        undefined,
      ])
      await volumes.changeOwner('a', undefined, alpha)
      await volumes.remove('a')
      expect(await other.ownerOf('a', pool)).toBeUndefined()
      await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
      expect(await owners()).toEqual([undefined, undefined])
    })

    it('keeps points of a volume once, in the volume, and makes others from them', async () => {
      const other = await world.openOther()
      for (const pool of [undefined, volumes.pools[0] ?? '']) {
        const [a, b] = pool === undefined ? ['a', 'b'] : ['pa', 'pb']
        await volumes.create({ name: a, sizeGibibytes: 1, ...defined({ pool }) })
        expect([await volumes.snapshots(a), await volumes.snapshots('nobody')]).toEqual([[], []])
        await volumes.takeSnapshot(a, 's1')
        await volumes.grow(a, 2)
        await volumes.takeSnapshot(a, 's1', world.takeFrozen)
        await volumes.takeSnapshot(a, 's2', world.takeFrozen)
        const [s1, s2] = [
          { name: 's1', sizeGibibytes: 1, isFrozen: false },
          { name: 's2', sizeGibibytes: 2, isFrozen: true },
        ]
        volumes = await world.open()
        expect([await volumes.snapshots(a), (await volumes.inspect(a))?.sizeGibibytes]).toEqual([[s1, s2], 2])
        if (pool !== undefined) {
          await other.adopt(a, pool)
          expect(await other.snapshots(a)).toEqual([s1, s2])
        }
        await volumes.create({ name: b, sizeGibibytes: 3, snapshotOf: { volume: a, pool, snapshot: 's1' } })
        expect([await volumes.inspect(b), await volumes.snapshots(b)]).toEqual([{ name: b, sizeGibibytes: 3 }, []])
        const lost = { volume: a, pool, snapshot: 'nobody' }
        await expect(volumes.create({ name: 'c', sizeGibibytes: 3, snapshotOf: lost })).rejects.toThrow(SourceLost)
        await volumes.removeSnapshot(a, 's1')
        await volumes.removeSnapshot(a, 's1')
        expect([await volumes.snapshots(a), await volumes.inspect('c')]).toEqual([[s2], undefined])
        await volumes.remove(a)
        await volumes.create({ name: a, sizeGibibytes: 1, ...defined({ pool }) })
        expect(await volumes.snapshots(a)).toEqual([])
      }
      await expect(volumes.takeSnapshot('nobody', 's1')).rejects.toThrow('not here')
    })

    it('shares disks in the pool with the hosts that have mounted it, and other disks with nobody', async () => {
      const other = await world.openOther()
      const [pool = ''] = volumes.pools
      expect(other.pools).toEqual([pool])
      const a = {
        name: 'a',
        sizeGibibytes: 2,
        source: { name: world.template.name, version: world.template.version },
        pool,
      }
      await volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template, pool })
      await volumes.create({ name: 'mine', sizeGibibytes: 1 })
      expect([
        await other.isInPool('a', pool),
        await other.isInPool('mine', pool),
        await other.isInPool('a', 'another'),
        await other.inspect('a'),
      ]).toEqual([true, false, false, undefined])
      await other.adopt('a', pool)
      await other.adopt('mine', pool)
      expect([await other.inspect('a'), await other.inspect('mine')]).toEqual([a, undefined])
      expect(await other.pathOf('a')).toBe(await volumes.pathOf('a'))
      await other.grow('a', 3)
      expect(await volumes.inspect('a')).toEqual({ ...a, sizeGibibytes: 3 })

      await volumes.release('a')
      await volumes.release('mine')
      expect([await volumes.list(), await volumes.inspect('a'), await volumes.inspect('mine')]).toEqual([
        [],
        undefined,
        undefined,
      ])
      expect(await other.inspect('a')).toEqual({ ...a, sizeGibibytes: 3 })
      await other.remove('a')
      expect([await other.inspect('a'), await other.isInPool('a', pool)]).toEqual([undefined, false])
      await expect(volumes.create({ name: 'b', sizeGibibytes: 1, pool: 'another' })).rejects.toThrow('not mounted')
    })

    it('reports a disk that others have removed from the pool, so that it can be released', async () => {
      const other = await world.openOther()
      const [pool = ''] = volumes.pools
      await volumes.create({ name: 'a', sizeGibibytes: 1, pool })
      await other.adopt('a', pool)
      await volumes.remove('a')
      expect([await other.inspect('a'), await other.list()]).toEqual([
        undefined,
        [{ name: 'a', sizeGibibytes: 1, pool }],
      ])
      await other.release('a')
      expect(await other.list()).toEqual([])
    })

    it('lets another host copy a disk, for as long as it serves it, and nobody without the key', async () => {
      const key = 'c3'.repeat(32)
      const other = await world.openOther()
      await volumes.create({ name: 'a', sizeGibibytes: 1, source: world.template })
      const at = await volumes.serve('a', key)
      expect(volumes.servedAt('a')).toEqual(at)
      const origin = { name: world.template.name, version: world.template.version }
      await expect(
        other.create({ name: 'a', sizeGibibytes: 1, from: { ...at, key: 'd4'.repeat(32) } }),
      ).rejects.toThrow()
      expect(await other.inspect('a')).toBeUndefined()
      await other.create({ name: 'a', sizeGibibytes: 1, origin, from: { ...at, key } })
      expect(await other.inspect('a')).toEqual({ name: 'a', sizeGibibytes: 1, source: origin })
      await volumes.stopServing('a')
      expect(volumes.servedAt('a')).toBeUndefined()
      await expect(other.create({ name: 'b', sizeGibibytes: 1, from: { ...at, key } })).rejects.toThrow()
      await expect(volumes.serve('nobody', key)).rejects.toThrow('not here')
    })
  })
}
