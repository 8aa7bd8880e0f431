/** The fault `storesGoBack`: Kubernetes, PostgreSQL or both are put back to an older state, not always of one instant,
 *  or Kubernetes is set up anew. Hosts keep their guests, disks and ledgers, but for one whose ledger is lost
 *  (`ledgerLost`). Nothing that runs may end by that, no bytes may go, and nobody gets what a guest uses. */
import type { SimulatedPostgres } from './database.ts'
import type { LoadedState, Storage, StoredRecord } from '../../embedded/kubernetes/storage/storage.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Scheduler, SimulatedProcess } from './scheduler.ts'

/** Copies that are kept of each store; of more any one goes, so that old ones stay as well. */
const COPIES_MAXIMUM = 6
const RESTORES_MAXIMUM = 3
/** So many worlds lose one ledger, within so long. */
const LEDGER_LOST_SHARE = 0.4
const LEDGER_LOST_MILLISECONDS = 120_000
/** Of PostgreSQL: one schema for each copy. */
const SCHEMA = 'copy_'

/** What Kubernetes has written, and how it was at other times. */
export interface RewindableStorage {
  readonly storage: Storage
  copy(): LoadedState
  /** A storage that begins with the copy, or empty. */
  rewind(to: LoadedState | undefined): Storage
}

export function rewindable(inner: Storage): RewindableStorage {
  const state = new Map<string, StoredRecord>()
  let revision = 0
  const keyOf = ({ storageKey, key }: StoredRecord) => `${storageKey} ${key}`
  const append = (record: StoredRecord) => {
    revision = record.revision
    if (record.object === undefined) state.delete(keyOf(record))
    else state.set(keyOf(record), record)
    return inner.append(record)
  }
  return {
    storage: { ...inner, append },
    copy: () => ({ snapshot: [...state.values()], revision, records: [] }),
    rewind(to) {
      state.clear()
      for (const record of to?.snapshot ?? []) state.set(keyOf(record), record)
      revision = to?.revision ?? 0
      return { ...inner, load: async () => to ?? { snapshot: [], revision: 0, records: [] }, append }
    },
  }
}

/** Copies of a database, in separate schemas. */
export interface DatabaseCopies {
  take(number: number): Promise<void>
  putBack(number: number): Promise<void>
}

export function databaseCopies(database: SimulatedPostgres): DatabaseCopies {
  const alone = async (work: () => Promise<void>) => {
    await database.acquire()
    try {
      await database.query('begin', [])
      await work()
      await database.query('commit', [])
    } finally {
      database.release()
    }
  }
  const tables = async (): Promise<readonly string[]> =>
    (
      await database.query(
        `select tablename from pg_tables where schemaname = 'public' and tablename not like 'kysely%' order by 1`,
        [],
      )
    ).rows.map(({ tablename }) => String(tablename))
  const columnsOf = async (table: string): Promise<string> =>
    (
      await database.query(
        `select column_name from information_schema.columns where table_schema = 'public' and table_name = $1 and ` +
          `is_generated = 'NEVER' order by ordinal_position`,
        [table],
      )
    ).rows
      .map((row) => `"${String(row.column_name)}"`)
      .join(', ')
  return {
    take: (number) =>
      alone(async () => {
        await database.query(`drop schema if exists ${SCHEMA}${number} cascade`, [])
        await database.query(`create schema ${SCHEMA}${number}`, [])
        for (const table of await tables())
          await database.query(`create table ${SCHEMA}${number}."${table}" as table public."${table}"`, [])
      }),
    putBack: (number) =>
      alone(async () => {
        const all = await tables()
        await database.query(`truncate ${all.map((table) => `"${table}"`).join(', ')} cascade`, [])
        await database.query('set local session_replication_role = replica', []) // foreign keys hold in the copy
        for (const table of all) {
          const columns = await columnsOf(table)
          await database.query(
            `insert into public."${table}" (${columns}) overriding system value select ${columns} from ` +
              `${SCHEMA}${number}."${table}"`,
            [],
          )
        }
      }),
  }
}

export interface RestoreOptions {
  readonly scheduler: Scheduler
  readonly kubernetes: RewindableStorage
  readonly database: DatabaseCopies
  readonly processes: () => readonly SimulatedProcess[]
  /** Kubernetes answers from this storage from now on; it was set up anew when that `isEmpty`. */
  readonly reopen: (storage: Storage, isEmpty: boolean) => Promise<void>
  /** The agent of some host finds an empty ledger. */
  readonly loseLedger: () => void
  /** Called when all that goes back has gone back. */
  readonly onBack: () => Promise<void>
}

/** Takes copies all the time, and puts some back. */
export function runRestores(options: RestoreOptions, isOver: () => boolean): void {
  const { scheduler, kubernetes, database, loseLedger } = options
  const { random } = scheduler
  const objects: LoadedState[] = []
  const rows: number[] = []
  const dropOne = (copies: unknown[]) => {
    if (copies.length > COPIES_MAXIMUM) copies.splice(Math.floor(random.fraction() * copies.length), 1)
  }
  void scheduler.repeat({ least: 2_000, most: 12_000 }, isOver, async () => {
    if (random.fraction() < 0.5) objects.push(kubernetes.copy())
    else {
      const number = Array.from({ length: COPIES_MAXIMUM + 1 }, (_, slot) => slot).find((slot) => !rows.includes(slot))
      if (number === undefined) return
      await database.take(number)
      rows.push(number)
    }
    dropOne(objects)
    dropOne(rows)
  })
  if (random.fraction() < LEDGER_LOST_SHARE) scheduler.after(random.fraction() * LEDGER_LOST_MILLISECONDS, loseLedger)
  let left = 1 + Math.floor(random.fraction() * RESTORES_MAXIMUM)
  void scheduler.repeat({ least: 15_000, most: 45_000 }, isOver, async () => {
    if (left === 0 || objects.length === 0 || rows.length === 0) return
    left -= 1
    await putBack(options, drawn(random, scheduler.pick(objects), scheduler.pick(rows)))
  })
}

/** What is put back; a store that is left out stays as it is. */
export interface Back {
  /** Set up anew when `empty`. */
  readonly kubernetes?: LoadedState | 'empty' | undefined
  /** Number of the copy. */
  readonly database?: number | undefined
}

function drawn(random: Random, kubernetes: LoadedState | undefined, database: number | undefined): Back {
  const dice = random.fraction()
  if (dice < 0.1) return { kubernetes: 'empty' }
  return dice < 0.35 ? { kubernetes } : dice < 0.65 ? { kubernetes, database } : { database }
}

/** Everything that is not a host is stopped meanwhile, and reads what is there then. */
export async function putBack(
  { scheduler, kubernetes, database, processes, reopen, onBack }: RestoreOptions,
  back: Back,
): Promise<void> {
  const isEmpty = back.kubernetes === 'empty'
  const [objects, rows] = [back.kubernetes === 'empty' ? undefined : back.kubernetes, back.database]
  const whole = rows === undefined ? 'Kubernetes' : 'both'
  const what = isEmpty ? 'empty Kubernetes' : objects === undefined ? 'PostgreSQL' : whole
  scheduler.note(`fault storesGoBack ${what}`)
  const stopAll = () => {
    for (const process of processes()) if (process.isRunning) process.crash()
  }
  stopAll()
  if (rows !== undefined) await database.putBack(rows)
  if (isEmpty || objects !== undefined) await reopen(kubernetes.rewind(objects), isEmpty)
  stopAll() // whoever has come back meanwhile has seen both
  await onBack()
}
