/** Backups of real disks. When the storage has snapshots, the backup reads one of those. Otherwise it uses a point in
 *  QEMU when a guest has the disk open, and qemu-nbd for any other disk. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { defined } from '../../../domain/defined.ts'
import { Unavailable } from '../../../domain/problem.ts'
import { isBucket, openStoreAt } from '../../../kit/chunks/locate.ts'
import type { ChunkManifest } from '../../../kit/chunks/manifest.ts'
import { openRepository, type Repository, restoreDisk, verifyBackup } from '../../../kit/chunks/repository.ts'
import type { ObjectStore } from '../../../kit/chunks/object-store.ts'
import { openS3Store } from '../../../kit/chunks/s3-store.ts'
import { DamagedObject } from '../../../kit/chunks/seal.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import type { Random } from '../../../kit/sys/random.ts'
import type { BackupJobSpec } from '../../../resources/backup-job/index.ts'
import type { Hypervisor } from '../drivers/hypervisor/hypervisor.ts'
import type { DiskPoints, VolumeStore } from '../drivers/storage/volume-store.ts'
import { DiskReads } from '../disk-reads.ts'
import type { KeyedMutex } from '../../../kit/sys/mutex.ts'
import { ProgramFailed, runProgram } from '../run-program.ts'
import { readBackupKey, readBackupPlace } from '../secrets.ts'
import { openBandwidth, throttled } from './bandwidth.ts'
import { bitmapOf, type Changes, changesSince, isBackupBitmap } from './bitmaps.ts'
import { closeGuestPoint, openGuestPoint } from './guest-point.ts'
import { ALLOCATION, bitmapContext, type NbdDisk, openNbd, type DiskRange } from './nbd.ts'
import { withServedDisk } from './served-disk.ts'
import { sweepChunks } from './sweep.ts'
import { type BackupWork, HalfWritten, type WorkOptions, type WorkResult } from './work.ts'
import { copyBackup, writeBackup } from './write-backup.ts'
import { isThere } from '../../../kit/sys/is-there.ts'

export interface DiskWorkOptions {
  /** A folder, or the URL of a bucket. When undefined, only the object storage of zones is available. */
  readonly location: string | undefined
  /** Locations of other zones, by zone. Backups are copied from there. */
  readonly sources?: Readonly<Record<string, string>>
  /** Holds the credentials of a bucket. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly bytesPerSecond: number
  /** For files that are needed only during a backup. */
  readonly folder: string
  readonly hypervisor: Pick<Hypervisor, 'monitorOf' | 'inspect'>
  readonly volumes: VolumeStore
  /** Held while a guest gets a disk, and while a disk is changed without a guest. */
  readonly diskLocks: KeyedMutex
  /** The guest that has the disk open, or may open it at any moment. */
  readonly userOf: (volume: string) => Promise<string | undefined>
  /** Throws Unavailable while another host uses the disk. */
  readonly requireFree?: (volume: string) => Promise<void>
  readonly store: Store
  /** Kubernetes namespace of the node. */
  readonly namespace: string
  readonly clock: Clock
  readonly random: Random
}

/** The longest time that the platform allows for a backup: the deadline of its operation. */
const LONGEST_BACKUP_SECONDS = 12 * 3_600

const DiskInfo = z.looseObject({
  'format-specific': z
    .looseObject({
      data: z.looseObject({
        bitmaps: z.array(z.looseObject({ name: z.string(), flags: z.array(z.string()) })).default([]),
      }),
    })
    .optional(),
})

/** The folder must exist. */
export function openDiskWork(options: DiskWorkOptions): BackupWork {
  const { location, sources = {}, environment, bytesPerSecond, clock, random, store, namespace } = options
  const bandwidth = openBandwidth(bytesPerSecond, clock)
  const reads = new DiskReads()
  const placeOf = (
    { accountId, objectStorageZone: zone }: Place,
    at: string | undefined = location,
  ): Promise<OpenPlace> | OpenPlace => {
    if (zone !== undefined) return openObjectPlace(options, { accountId, zone })
    if (at === undefined) throw new Error('this host has no separate place for backups')
    return { store: openStoreAt({ location: at, environment, clock }, accountId), ...kindOfLocation(at) }
  }
  const repositoryOf = async (
    job: Place & Pick<BackupJobSpec, 'secretName'>,
    signal?: AbortSignal,
    at?: string,
  ): Promise<PlacedRepository> => {
    const { store: objects, ...kind } = await placeOf(job, at)
    const repository = openRepository({
      store: throttled(objects, bandwidth),
      key: await readBackupKey(store, namespace, job.secretName),
      clock,
      random,
      ...defined({ signal }),
    })
    return { ...repository, kind }
  }
  const run = {
    write: async (repository: PlacedRepository, job: BackupJobSpec, work: WorkOptions) => ({
      ...(await write({ ...options, reads }, repository, job, work)),
      ...repository.kind,
    }),
    async copy(repository: PlacedRepository, job: BackupJobSpec, work: WorkOptions) {
      const { zone = '', name: source = '', objectStorageZone } = job.copyOf ?? {}
      const at = sources[zone]
      if (at === undefined && objectStorageZone === undefined)
        throw new Error(`this host does not reach the backups of zone ${zone}`)
      const from = await repositoryOf({ ...job, objectStorageZone }, work.signal, at)
      const { kind } = repository
      return { ...(await copy({ clock }, { from, source, repository }, job, work)), ...kind, isSameHost: false }
    },
    restore: (repository: Repository, job: BackupJobSpec, work: WorkOptions) => restore(options, repository, job, work),
    verify,
    async remove(repository: Repository, { backup, completeBackups }: BackupJobSpec) {
      await repository.removeManifest(backup.name)
      if (completeBackups !== undefined)
        await sweepChunks({ repository, backups: completeBackups, longestBackupSeconds: LONGEST_BACKUP_SECONDS, clock })
      return {}
    },
  }
  return {
    run: async (job, work) => run[job.work](await repositoryOf(job, work.signal), job, work),
    async abandon(job) {
      if (job.work === 'restore') await rm(markOf(options.folder, job), { force: true })
      if (job.work !== 'write' || job.volume === undefined) return
      // Also closes what a complete backup left behind; then nothing remains to change.
      await closePoint(options, job, { isComplete: false })
    },
    async fill(source, path, work) {
      await fill(options, await repositoryOf(source, work.signal), { backup: source.backup, path }, work)
    },
    yieldDisk: (volume) => reads.end(volume),
  }
}

type Place = Pick<BackupJobSpec, 'accountId' | 'objectStorageZone'>
type Kind = Required<Pick<WorkResult, 'target' | 'isSameHost'>>
type PlacedRepository = Repository & { readonly kind: Kind }
type OpenPlace = Kind & { readonly store: ObjectStore }

const kindOfLocation = (location: string): Kind =>
  isBucket(location) ? { target: 'vault', isSameHost: false } : { target: 'zone-object-store', isSameHost: true }

/** The file with the credentials is read each time, because the platform may change it. */
async function openObjectPlace(
  { store, namespace, clock }: Pick<DiskWorkOptions, 'store' | 'namespace' | 'clock'>,
  tenant: { readonly accountId: string; readonly zone: string },
): Promise<OpenPlace> {
  const { url, authority, backend, ...credentials } = await readBackupPlace(store, namespace, tenant)
  const place = new URL(url)
  return {
    store: openS3Store({ url: place, authority, credentials, clock }),
    target: backend === 'rgw' ? 'ceph' : 'zone-object-store',
    isSameHost: isLoopback(place.hostname),
  }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || host.startsWith('127.')

type ReadingOptions = DiskWorkOptions & { readonly reads: DiskReads }

async function write(
  options: ReadingOptions,
  repository: Repository,
  job: BackupJobSpec,
  work: WorkOptions,
): Promise<WorkResult> {
  const { name } = job.backup
  if (await repository.hasManifest(name)) {
    const { sizeBytes, parent } = await repository.getManifest(name)
    await closePoint(options, job, { isComplete: true })
    return {
      sizeBytes,
      ...(parent === undefined ? { fullBecause: 'it was completed by an earlier attempt' } : { parent }),
    }
  }
  const parent = await readParent(repository, job.parent)
  const points = await options.volumes.pointsOf(volumeOf(job))
  const isInUse = (await options.userOf(volumeOf(job))) !== undefined
  const read = points !== undefined ? readFromPoint(points) : isInUse ? readFromGuest : readOffline
  return read(options, job, parent?.backup, work, async (disk, { changes, changed, signal }) => {
    const isIncremental = 'since' in changes
    const manifest = await writeBackup({
      repository,
      point: {
        sizeBytes: disk.sizeBytes,
        read: (offset, length, place) => disk.read(offset, length, place),
        data: await disk.ranges(ALLOCATION),
        changed: await changed(disk),
      },
      backup: name,
      origin: job.storageId,
      parent: isIncremental ? parent : undefined,
      longestBackupSeconds: LONGEST_BACKUP_SECONDS,
      clock: options.clock,
      onProgress: work.onProgress,
      signal,
    })
    const { sizeBytes } = manifest
    return { sizeBytes, ...(isIncremental ? { parent: changes.since } : { fullBecause: changes.fullBecause }) }
  })
}

async function copy(
  { clock }: Pick<DiskWorkOptions, 'clock'>,
  stores: { readonly from: Repository; readonly source: string; readonly repository: Repository },
  { backup: { name }, parent }: BackupJobSpec,
  { onProgress, signal }: WorkOptions,
): Promise<WorkResult> {
  const { repository } = stores
  const { sizeBytes } = (await repository.hasManifest(name))
    ? await repository.getManifest(name)
    : await copyBackup({
        ...stores,
        backup: name,
        parent: await readParent(repository, parent),
        longestBackupSeconds: LONGEST_BACKUP_SECONDS,
        clock,
        onProgress,
        signal,
      })
  return { sizeBytes }
}

/** Undefined when the manifest cannot be read. Then the backup reads everything. */
const readParent = (repository: Repository, parent: string | undefined): Promise<ChunkManifest | undefined> =>
  parent === undefined
    ? Promise.resolve(undefined)
    : repository.getManifest(parent).catch((error: unknown) => {
        if (error instanceof DamagedObject) return undefined
        throw error
      })

interface Point {
  readonly changes: Changes
  /** Undefined when the backup must read everything. */
  readonly changed: (disk: NbdDisk) => Promise<readonly DiskRange[] | undefined>
  readonly signal: AbortSignal
}
type ReadPoint = (
  options: ReadingOptions,
  job: BackupJobSpec,
  parent: string | undefined,
  work: WorkOptions,
  read: (disk: NbdDisk, point: Point) => Promise<WorkResult>,
) => Promise<WorkResult>

const changedBy =
  (bitmap: string | undefined): Point['changed'] =>
  async (disk) =>
    bitmap === undefined ? undefined : disk.ranges(bitmapContext(bitmap))

/** The point is kept until a later backup is complete. It shows what was written since, regardless of who wrote it and
 *  on which host. */
const readFromPoint =
  (points: DiskPoints): ReadPoint =>
  async (options, job, parent, { signal }, read) => {
    const { diskLocks, folder, clock, reads } = options
    const own = bitmapOf(job.backup.name)
    const isFrozen = await diskLocks.run(volumeOf(job), () => takePoint(options, points, job))
    const known = (await points.list()).filter((name) => name !== own)
    const { changes, changed } = await changesTo(points, own, parent, known)
    // The cluster does not report readers, so the read stops when a guest opens the disk. It is retried at the same
    // point.
    const result = await reads.run(volumeOf(job), signal, (both) =>
      withServedDisk({ folder, path: points.pathOf(own), clock }, (disk) =>
        read(disk, { changes, changed: async () => changed, signal: both }),
      ),
    )
    await closePoint(options, job, { isComplete: true })
    return { ...result, isFrozen }
  }

/** Returns whether the file systems of the guest were frozen. Returns false for a point that exists already, because
 *  that is not recorded. */
async function takePoint(
  { hypervisor, userOf }: Pick<DiskWorkOptions, 'hypervisor' | 'userOf'>,
  points: DiskPoints,
  job: BackupJobSpec,
): Promise<boolean> {
  const own = bitmapOf(job.backup.name)
  if ((await points.list()).includes(own)) return false
  const user = await userOf(volumeOf(job))
  const monitor = user === undefined ? undefined : hypervisor.monitorOf(user)
  if (monitor === undefined) {
    await points.take(own)
    return false
  }
  return (await monitor.whileFrozen(() => points.take(own))).isFrozen
}

async function changesTo(
  points: DiskPoints,
  own: string,
  parent: string | undefined,
  known: readonly string[],
): Promise<{ readonly changes: Changes; readonly changed: readonly DiskRange[] | undefined }> {
  const changes = changesSince(
    parent,
    known.map((name) => ({ name, isLost: false })),
  )
  if (!('since' in changes)) return { changes, changed: undefined }
  try {
    return { changes, changed: await points.changed(bitmapOf(changes.since), own) }
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error
    return {
      changes: { fullBecause: `the storage does not say what has changed: ${error.message}` },
      changed: undefined,
    }
  }
}

const readFromGuest: ReadPoint = async (options, job, parent, { signal }, read) => {
  const found = await guestPointOptions(options, job)
  if (found === undefined || found.isMoving) throw new Unavailable('the guest that has the disk', undefined)
  const { changes, bitmap, exportName, isFrozen } = await openGuestPoint({ ...found, parent })
  const contexts = [ALLOCATION, ...(bitmap === undefined ? [] : [bitmapContext(bitmap)])]
  const result = await options.reads.run(volumeOf(job), signal, async (both) => {
    const disk = await openNbd({ socket: found.connectSocket, exportName, contexts })
    try {
      return await read(disk, { changes, changed: changedBy(bitmap), signal: both })
    } catch (error) {
      // The point is lost when the guest migrates.
      if (both.aborted && !signal.aborted) await closeGuestPoint(found, { isComplete: false })
      throw error
    } finally {
      disk.close()
    }
  })
  await closeGuestPoint(found, { isComplete: true })
  return { ...result, isFrozen }
}

const readOffline: ReadPoint = async (options, job, parent, { signal }, read) => {
  const { volumes, diskLocks, folder, clock, reads } = options
  const volume = volumeOf(job)
  const path = await volumes.checkedPathOf(volume)
  const changes = await diskLocks.run(volume, async () => {
    await requireUnused(options, volume)
    const bitmaps = await bitmapsIn(path)
    const own = bitmapOf(job.backup.name)
    if (bitmaps.some(({ name }) => name === own)) await removeBitmap(path, own)
    await runProgram('qemu-img', ['bitmap', '--add', '-f', 'qcow2', path, own])
    return changesSince(parent, bitmaps)
  })
  const bitmap = 'since' in changes ? bitmapOf(changes.since) : undefined
  const result = await reads.run(volume, signal, (both) =>
    withServedDisk({ folder, path, bitmap, clock }, (disk) =>
      read(disk, { changes, changed: changedBy(bitmap), signal: both }),
    ),
  )
  await closePoint(options, job, { isComplete: true })
  return result
}

async function restore(
  options: DiskWorkOptions,
  repository: Repository,
  job: BackupJobSpec,
  work: WorkOptions,
): Promise<WorkResult> {
  const { volumes, diskLocks, folder } = options
  const volume = volumeOf(job)
  const { name } = job.backup
  // The mark outlives the agent. It tells the next agent that the disk may hold half of the backup and half of its old
  // data.
  const mark = markOf(folder, job)
  // No guest may open the disk before the restore is complete.
  return diskLocks.run(volume, async () => {
    try {
      const manifest = await repository.getManifest(name)
      await requireUnused(options, volume)
      const path = await volumes.checkedPathOf(volume)
      const { sizeBytes } = manifest
      await fillFrom(options, repository, manifest, path, { ...work, onBegin: () => writeDurably(mark, '') })
      await rm(mark, { force: true })
      return { bytesDone: sizeBytes, bytesTotal: sizeBytes, sizeBytes }
    } catch (error) {
      throw (await isThere(mark)) ? new HalfWritten(error) : error
    }
  })
}

const markOf = (folder: string, { backup, volume }: BackupJobSpec): string =>
  join(folder, `${backup.name}.${volume}.restoring`)
async function fill(
  options: DiskWorkOptions,
  repository: Repository,
  { backup, path }: { readonly backup: string; readonly path: string },
  work: WorkOptions,
): Promise<void> {
  await fillFrom(options, repository, await repository.getManifest(backup), path, work)
}

/** Nobody else uses the disk in the file. Everything in it beyond the backup becomes zeros. */
async function fillFrom(
  { folder, clock }: Pick<DiskWorkOptions, 'folder' | 'clock'>,
  repository: Repository,
  manifest: ChunkManifest,
  path: string,
  { signal, onProgress, onBegin }: WorkOptions & { readonly onBegin?: () => Promise<void> },
): Promise<void> {
  const { sizeBytes } = manifest
  await withServedDisk({ folder, path, isWritable: true, clock }, async (disk) => {
    if (disk.sizeBytes < sizeBytes) throw new Error(`the disk has ${disk.sizeBytes} bytes, the backup ${sizeBytes}`)
    await onBegin?.()
    const report = (bytesDone: number) => onProgress({ bytesDone, bytesTotal: sizeBytes })
    await restoreDisk(repository, manifest, disk, { signal, onProgress: report })
    if (disk.sizeBytes > sizeBytes) await zeroFrom(disk, sizeBytes)
  })
}

const ZERO_BYTES = 1_073_741_824

async function zeroFrom(disk: NbdDisk, start: number): Promise<void> {
  for (let offset = start; offset < disk.sizeBytes; offset += ZERO_BYTES)
    await disk.zero(offset, Math.min(ZERO_BYTES, disk.sizeBytes - offset))
}

async function verify(
  repository: Repository,
  { backup: { name } }: BackupJobSpec,
  { signal, onProgress }: WorkOptions,
): Promise<WorkResult> {
  try {
    const { sizeBytes } = await verifyBackup(repository, name, {
      signal,
      onProgress: (bytesDone) => onProgress({ bytesDone }),
    })
    return { bytesDone: sizeBytes, bytesTotal: sizeBytes, sizeBytes }
  } catch (error) {
    if (!(error instanceof DamagedObject)) throw error
    return { damage: error.message }
  }
}

/** Removes the backup's point, from the storage or from the guest. */
async function closePoint(
  options: DiskWorkOptions,
  job: BackupJobSpec,
  { isComplete }: { readonly isComplete: boolean },
): Promise<void> {
  const volume = volumeOf(job)
  if ((await options.volumes.inspect(volume)) === undefined) return
  const isEnded = (name: string) => isBackupBitmap(name) && (name === bitmapOf(job.backup.name)) !== isComplete
  const points = await options.volumes.pointsOf(volume)
  if (points !== undefined) {
    const names = await points.list()
    if (isComplete && !names.includes(bitmapOf(job.backup.name))) return
    for (const name of names.filter(isEnded)) await points.remove(name)
    return
  }
  const guest = await guestPointOptions(options, job)
  if (guest !== undefined) return closeGuestPoint(guest, { isComplete })
  await options.diskLocks.run(volume, async () => {
    if ((await options.userOf(volume)) !== undefined) return // the next point removes what is left
    const path = await options.volumes.checkedPathOf(volume)
    const names = (await bitmapsIn(path)).map(({ name }) => name)
    if (isComplete && !names.includes(bitmapOf(job.backup.name))) return
    for (const name of names.filter(isEnded)) await removeBitmap(path, name)
  })
}

/** Undefined when no running guest has the disk. */
async function guestPointOptions({ hypervisor, volumes, userOf, folder, clock }: DiskWorkOptions, job: BackupJobSpec) {
  const volume = volumeOf(job)
  const guest = await userOf(volume)
  const monitor = guest === undefined ? undefined : hypervisor.monitorOf(guest)
  if (guest === undefined || monitor === undefined) return undefined
  const phase = (await hypervisor.inspect(guest))?.transfer?.phase
  return {
    isMoving: phase === 'preparing' || phase === 'transferring',
    execute: monitor.execute,
    whileFrozen: monitor.whileFrozen,
    path: monitor.nameOf(await volumes.pathOf(volume)),
    give: monitor.give,
    backup: job.backup.name,
    overwrittenFile: join(folder, `${job.backup.name}.qcow2`),
    socket: monitor.backupSocket,
    connectSocket: join(monitor.folder, monitor.backupSocket),
    clock,
  }
}

async function requireUnused(
  { userOf, requireFree }: Pick<DiskWorkOptions, 'userOf' | 'requireFree'>,
  volume: string,
): Promise<void> {
  const user = await userOf(volume)
  if (user !== undefined) throw new Unavailable(`disk ${volume}, which guest ${user} has`, undefined)
  await requireFree?.(volume)
}

async function bitmapsIn(path: string) {
  const info = DiskInfo.parse(JSON.parse(await runProgram('qemu-img', ['info', '--output=json', '-f', 'qcow2', path])))
  return (info['format-specific']?.data.bitmaps ?? []).map(({ name, flags }) => ({
    name,
    isLost: flags.includes('in-use') || !flags.includes('auto'),
  }))
}

const removeBitmap = (path: string, name: string): Promise<string> =>
  runProgram('qemu-img', ['bitmap', '--remove', '-f', 'qcow2', path, name])

function volumeOf({ volume }: BackupJobSpec): string {
  if (volume === undefined) throw new Error('the job names no volume')
  return volume
}
