/** Hosts that share a pool of a real Ceph cluster, as the contract of volume stores asks for them. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type CephPool, openCephPool } from '../../../agents/node/drivers/storage/ceph-pool.ts'
import { openDiskServer } from '../../../agents/node/drivers/storage/disk-server.ts'
import { joinStores } from '../../../agents/node/drivers/storage/joined.ts'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { openRbdVolumes } from '../../../agents/node/drivers/storage/rbd.ts'
import { readRbdPath } from '../../../agents/node/drivers/storage/rbd-path.ts'
import type { VolumeStore } from '../../../agents/node/drivers/storage/volume-store.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import type { TestCeph } from '../../ceph.ts'
import { eventually } from '../../eventually.ts'

const CLOSED_MILLISECONDS = 60_000

export async function openCephWorld(ceph: TestCeph, imageFolder: string) {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-ceph-'))
  await mkdir(imageFolder, { recursive: true })
  const { pool: name, user, configuration: configurationFile, keyring: keyringFile } = ceph
  const login = { pool: name, user, configurationFile, keyringFile }
  const opened: VolumeStore[] = []
  const openPool = (host: string, clock: Clock = systemClock): Promise<CephPool> =>
    openCephPool({ ...login, folder: join(folder, host, 'ceph'), clock, random: systemRandom })
  const openHost = async (host: string) => {
    const server = await openDiskServer({ folder: join(folder, host, 'served'), host: '127.0.0.1', clock: systemClock })
    const store = joinStores(
      await openQcow2Volumes({ folder: join(folder, host, 'volumes'), server, imageFolder }),
      await openRbdVolumes({ folder: join(folder, host, 'rbd'), server, pools: [await openPool(host)] }),
    )
    opened.push(store)
    return store
  }
  return {
    folder,
    login,
    openPool,
    openHost,
    images: async (): Promise<readonly string[]> => JSON.parse(await ceph.rbd('ls', '--format', 'json', name)),
    takeFrozen: async (path: string, labelOf: (isFrozen: boolean) => string) =>
      void (await ceph.rbd('snap', 'create', `${name}/${readRbdPath(path)?.image}@${labelOf(true)}`)),
    async close() {
      for (const store of opened) for (const { name: volume } of await store.list()) await store.stopServing(volume)
      const pool = await openPool('close')
      // A program that was killed has its image open until the cluster misses it, after half a minute.
      for (const image of await this.images())
        await eventually(
          `image ${image} to go`,
          async () => {
            await pool.remove(image)
            return true
          },
          CLOSED_MILLISECONDS,
        )
      await rm(folder, { recursive: true })
    },
  }
}
