/** The machine of a managed database on this host, without a guest: its script, PostgreSQL and pgBackRest as in the
 *  image, archiving into the real object storage as often as in production. For the benchmarks of databases. */
import { glob } from 'node:fs/promises'
import { runProgram } from '../agents/node/run-program.ts'
import type { ArchiveReport, Repository } from '../resources/managed-machine/index.ts'
import { openArchiveStore } from '../test/agents/node/images/archive-store.ts'
import {
  type DatabaseMachine,
  type DatabaseMachineOptions,
  openDatabaseMachine,
} from '../test/agents/node/images/database-machine.ts'
import { until } from '../test/eventually.ts'

const PATIENCE_MILLISECONDS = 300_000
const USER = 'postgres'
/** As in a guest, except for the time until its first check. */
const POINT_SECONDS = '60'

/** Of the newest PostgreSQL here. */
export async function postgresPrograms(): Promise<string> {
  const folders: string[] = []
  for await (const folder of glob('/usr/lib/postgresql/*/bin')) folders.push(folder)
  const newest = folders
    .toSorted((one, other) => Number(one.split('/').at(-2)) - Number(other.split('/').at(-2)))
    .at(-1)
  if (newest === undefined) throw new Error('PostgreSQL is not installed (Debian: postgresql)')
  return newest
}

/** The prefix for a program that PostgreSQL's user runs; it ends with this process. */
export const asPostgres = [
  'setpriv',
  '--reuid',
  USER,
  '--regid',
  USER,
  '--clear-groups',
  '--pdeathsig',
  'SIGKILL',
  '--',
]

export const runAsPostgres = (program: string, ...input: readonly string[]): Promise<string> =>
  runProgram('setpriv', [...asPostgres.slice(1), program, ...input], {
    workingDirectory: '/',
    timeoutMilliseconds: PATIENCE_MILLISECONDS,
  })

/** A machine whose database has its first backup, and a store for it. */
export async function openArchivedMachine({ settings }: Pick<DatabaseMachineOptions, 'settings'> = {}) {
  const store = await openArchiveStore()
  const machines: DatabaseMachine[] = []
  const open = async (): Promise<DatabaseMachine> => {
    const machine = await openDatabaseMachine({
      archive: store.address,
      settings: {
        MACHINE_POINT_SECONDS: POINT_SECONDS,
        MACHINE_KEEP_SECONDS: '1',
        MACHINE_STORE_SECONDS: '15',
        ...settings,
      },
    })
    machines.push(machine)
    const stop = async () => {
      if (machines.includes(machine)) machines.splice(machines.indexOf(machine), 1)
      await machine.close()
    }
    return { ...machine, close: stop }
  }
  const close = async () => {
    for (const machine of machines.splice(0)) await machine.close()
    await store.close()
  }
  try {
    const repository = await store.newRepository()
    const machine = await open()
    const answer = await machine.tell({ archive: { repository, retentionDays: 7, fullBackupAt: nextDay() } })
    if (answer.detail !== '' && !answer.detail.includes('prepared')) throw new Error(answer.detail)
    await whenArchived(machine, ({ backups }) => backups.some(({ isRestorable }) => isRestorable))
    return { machine, repository, open, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** In twelve hours, so that no backup starts meanwhile. */
const nextDay = () => ({ hour: (new Date().getUTCHours() + 12) % 24, minute: 0 })

/** Its report of the archive, once that is true. */
export async function whenArchived(
  machine: DatabaseMachine,
  isMet: (report: ArchiveReport) => boolean,
): Promise<ArchiveReport> {
  const { report } = await until(
    'the archive',
    () => machine.look(),
    ({ report: { postgresql } }) => postgresql?.archive !== undefined && isMet(postgresql.archive),
    PATIENCE_MILLISECONDS,
  )
  const archive = report.postgresql?.archive
  if (archive === undefined) throw new Error('there is no report of the archive')
  return archive
}

/** Resolves once it is healthy. */
export const whenHealthy = (machine: DatabaseMachine) =>
  until(
    'the database',
    () => machine.look(),
    ({ isHealthy }) => isHealthy,
    PATIENCE_MILLISECONDS,
  )

export type { Repository }
