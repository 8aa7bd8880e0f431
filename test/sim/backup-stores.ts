/** Stores of backups that fail: they lose answers, cut them short and list what they held some time ago. And what hosts
 *  do for backups. */
import { type SimulatedStore, simulatedBackups } from '../../agents/node/backup/simulated.ts'
import type { BackupWork, WorkOptions as RunOptions, WorkResult } from '../../agents/node/backup/work.ts'
import type { HeldVolume } from '../../agents/node/drivers/storage/volume-store.ts'
import type { BackupParts } from '../../agents/node/loop.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { BackupJobSpec } from '../../resources/backup-job/index.ts'
import { ZONES, zoneOf } from './catalog.ts'
import type { Disks } from './disks.ts'
import type { Scheduler } from './scheduler.ts'

/** Which disk a backup is of, and what it held at the point. */
interface Kept {
  readonly volume: string
  readonly content: number
}

/** The stores of all zones. */
export interface BackupStores {
  readonly inZone: ReadonlyMap<string, SimulatedStore>
  /** Of every backup that was ever complete, by name. */
  readonly kept: Map<string, Kept>
  /** How often a request to a store fails. */
  failure: number
}

const FAILURE_MAXIMUM = 0.4

export const newBackupStores = ({ random }: Scheduler): BackupStores => ({
  inZone: new Map(ZONES.map((zone) => [zone, new Map()])),
  kept: new Map(),
  failure: random.fraction() * FAILURE_MAXIMUM,
})

interface WorkOptions extends Pick<BackupParts, 'diskLocks' | 'userOf'> {
  readonly host: string
  readonly volumes: ReadonlyMap<string, HeldVolume>
  readonly disks: Disks
  readonly stores: BackupStores
  readonly clock: Clock
  readonly scheduler: Scheduler
}

/** What the agent of a host does for backups. */
export function shakenBackups({
  host,
  volumes,
  disks,
  stores,
  clock,
  scheduler,
  diskLocks,
  userOf,
}: WorkOptions): BackupWork {
  const store: SimulatedStore = stores.inZone.get(zoneOf(host)) ?? new Map()
  const sizeOf = async (volume: string) => volumes.get(volume)?.sizeGibibytes
  const work = simulatedBackups(store, { sizeOf, clock, sourceOf: (zone) => stores.inZone.get(zone) })
  const contentIn = (volume: string): number => {
    const held = volumes.get(volume)
    return (held && disks.contentOf(host, held).is) ?? 0
  }
  const fails = (how: string): void => {
    if (stores.failure === 0 || scheduler.random.fraction() >= stores.failure) return
    scheduler.note(`fault store ${how}`)
    throw new Error(`the store ${how}`)
  }
  async function run(job: BackupJobSpec, options: RunOptions): Promise<WorkResult> {
    fails('answers 500')
    const { volume = '', backup } = job
    const point = { volume, content: contentIn(volume) }
    const result = await work.run(job, options)
    if (job.work === 'write') stores.kept.set(backup.name, point)
    const original = stores.kept.get(job.copyOf?.name ?? '')
    if (job.work === 'copy' && original !== undefined) stores.kept.set(backup.name, original)
    const kept = stores.kept.get(backup.name)
    const held = volumes.get(volume)
    if (job.work === 'restore' && held !== undefined && kept !== undefined) disks.overwrite(host, held, kept.content)
    // What was done is done, and the agent learns nothing of it.
    fails(job.work === 'remove' ? 'lists what it held before' : 'loses its answer')
    return result
  }

  /** As on real disks: no guest opens the disk before all of it is there, and none has it. */
  const restore = (job: BackupJobSpec, options: RunOptions): Promise<WorkResult> =>
    diskLocks.run(job.volume ?? '', async () => {
      const user = await userOf(job.volume ?? '')
      if (user !== undefined) throw new Error(`${user} has the disk`)
      return run(job, options)
    })

  return {
    ...work,
    run: (job, options) => (job.work === 'restore' ? restore(job, options) : run(job, options)),
    async fill(source, path, options) {
      fails('cuts an answer short')
      await work.fill(source, path, options)
      disks.fill(host, path, stores.kept.get(source.backup)?.content ?? 0)
      fails('cuts an answer short')
    },
  }
}
