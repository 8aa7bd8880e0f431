/** Databases with an archive in a real store, for the tests of a file. */
import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import type { ArchiveReport, MachineDocument, Repository } from '../../../../resources/managed-machine/index.ts'
import { until } from '../../../eventually.ts'
import { type ArchiveStore, openArchiveStore } from './archive-store.ts'
import {
  type DatabaseMachine,
  type DatabaseMachineOptions,
  openDatabaseMachine,
  passwordChange,
} from './database-machine.ts'

type Archive = NonNullable<NonNullable<MachineDocument['postgresql']>['archive']>

const PATIENCE_MILLISECONDS = 180_000
const NOISE_BYTES = 512 * 1024
/** In twelve hours, so that no full backup is due. */
export const archiveIn = (repository: Repository): Archive => ({
  repository,
  retentionDays: 7,
  fullBackupAt: { hour: (new Date().getUTCHours() + 12) % 24, minute: 0 },
})

/** Its report of the archive, once that is so. */
export const reportWhen = async (
  machine: DatabaseMachine,
  what: string,
  isMet: (report: ArchiveReport) => boolean,
): Promise<ArchiveReport> => {
  const { report } = await until(
    what,
    () => machine.look(),
    ({ report: { postgresql } }) => postgresql?.archive !== undefined && isMet(postgresql.archive),
    PATIENCE_MILLISECONDS,
  )
  return report.postgresql?.archive ?? expect.fail('there is no report')
}

/** Commits the row; a moment after that and before the next one. */
export async function commit(machine: DatabaseMachine, row: number): Promise<string> {
  await machine.query('insert into sale values ($1)', [row])
  const [answer] = await machine.query(`select to_char(clock_timestamp() at time zone 'UTC', $1) as at`, [
    'YYYY-MM-DD"T"HH24:MI:SS.US"Z"',
  ])
  return String(answer?.['at'])
}

/** Half a mebibyte and more of nothing but WAL, which cannot be compressed. */
export const writeNoise = async (client: pg.Client): Promise<void> => {
  const noise = randomBytes(NOISE_BYTES).toString('latin1').replaceAll('\0', ' ')
  await client.query('select pg_logical_emit_message(true, $1, $2)', ['noise', noise])
}

/** Of the table of sales. */
export const rowsOf = async (machine: DatabaseMachine): Promise<readonly unknown[]> =>
  (await machine.query('select row from sale order by row')).map(({ row }) => row)

/** Opens a store before the tests of a file, and closes it after them; databases are closed after each test. */
export function useArchive() {
  let store: ArchiveStore | undefined
  const machines: DatabaseMachine[] = []
  const opened = (): ArchiveStore => store ?? expect.fail('the store is opened before the tests')
  beforeAll(async () => {
    store = await openArchiveStore()
  })
  afterEach(async () => {
    for (const machine of machines.splice(0)) await machine.close()
  }, PATIENCE_MILLISECONDS)
  afterAll(() => store?.close())

  async function open(options: DatabaseMachineOptions = {}): Promise<DatabaseMachine> {
    const machine = await openDatabaseMachine({ archive: opened().address, ...options })
    machines.push(machine)
    return machine
  }

  /** A database with an archive that it can be restored from. */
  async function archived(repository: Repository, options?: DatabaseMachineOptions): Promise<DatabaseMachine> {
    const machine = await open(options)
    await machine.tell({ archive: archiveIn(repository) })
    await reportWhen(machine, 'a window', ({ latestAt }) => latestAt !== null)
    return machine
  }

  /** A machine that is to begin as the origin was then. */
  async function restored(origin: Repository, targetTime: string | null): Promise<DatabaseMachine> {
    const machine = await open()
    await machine.tell({ ...passwordChange(5), restore: { repository: origin, targetTime } })
    await until(
      'the restored database',
      () => machine.look(),
      ({ isHealthy }) => isHealthy,
      PATIENCE_MILLISECONDS,
    )
    return machine
  }

  return { store: opened, open, archived, restored }
}
