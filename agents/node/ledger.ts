/** What this host has already done, kept on its own disk: which generation of an Instance was acted on, which
 *  incarnation was started and how it ended. It answers where Kubernetes cannot be trusted: an old spec after a
 *  restore, a start that was begun before a crash.
 *  Every write is on the disk when it returns, and an open ledger keeps a second agent off the folder. */
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { Instance } from '../../resources/instance/index.ts'

export const LedgerEntry = z.strictObject({
  /** uid of the Instance object. */
  uid: z.string(),
  /** The newest generation that was acted on. */
  generation: z.int(),
  /** The newest incarnation whose start was begun; 0 before the first. */
  incarnation: z.int(),
  startedAt: z.string().optional(),
  /** Volumes that its guest was started with: it has them open for as long as it is here, whatever the spec says by
   *  now. */
  volumes: z.array(z.string()).optional(),
  /** How that incarnation ended. */
  ended: z
    .strictObject({
      at: z.string(),
      reason: z.enum(['requested', 'guest_shutdown', 'crashed']),
      detail: z.string().optional(),
    })
    .optional(),
  /** The last stop request that was taken up. */
  stop: z
    .strictObject({ id: z.string(), since: z.string(), outcome: z.enum(['stopped', 'timed_out']).optional() })
    .optional(),
  /** The last attempt to move the guest here or away that is over: its end, which outlives the guest. */
  transfer: Instance.status.shape.transfer,
})
export type LedgerEntry = z.infer<typeof LedgerEntry>

export interface Ledger {
  get(name: string): LedgerEntry | undefined
  put(name: string, entry: LedgerEntry): void
  remove(name: string): void
  /** uid of the node's namespace that the guests of this host were started for: what another cluster does not name is
   *  none of its business. */
  namespaceUid(): string | undefined
  setNamespaceUid(namespaceUid: string): void
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
      'NOT EXISTS home (uid TEXT NOT NULL) STRICT',
  )
  const read = database.prepare('SELECT entry FROM instance WHERE name = ?')
  const write = database.prepare(
    'INSERT INTO instance (name, entry) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET entry = excluded.entry',
  )
  const drop = database.prepare('DELETE FROM instance WHERE name = ?')
  return {
    get(name) {
      const row = read.get(name)
      return row === undefined ? undefined : LedgerEntry.parse(JSON.parse(String(row['entry'])))
    },
    put: (name, entry) => void write.run(name, JSON.stringify(LedgerEntry.parse(entry))),
    remove: (name) => void drop.run(name),
    namespaceUid() {
      const row = database.prepare('SELECT uid FROM home').get()
      return row === undefined ? undefined : String(row['uid'])
    },
    setNamespaceUid(uid) {
      database.exec('BEGIN; DELETE FROM home')
      database.prepare('INSERT INTO home (uid) VALUES (?)').run(uid)
      database.exec('COMMIT')
    },
    close: () => database.close(),
  }
}

/** A ledger of a simulated host: it outlives the agents that open it, as a disk would. */
export function ledgerInMemory(): Ledger {
  const entries = new Map<string, LedgerEntry>()
  let home: string | undefined
  return {
    get: (name) => entries.get(name),
    put: (name, entry) => void entries.set(name, LedgerEntry.parse(entry)),
    remove: (name) => void entries.delete(name),
    namespaceUid: () => home,
    setNamespaceUid: (uid) => void (home = uid),
    close: () => {},
  }
}
