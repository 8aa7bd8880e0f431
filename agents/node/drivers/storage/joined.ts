/** Combines the host's own disks and its pool in a Ceph cluster into one store. Each volume belongs to the store that
 *  holds it. */
import type { VolumeStore } from './volume-store.ts'

export interface RemoteStore extends VolumeStore {
  /** Whether this store has the volume, even a half-created one. */
  holds(name: string): Promise<boolean>
}

export function joinStores(local: VolumeStore, remote: RemoteStore): VolumeStore {
  const of = async (name: string) => ((await remote.holds(name)) ? remote : local)
  const having = (pool: string | undefined) => (pool !== undefined && remote.pools.includes(pool) ? remote : local)
  return {
    get pools() {
      return [...local.pools, ...remote.pools]
    },
    list: async () => (await Promise.all([local.list(), remote.list()])).flat(),
    inspect: async (name) => (await of(name)).inspect(name),
    async create(volume, signal) {
      const { snapshotOf, ...draft } = volume
      if ((await (await of(volume.name)).inspect(volume.name)) !== undefined) return
      const [to, from] = [having(volume.pool), having(snapshotOf?.pool)]
      if (snapshotOf === undefined || from === to) return to.create(volume, signal)
      await to.create({ ...draft, write: (path, stop) => from.copySnapshot(snapshotOf, path, stop) }, signal)
    },
    isInPool: (name, pool) => having(pool).isInPool(name, pool),
    adopt: (name, pool) => having(pool).adopt(name, pool),
    grow: async (name, ...more) => (await of(name)).grow(name, ...more),
    snapshots: async (name) => (await of(name)).snapshots(name),
    roomOfSnapshots: async (name) => (await of(name)).roomOfSnapshots(name),
    takeSnapshot: async (name, ...more) => (await of(name)).takeSnapshot(name, ...more),
    removeSnapshot: async (name, ...more) => (await of(name)).removeSnapshot(name, ...more),
    copySnapshot: (of, ...more) => having(of.pool).copySnapshot(of, ...more),
    remove: async (name) => (await of(name)).remove(name),
    release: async (name) => (await of(name)).release(name),
    serve: async (name, key) => (await of(name)).serve(name, key),
    stopServing: (name) => local.stopServing(name), // one server serves the disks of both
    servedAt: (name) => local.servedAt(name),
    pathOf: async (name) => (await of(name)).pathOf(name),
    nameOf: (path) => remote.nameOf(path) ?? local.nameOf(path),
    checkedPathOf: async (name) => (await of(name)).checkedPathOf(name),
    ...(remote.removeUnusedTemplates === undefined
      ? {}
      : { removeUnusedTemplates: () => remote.removeUnusedTemplates?.() ?? Promise.resolve([]) }),
    pointsOf: async (name) => (await of(name)).pointsOf(name),
    ownerOf: async (name, pool) => (pool === undefined ? await of(name) : having(pool)).ownerOf(name, pool),
    changeOwner: async (name, ...more) => (await of(name)).changeOwner(name, ...more),
    requireClosed: async (name) => (await of(name)).requireClosed(name),
  }
}
