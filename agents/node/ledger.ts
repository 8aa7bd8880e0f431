/** Record of what this host has already done, on its own disk: which generation of an Instance was acted on, which
 *  incarnation was started and how it ended, which disks and images were created here and what became of them. It
 *  decides where Kubernetes cannot be trusted: after a restore to an old spec, or after a crash during a start. Every
 *  write is on the disk when it returns, and an open ledger keeps a second agent off the folder. */
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { BackupJob } from '../../resources/backup-job/index.ts'
import { Instance } from '../../resources/instance/index.ts'

export const LedgerEntry = z.strictObject({
  /** uid of the Instance object. */
  uid: z.string(),
  /** The newest generation that was acted on. */
  generation: z.int(),
  /** The newest incarnation whose start was recorded; 0 before the first. */
  incarnation: z.int(),
  startedAt: z.string().optional(),
  /** Volumes that its guest was started with. The guest has them open as long as it is here, regardless of the current
   *  spec. */
  volumes: z.array(z.string()).optional(),
  /** Owner and resources of the guest, regardless of current objects. */
  guest: z
    .strictObject({
      server: z.strictObject({ namespace: z.string(), name: z.string() }),
      cores: z.int(),
      memoryMebibytes: z.int(),
    })
    .optional(),
  /** How that incarnation ended. */
  ended: z
    .strictObject({
      at: z.string(),
      reason: z.enum(['requested', 'guest_shutdown', 'crashed']),
      detail: z.string().optional(),
    })
    .optional(),
  /** The last stop request that was accepted. */
  stop: z
    .strictObject({ id: z.string(), since: z.string(), outcome: z.enum(['stopped', 'timed_out']).optional() })
    .optional(),
  /** The last attempt to move the guest to this host or away that has ended. This result outlives the guest. */
  transfer: Instance.status.shape.transfer,
})
export type LedgerEntry = z.infer<typeof LedgerEntry>

/** Work that is done once for each object. Volumes, images and jobs are identified by their names, guests by the uids
 *  of their Instances: a server that returns to a host has a new Instance. current_volume: the bytes of a volume were
 *  in use here; separate, because agents of earlier releases refuse entries with fields that they do not know. */
export type BytesKind = 'volume' | 'current_volume' | 'image' | 'backup_job' | 'guest'

/** The bytes of a name are created once. This records their progress, and that they existed. */
export const BytesEntry = z.strictObject({
  /** uid of the object that they were created for, or found with. */
  uid: z.string(),
  /** making: started. made: were complete at some time. removing: are being removed, as ordered. removed: done. */
  state: z.enum(['making', 'made', 'removing', 'removed']),
  /** uid of the last object for which they were complete, whatever became of them; absent when they never were. */
  madeFor: z.string().optional(),
  /** RFC 3339: when the state was written. */
  at: z.string(),
  /** Their guest was handed over with them, so the current data are on another host. The transfer, and the Instance. */
  superseded: z.strictObject({ transferId: z.string(), instance: z.string() }).optional(),
  /** They were served to another host, which may have them by now: the operation, and the generation of the Volume that
   *  ordered it. An older generation does not contain the order. Absent once a newer one has withdrawn it. */
  served: z.strictObject({ id: z.string(), generation: z.int() }).optional(),
  /** Names of the snapshots that were taken and not removed. */
  snapshots: z.array(z.string()).optional(),
  /** Of a backup job: its work, and its final report. */
  job: z.strictObject({ work: z.string(), report: BackupJob.status.optional() }).optional(),
})
export type BytesEntry = z.infer<typeof BytesEntry>

export interface Ledger {
  get(name: string): LedgerEntry | undefined
  put(name: string, entry: LedgerEntry): void
  remove(name: string): void
  /** The host's record of the bytes of a name, even long after their removal. */
  bytesOf(kind: BytesKind, name: string): BytesEntry | undefined
  putBytes(kind: BytesKind, name: string, entry: BytesEntry): void
  /** Deletes records of bytes that were removed before the time. */
  pruneRemoved(before: Date): void
  close(): void
}

export class LedgerInUse extends Error {
  constructor(file: string, options: ErrorOptions) {
    super(`another agent runs on ${file}`, options)
    this.name = 'LedgerInUse'
  }
}

/** LedgerInUse when another process has it open. */
export function openLedger(file: string): Ledger {
  const database = new DatabaseSync(file)
  try {
    database.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN ' +
        'EXCLUSIVE; COMMIT',
    )
  } catch (error) {
    database.close()
    throw new LedgerInUse(file, { cause: error })
  }
  database.exec(
    'CREATE TABLE IF NOT EXISTS instance (name TEXT PRIMARY KEY, entry TEXT NOT NULL) STRICT; CREATE TABLE IF ' +
      'NOT EXISTS bytes (kind TEXT NOT NULL, name TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (kind, name)) STRICT',
  )
  const readBytes = database.prepare('SELECT entry FROM bytes WHERE kind = ? AND name = ?')
  const writeBytes = database.prepare(
    'INSERT INTO bytes (kind, name, entry) VALUES (?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET entry = ' +
      'excluded.entry',
  )
  const read = database.prepare('SELECT entry FROM instance WHERE name = ?')
  const write = database.prepare(
    'INSERT INTO instance (name, entry) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET entry = excluded.entry',
  )
  const drop = database.prepare('DELETE FROM instance WHERE name = ?')
  const prune = database.prepare("DELETE FROM bytes WHERE entry ->> 'state' = 'removed' AND entry ->> 'at' < ?")
  return {
    get(name) {
      const row = read.get(name)
      return row === undefined ? undefined : LedgerEntry.parse(JSON.parse(String(row['entry'])))
    },
    put: (name, entry) => void write.run(name, JSON.stringify(LedgerEntry.parse(entry))),
    remove: (name) => void drop.run(name),
    bytesOf(kind, name) {
      const row = readBytes.get(kind, name)
      return row === undefined ? undefined : BytesEntry.parse(JSON.parse(String(row['entry'])))
    },
    putBytes: (kind, name, entry) => void writeBytes.run(kind, name, JSON.stringify(BytesEntry.parse(entry))),
    pruneRemoved: (before) => void prune.run(before.toISOString()),
    close: () => database.close(),
  }
}

/** A ledger of a simulated host. It outlives the agents that open it, as a disk would. */
export function ledgerInMemory(): Ledger {
  const entries = new Map<string, LedgerEntry>()
  const bytes = new Map<string, BytesEntry>()
  return {
    get: (name) => entries.get(name),
    put: (name, entry) => void entries.set(name, LedgerEntry.parse(entry)),
    remove: (name) => void entries.delete(name),
    bytesOf: (kind, name) => bytes.get(`${kind}/${name}`),
    putBytes: (kind, name, entry) => void bytes.set(`${kind}/${name}`, BytesEntry.parse(entry)),
    pruneRemoved(before) {
      for (const [key, { state, at }] of bytes) if (state === 'removed' && at < before.toISOString()) bytes.delete(key)
    },
    close: () => {},
  }
}
