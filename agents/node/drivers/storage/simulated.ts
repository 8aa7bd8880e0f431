/** Volumes that are only remembered. The map is the simulated host's disk: it outlives the agents that use it. */
import type { HeldVolume, VolumeStore } from './volume-store.ts'

export function simulatedVolumes(held: Map<string, HeldVolume>): VolumeStore {
  return {
    list: async () => [...held.values()],
    inspect: async (name) => held.get(name),
    async create({ name, sizeGibibytes, source }) {
      if (!held.has(name)) held.set(name, { name, sizeGibibytes, ...(source === undefined ? {} : { source: { name: source.name, version: source.version } }) })
    },
    async grow(name, sizeGibibytes) {
      const volume = held.get(name)
      if (volume !== undefined && volume.sizeGibibytes < sizeGibibytes) held.set(name, { ...volume, sizeGibibytes })
    },
    remove: async (name) => void held.delete(name),
    pathOf: (name) => `/simulated/${name}`,
  }
}
