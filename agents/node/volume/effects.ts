/** The effects of the plan for Volumes. Each may be repeated, even when it has happened completely before. A disk is
 *  never changed while a guest may have it open. */
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import type { Caches } from '../../../kit/kube/caches.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Logger } from '../../../kit/sys/log.ts'
import { Instance, type VolumeSpec, type VolumeStatus } from '../../../resources/instance/index.ts'
import type { BackupWork, WorkProgress } from '../backup/work.ts'
import { hasGuestEnded, type Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import type { NewVolume, VolumeStore } from '../drivers/storage/volume-store.ts'
import type { ImageStore } from '../images/image-store.ts'
import type { TemplateStore } from '../images/template-store.ts'
import type { KeyedMutex } from '../../../kit/sys/mutex.ts'
import type { Ledger } from '../ledger.ts'
import { readMoveKey } from '../secrets.ts'
import { making, noteCurrent, noteMade, noteServed, noteSnapshots, removing } from './bytes.ts'
import type { Copies } from './copies.ts'
import type { Ownership } from './ownership.ts'
import type { VolumeEffects, VolumeObject } from './plan.ts'
import { removeInGuest, takeInGuest } from './snapshots-in-guest.ts'

export interface VolumeOptions {
  readonly store: Store
  readonly caches: Caches
  readonly hypervisor: Hypervisor
  readonly volumes: VolumeStore
  readonly images: TemplateStore
  readonly customImages: ImageStore
  readonly ledger: Pick<Ledger, 'get' | 'bytesOf' | 'putBytes'>
  readonly diskLocks: KeyedMutex
  readonly ownership: Ownership
  /** Absent on hosts without a place for backups. */
  readonly backups?: Pick<BackupWork, 'fill'>
  readonly clock: Clock
  readonly log: Logger
  readonly namespace: string
}

export interface VolumeParts extends VolumeOptions {
  readonly copies: Copies
  /** The operation for which each served disk is served. */
  readonly servedFor: Map<string, string>
}

type Handlers = {
  readonly [Name in keyof VolumeEffects]: (input: VolumeEffects[Name], volume: VolumeObject) => Promise<void>
}

type UserOptions = Pick<VolumeOptions, 'caches' | 'hypervisor' | 'volumes' | 'namespace'> & {
  readonly ledger: Pick<Ledger, 'get'>
}

/** The guest that has the disk open, or may open it at any moment. A guest without an object counts too. */
export async function volumeUser(
  { caches, hypervisor, volumes, ledger, namespace }: UserOptions,
  volume: string,
): Promise<string | undefined> {
  for (const { metadata, spec } of caches.of(Instance).inNamespace(namespace)) {
    const { name } = metadata
    const isUser =
      spec.disks.some((disk) => disk.volume === volume) || ledger.get(name)?.volumes?.includes(volume) === true
    const guest = await hypervisor.inspect(name)
    if (guest !== undefined && (isUser || guest.disks.some((path) => volumes.nameOf(path) === volume))) return name
  }
  const guests = await hypervisor.list()
  return guests.find(
    ({ name, state, disks }) =>
      !hasGuestEnded({ state }) &&
      (ledger.get(name)?.volumes?.includes(volume) === true || disks.some((path) => volumes.nameOf(path) === volume)),
  )?.name
}

/** Does the work while no guest of any host can start to use the disk. Throws Unavailable when one has it. */
const whileUnused = (parts: VolumeParts, name: string, work: () => Promise<void>): Promise<void> =>
  whileUnusedHere(parts, name, async () => {
    await parts.ownership.requireFree(name)
    await work()
  })

const whileUnusedHere = (parts: VolumeOptions, name: string, work: () => Promise<void>): Promise<void> =>
  parts.diskLocks.run(name, async () => {
    const user = await volumeUser(parts, name)
    if (user !== undefined) throw new Unavailable(`disk ${name}, which guest ${user} has`, undefined)
    await work()
  })

/** Stops holding the disk. Its data stay in a pool, even if another host has them. */
export const releaseUnused = (options: VolumeOptions, name: string): Promise<void> =>
  whileUnusedHere(options, name, async () => {
    await options.ownership.give(name)
    await options.volumes.release(name)
  })

/** Address and operation of the serving; undefined when the disk is not served. */
export function servingOf({ servedFor, volumes }: VolumeParts, name: string): VolumeStatus['serving'] {
  const [id, at] = [servedFor.get(name), volumes.servedAt(name)]
  return id === undefined || at === undefined ? undefined : { id, ...at }
}

const draftOf = (name: string, { sizeGibibytes, origin, pool }: VolumeSpec): NewVolume => ({
  name,
  sizeGibibytes,
  ...defined({ origin, pool }),
})

/** The handlers by name of the effect. */
export const volumeEffects = (parts: VolumeParts): Handlers => ({
  ...makingEffects(parts),
  ...snapshotEffects(parts),
  ...servingEffects(parts),
  ...endingEffects(parts),
})

type MakingEffect = 'prepare' | 'create' | 'adopt' | 'noteMade' | 'noteCurrent' | 'copy' | 'copySnapshot' | 'fill'

/** Creates the disk completely or not at all, unless another host has it in the pool. */
async function make(
  parts: VolumeParts,
  { metadata, spec }: VolumeObject,
  content: Partial<NewVolume>,
  signal?: AbortSignal,
) {
  await parts.ownership.requireFree(metadata.name, spec.pool)
  const volume = { ...draftOf(metadata.name, spec), ...content }
  await making(parts, 'volume', metadata, () => parts.volumes.create(volume, signal))
}

const makingEffects = (parts: VolumeParts): Pick<Handlers, MakingEffect> => ({
  async prepare(_input, { spec }) {
    if (spec.source?.kind === 'template') parts.images.prepare(spec.source.name)
  },
  async create(_input, volume) {
    const { images, customImages, log } = parts
    const { source } = volume.spec
    const custom = source?.kind === 'image' ? await customImages.inspect(source.name) : undefined
    if (source?.kind === 'image' && custom === undefined) throw new Unavailable(`image ${source.name}`, undefined)
    const image = source?.kind === 'template' ? await images.newest(source.name) : undefined
    if (image !== undefined && image.is !== 'ready') throw new Unavailable(`template ${source?.name}`, undefined)
    await make(parts, volume, defined({ source: image?.image, copyOf: custom?.path, origin: custom?.origin }))
    log.info('volume created', { volume: volume.metadata.name })
  },
  async adopt({ pool }, { metadata: { name } }) {
    await parts.volumes.adopt(name, pool)
    parts.log.info('volume taken over', { volume: name, pool })
  },
  async noteMade(_input, { metadata }) {
    noteMade(parts, 'volume', metadata)
  },
  async noteCurrent(_input, { metadata: { name } }) {
    noteCurrent(parts, name)
  },
  async copySnapshot(_input, copy) {
    const { name } = copy.metadata
    const { source } = copy.spec
    if (source?.kind !== 'snapshot' || source.volume === undefined) return
    const { volume, pool, name: snapshot } = source
    await parts.copies.begin(name, `${volume}/${snapshot}`, async (signal) => {
      await make(parts, copy, { snapshotOf: { volume, pool, snapshot } }, signal)
      parts.log.info('volume copied from a snapshot', { volume: name })
    })
  },
  async copy({ host, port }, volume) {
    const { name } = volume.metadata
    const { copyFrom } = volume.spec
    if (copyFrom === undefined) return
    const key = await readMoveKey(parts.store, parts.namespace, copyFrom.secretName)
    await parts.copies.begin(name, `${host}:${port}`, async (signal) => {
      await make(parts, volume, { from: { host, port, key } }, signal)
      parts.log.info('volume copied', { volume: name })
    })
  },
  async fill(_input, volume) {
    const { backups, log } = parts
    const { name } = volume.metadata
    const { name: backup, accountId, secretName, objectStorageZone } = volume.spec.source ?? {}
    if (backup === undefined || accountId === undefined || secretName === undefined || backups === undefined) return
    await parts.copies.begin(name, backup, async (signal, report) => {
      const onProgress = (progress: WorkProgress) => report(backupProgress(backup, progress))
      const place = { accountId, secretName, objectStorageZone }
      const fill = (path: string) => backups.fill({ backup, ...place }, path, { signal, onProgress })
      await make(parts, volume, { fill }, signal)
      log.info('volume filled from a backup', { volume: name, backup })
    })
  },
})

/** Text for people: how much of a backup has been read. */
export const backupProgress = (backup: string, { bytesDone = 0, bytesTotal = 0 }: WorkProgress): string =>
  `${tenthsOf(bytesDone, bytesTotal)} % of ${bytesTotal} bytes of backup ${backup} are here`

/** In percent, in steps of 10, because not every chunk is worth a report. */
const tenthsOf = (done: number, total: number): number => (total === 0 ? 0 : Math.floor((done / total) * 10) * 10)

/** Does the work while the disk's guest cannot change. The guest is undefined or one of this host. */
const whileSettled = (parts: VolumeParts, name: string, work: (user: string | undefined) => Promise<void>) =>
  parts.diskLocks.run(name, async () => {
    const user = await volumeUser(parts, name)
    if (user === undefined) {
      await parts.ownership.requireFree(name)
      await parts.volumes.stopServing(name)
    }
    await work(user)
  })

/** Only a guest's QEMU changes a disk that the guest has open. Any other disk is changed while no guest can start to
 *  use it. */
const snapshotEffects = (parts: VolumeParts): Pick<Handlers, 'takeSnapshot' | 'removeSnapshot' | 'noteSnapshots'> => {
  const knownOf = (name: string) => parts.ledger.bytesOf('volume', name)?.snapshots ?? []
  const { volumes, hypervisor, log } = parts
  const change = (name: string, work: (user: string | undefined) => Promise<void>) => whileSettled(parts, name, work)
  return {
    async takeSnapshot({ name: snapshot }, { metadata: { name } }) {
      await change(name, (user) =>
        volumes.takeSnapshot(name, snapshot, user === undefined ? undefined : takeInGuest(hypervisor, user)),
      )
      noteSnapshots(parts, name, [...new Set([...knownOf(name), snapshot])])
      log.info('snapshot taken', { volume: name, snapshot })
    },
    async removeSnapshot({ name: snapshot }, { metadata: { name } }) {
      await change(name, (user) =>
        volumes.removeSnapshot(name, snapshot, user === undefined ? undefined : removeInGuest(hypervisor, user)),
      )
      noteSnapshots(
        parts,
        name,
        knownOf(name).filter((known) => known !== snapshot),
      )
      log.info('snapshot removed', { volume: name, snapshot })
    },
    async noteSnapshots({ names }, { metadata: { name } }) {
      noteSnapshots(parts, name, names)
    },
  }
}

const servingEffects = (parts: VolumeParts): Pick<Handlers, 'grow' | 'serve' | 'stopServing' | 'keep'> => {
  const { store, volumes, hypervisor, servedFor, log, namespace } = parts
  /** Only the guest that has a disk open can grow it. */
  const growIn = (user: string) => async (path: string, sizeGibibytes: number) => {
    if (!(await hypervisor.growDisk(user, path, sizeGibibytes)))
      throw new Unavailable(`guest ${user}, which has disk ${path}`, undefined)
  }
  return {
    async grow(_input, { metadata: { name }, spec }) {
      await whileSettled(parts, name, (user) =>
        volumes.grow(name, spec.sizeGibibytes, user === undefined ? undefined : growIn(user)),
      )
      log.info('volume grown', { volume: name, size_gibibytes: spec.sizeGibibytes })
    },
    async serve({ id }, { metadata: { name, generation = 0 }, spec: { serve } }) {
      if (serve?.id !== id) return
      // Recorded first: once another host may have the data, an older object of the disk starts nothing here.
      noteServed(parts, name, { id, generation })
      const key = await readMoveKey(store, namespace, serve.secretName)
      await whileUnused(parts, name, async () => void (await volumes.serve(name, key)))
      servedFor.set(name, id)
      log.info('volume served', { volume: name })
    },
    async keep(_input, { metadata: { name } }) {
      noteServed(parts, name, undefined)
    },
    async stopServing(_input, { metadata: { name } }) {
      await volumes.stopServing(name)
      servedFor.delete(name)
    },
  }
}

const endingEffects = (parts: VolumeParts): Pick<Handlers, 'remove' | 'release' | 'retain'> => {
  const { volumes, copies, servedFor, log } = parts
  return {
    async retain(_input, { metadata: { name } }) {
      await copies.end(name)
      await volumes.stopServing(name)
      servedFor.delete(name)
      log.warn('the removal of a disk that was in use here is refused; it stays', { volume: name })
    },
    async remove(_input, { metadata, spec: { pool } }) {
      const { name } = metadata
      await copies.end(name)
      // Also works when this host has never held the disk: it removes the data for a host that was lost.
      if (pool !== undefined && (await volumes.inspect(name)) === undefined) await volumes.adopt(name, pool)
      await whileUnused(parts, name, () => removing(parts, 'volume', metadata, () => volumes.remove(name)))
      log.info('volume removed', { volume: name })
    },
    async release(_input, { metadata }) {
      const { name } = metadata
      await copies.end(name)
      await removing(parts, 'volume', metadata, () => releaseUnused(parts, name))
      log.info('volume left to its pool', { volume: name })
    },
  }
}
