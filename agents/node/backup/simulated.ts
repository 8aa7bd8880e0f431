/** Simulated backups, in memory only. The map is the simulated store, which the hosts of a zone share. */
import { defined } from '../../../domain/defined.ts'
import { DamagedObject } from '../../../kit/chunks/seal.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { BackupJobSpec } from '../../../resources/backup-job/index.ts'
import type { BackupWork } from './work.ts'

const WORK_MILLISECONDS = 1_000
const GIBIBYTE = 1_073_741_824

/** Sizes of complete backups in bytes, by name of the backup. */
export type SimulatedStore = Map<string, number>

export interface SimulatedBackupsOptions {
  readonly sizeOf: (volume: string) => Promise<number | undefined>
  readonly clock: Clock
  /** The stores of other zones that the host reaches. */
  readonly sourceOf?: (zone: string) => SimulatedStore | undefined
  /** Records which volume was created from which backup. */
  readonly filled?: Map<string, string>
}

export function simulatedBackups(
  store: SimulatedStore,
  { sizeOf, clock, sourceOf, filled }: SimulatedBackupsOptions,
): BackupWork {
  const sizeOfBackup = (name: string): number => {
    const size = store.get(name)
    if (size === undefined) throw new DamagedObject(`m/${name}`, 'is missing')
    return size
  }
  async function write({ backup: { name }, volume = '', parent }: BackupJobSpec) {
    const sizeBytes = ((await sizeOf(volume)) ?? 0) * GIBIBYTE
    if (sizeBytes === 0) throw new Error(`there is no volume ${volume}`)
    store.set(name, sizeBytes)
    const origin = parent === undefined ? { fullBecause: 'it is the first backup of the storage' } : { parent }
    return { ...origin, sizeBytes, target: 'zone-object-store', isSameHost: true } as const
  }
  function copy({ backup: { name }, copyOf, parent }: BackupJobSpec) {
    const sizeBytes = sourceOf?.(copyOf?.zone ?? '')?.get(copyOf?.name ?? '')
    if (sizeBytes === undefined) throw new DamagedObject(`m/${copyOf?.name}`, 'is missing')
    store.set(name, sizeBytes)
    return {
      ...defined({ parent }),
      sizeBytes,
      target: 'zone-object-store',
      isSameHost: false,
    } as const
  }
  return {
    async run(job, { signal, onProgress }) {
      onProgress({ bytesDone: 0, bytesTotal: GIBIBYTE, bytesSent: 0 })
      await clock.sleep(WORK_MILLISECONDS, signal)
      signal.throwIfAborted()
      const done = { bytesDone: GIBIBYTE, bytesTotal: GIBIBYTE, bytesSent: 0 }
      const { name } = job.backup
      if (job.work === 'copy') return { ...done, ...copy(job) }
      if (job.work === 'write') return { ...done, ...(await write(job)) }
      if (job.work === 'restore') return { ...done, sizeBytes: sizeOfBackup(name) }
      if (job.work === 'verify') return store.has(name) ? done : { ...done, damage: `m/${name} is missing` }
      store.delete(name)
      const unlisted = job.completeBackups?.find((each) => !store.has(each))
      if (unlisted !== undefined) throw new DamagedObject(`m/${unlisted}`, 'is not in the list of the store')
      return done
    },
    async fill({ backup }, path, { signal, onProgress }) {
      const bytesTotal = sizeOfBackup(backup)
      onProgress({ bytesDone: 0, bytesTotal })
      await clock.sleep(WORK_MILLISECONDS, signal)
      signal.throwIfAborted()
      filled?.set(path, backup)
    },
    abandon: async () => {},
    yieldDisk: async () => {},
  }
}
