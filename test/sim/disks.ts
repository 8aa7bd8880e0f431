/** What is on the simulated disks: a number that only grows, because every guest writes to its disks all the time and
 *  remembers what it wrote last. A guest that reads less than that, or boots from less than was ever written, has lost
 *  data. */
import type { HeldVolume, VolumeStore } from '../../agents/node/drivers/storage/volume-store.ts'
import { type ImageContents, newImageContents } from './image-contents.ts'
import type { SimulatedHost } from '../../agents/node/drivers/hypervisor/simulated.ts'
import type { SimulatedGuestRecord } from '../../agents/node/drivers/hypervisor/simulated-guest.ts'

export interface Disks {
  /** The store of a host, with what it does to the data. */
  store(host: string, store: VolumeStore): VolumeStore
  readonly images: ImageContents
  /** What a snapshot keeps; undefined when there was none of that name. */
  pointOf(snapshot: string): number | undefined
  /** The most that was ever written to a volume. */
  writtenTo(volume: string): number
  /** Volumes to which a guest has written. */
  written(): readonly string[]
  /** What was written last to the volume is on some disk. */
  hasNewest(volume: string): boolean
  /** Where the path of a host leads. */
  placeOf(host: string, path: string): string
  /** Every guest that runs writes. Answers the violations that this brought to light. */
  write(hosts: readonly { readonly name: string; readonly machine: SimulatedHost }[]): string[]
  /** What a backup held is on the disk now. */
  overwrite(host: string, volume: HeldVolume, content: number): void
  /** As `overwrite`, of one that is being made. */
  fill(host: string, name: string, content: number): void
  /** What lies where the volume is held, and the most that was ever written to it. */
  contentOf(host: string, volume: HeldVolume): { readonly is: number | undefined; readonly was: number }
}

const PREFIX = '/simulated/'

const placeOf = (host: string, path: string) => (path.slice(PREFIX.length).includes('/') ? path : `${host}:${path}`)
const volumeOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)
const pathOf = (name: string, pool: string | undefined) => `${PREFIX}${pool === undefined ? name : `${pool}/${name}`}`

export function newDisks(): Disks {
  /** By where it lies: the pool's path is the same on every host, another is of its host. */
  const contents = new Map<string, number>()
  /** By life and disk. */
  const memories = new Map<string, number>()
  /** Where it lies, by the host and port that it is served at. */
  const served = new Map<string, string>()
  /** What each snapshot keeps, by where its disk lies and its name. */
  const points = new Map<string, number>()
  /** The most that was ever written, by volume. */
  const written = new Map<string, number>()
  /** What disks that are being made begin as, by host and name. */
  const filled = new Map<string, number>()
  const images = newImageContents((host, path) => {
    const content = contents.get(placeOf(host, path))
    return content === undefined ? undefined : { volume: volumeOf(path), content }
  })

  function writeBy(host: string, { name, executionId, disks, transfer }: SimulatedGuestRecord): string[] {
    return disks.flatMap((path) => {
      const [place, volume] = [placeOf(host, path), volumeOf(path)]
      // A disk that comes to another tier while its guest runs lies under another path from then on.
      const memoryKey = `${executionId} ${volume}`
      const memory = memories.get(memoryKey)
      // A disk that was copied with its guest is whole when the guest arrives; where it lies is new.
      const isCarried =
        transfer?.role === 'receive' &&
        transfer.diskPort !== undefined &&
        memory !== undefined &&
        (contents.get(place) ?? 0) === 0
      const content = isCarried ? memory : contents.get(place)
      if (content === undefined) return [`guest ${name} runs on ${host} on a disk that is gone`]
      const expected = memory ?? written.get(volume) ?? 0
      contents.set(place, expected + 1)
      memories.set(memoryKey, expected + 1)
      written.set(volume, expected + 1)
      return content < expected ? [`the disk of guest ${name} on ${host} went back from ${expected} to ${content}`] : []
    })
  }

  return {
    store: (host, store) => ({
      ...store,
      async create(volume, signal) {
        const wasHere = (await store.inspect(volume.name)) !== undefined
        await store.create(volume, signal)
        if (wasHere) return
        const { snapshotOf } = volume
        if (snapshotOf !== undefined) {
          const place = placeOf(host, pathOf(snapshotOf.volume, snapshotOf.pool))
          const point = points.get(`${place} ${snapshotOf.snapshot}`)
          if (point === undefined) throw new Error(`nothing was kept as snapshot ${snapshotOf.snapshot}`)
          contents.set(placeOf(host, pathOf(volume.name, volume.pool)), point)
          written.set(volume.name, point)
          return
        }
        if (volume.copyOf !== undefined) {
          const image = images.of(host, volumeOf(volume.copyOf))
          if (image === undefined) throw new Error(`there is no image ${volume.copyOf}`)
          contents.set(placeOf(host, pathOf(volume.name, volume.pool)), image.content)
          written.set(volume.name, written.get(volume.name) ?? image.content)
          return
        }
        const beginning = filled.get(`${host} ${volume.name}`) ?? 0
        if (volume.fill !== undefined) written.set(volume.name, beginning)
        const from =
          volume.from === undefined
            ? beginning
            : (contents.get(served.get(`${volume.from.host}:${volume.from.port}`) ?? '') ?? 0)
        contents.set(placeOf(host, pathOf(volume.name, volume.pool)), from)
      },
      async takeSnapshot(name, snapshot, by) {
        const wasThere = (await store.snapshots(name)).some((known) => known.name === snapshot)
        await store.takeSnapshot(name, snapshot, by)
        const place = placeOf(host, pathOf(name, (await store.inspect(name))?.pool))
        if (!wasThere) points.set(`${place} ${snapshot}`, contents.get(place) ?? 0)
      },
      async copySnapshot(of, to, signal) {
        await store.copySnapshot(of, to, signal)
        const content = points.get(`${placeOf(host, pathOf(of.volume, of.pool))} ${of.snapshot}`) ?? 0
        images.wrote(host, to, { volume: of.volume, content })
      },
      async serve(name, key) {
        const at = await store.serve(name, key)
        served.set(`${at.host}:${at.port}`, placeOf(host, pathOf(name, (await store.inspect(name))?.pool)))
        return at
      },
      async remove(name) {
        const held = await store.inspect(name)
        await store.remove(name)
        if (held !== undefined) contents.delete(placeOf(host, pathOf(name, held.pool)))
      },
      async release(name) {
        const held = await store.inspect(name)
        await store.release(name)
        if (held !== undefined && held.pool === undefined) contents.delete(placeOf(host, pathOf(name, undefined)))
      },
    }),
    overwrite(host, { name, pool }, content) {
      contents.set(placeOf(host, pathOf(name, pool)), content)
      written.set(name, content)
    },
    fill(host, name, content) {
      filled.set(`${host} ${name}`, content)
      images.wrote(host, name, { volume: undefined, content })
    },
    images,
    pointOf: (snapshot) => [...points].find(([key]) => key.endsWith(` ${snapshot}`))?.[1],
    writtenTo: (volume) => written.get(volume) ?? 0,
    written: () => [...written].filter(([, content]) => content > 0).map(([volume]) => volume),
    hasNewest: (volume) =>
      [...contents].some(([place, content]) => volumeOf(place) === volume && content >= (written.get(volume) ?? 0)),
    placeOf,
    write: (hosts) => hosts.flatMap(({ name, machine }) => machine.running().flatMap((guest) => writeBy(name, guest))),
    contentOf: (host, { name, pool }) => ({
      is: contents.get(placeOf(host, pathOf(name, pool))),
      was: written.get(name) ?? 0,
    }),
  }
}
