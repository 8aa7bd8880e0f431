/** A database on a small disk whose archive takes nothing any longer: by the real PostgreSQL and pgBackRest, with a
 *  real store that holds its quota, or is away. */
import { access, readFile, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { signalProcess } from '../../../../kit/sys/process.ts'
import { Unrecoverable, until } from '../../../eventually.ts'
import { archiveIn, commit, reportWhen, rowsOf, useArchive, writeNoise } from './archived-database.ts'
import { type DatabaseMachine, newDataFolder } from './database-machine.ts'

const { store, open, restored } = useArchive()

const DISK_MEBIBYTES = 384
const MEBIBYTE = 1024 ** 2
/** WAL that is archived is released soon. */
const SETTINGS = { max_wal_size: '64MB', min_wal_size: '32MB', shared_buffers: '32MB', max_connections: '20' }

async function newSmallDisk(): Promise<string> {
  const folder = await newDataFolder()
  await runProgram('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MEBIBYTES}m,mode=755`, 'tmpfs', folder])
  onTestFinished(async () => {
    await runProgram('umount', ['--lazy', folder])
    await rm(folder, { recursive: true, force: true })
  })
  return folder
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Commits in one session without a pause until it is ended. */
function keepWriting(machine: DatabaseMachine) {
  let isOver = false
  let committed = 0
  const run = async (): Promise<void> => {
    const client = await machine.connect()
    while (!isOver) {
      await writeNoise(client)
      committed += 1
    }
  }
  let refusal: unknown
  const done = run().catch((error: unknown) => {
    refusal = error
  })
  return {
    /** Throws what the server refused. */
    committed(): number {
      if (refusal !== undefined) throw new Unrecoverable(`the server refused a write: ${String(refusal)}`)
      return committed
    },
    async end() {
      isOver = true
      await done
      if (refusal !== undefined) throw refusal
    },
  }
}

const startedAt = async (machine: DatabaseMachine): Promise<unknown> =>
  (await machine.query('select pg_postmaster_start_time()::text as at'))[0]?.['at']

test('a full archive is paused on record before the disk is full, and resumes by itself with a backup', async () => {
  const data = await newSmallDisk()
  const repository = await store().newRepository()
  const machine = await open({ data, settings: { MACHINE_RESUME_SECONDS: '2' } })
  await machine.tell({ archive: archiveIn(repository), settings: SETTINGS })
  await reportWhen(machine, 'a window', ({ latestAt }) => latestAt !== null)
  await machine.query('create table sale (row int)')
  const first = await commit(machine, 1)
  await reportWhen(machine, 'the first row', ({ latestAt }) => (latestAt ?? '') > first)
  const began = await startedAt(machine)
  await store().leaveRoom(repository, 4 * MEBIBYTE)
  const writer = keepWriting(machine)
  const { pause, latestAt } = await reportWhen(machine, 'the pause', (report) => report.pause?.state === 'paused')
  expect(pause).toMatchObject({ reason: 'archive_full', from: latestAt })
  const inGap = await commit(machine, 2)
  const before = writer.committed()
  // Much more than was free.
  await until(
    'as much again',
    () => machine.look().then(() => writer.committed()),
    (committed) => committed > before + DISK_MEBIBYTES,
    240_000,
  )
  const { bavail, blocks } = await statfs(data)
  expect(bavail / blocks).toBeGreaterThan(0.2)
  await writer.end()
  expect(await startedAt(machine), 'the same server').toBe(began)

  const pid = Number((await readFile(join(machine.folder, 'run/svccloud/keeper.service.pid'), 'utf8')).split(' ')[0])
  signalProcess(pid, 'SIGKILL')
  await until(
    'another keeper',
    () => machine.ask('start'),
    ({ report }) => report.services.keeper?.isRunning === true,
  )
  const after = await reportWhen(machine, 'the pause, still', (report) => report.pause !== undefined)
  expect(after.pause).toMatchObject({ since: pause?.since, from: pause?.from })

  await store().leaveRoom(repository, 1024 ** 3)
  const resumed = await reportWhen(machine, 'the end of the pause', (report) => report.pause === undefined)
  expect(resumed.gaps).toEqual([{ from: pause?.from, to: expect.any(String) }])
  expect((resumed.gaps[0]?.to ?? '') > inGap && (resumed.gaps[0]?.from ?? '') < inGap).toBe(true)
  expect(await isThere(join(data, 'archive-pause.json'))).toBe(false)
  const third = await commit(machine, 3)
  await reportWhen(machine, 'the third row', (report) => (report.latestAt ?? '') > third)
  const [now, then] = await Promise.all([restored(repository, third), restored(repository, pause?.from ?? null)])
  expect(await rowsOf(now)).toEqual([1, 2, 3])
  expect(await rowsOf(then)).toEqual([1])
})

test('a store that is away fills no disk, and is archived to again once it is back', async () => {
  const data = await newSmallDisk()
  const repository = await store().newRepository()
  const machine = await open({ data, settings: { MACHINE_RESUME_SECONDS: '2' } })
  await machine.tell({ archive: archiveIn(repository), settings: SETTINGS })
  await reportWhen(machine, 'a window', ({ latestAt }) => latestAt !== null)
  await machine.query('create table sale (row int)')
  await store().stop()
  const writer = keepWriting(machine)
  const { pause } = await reportWhen(machine, 'the pause', (report) => report.pause?.state === 'paused')
  expect(pause?.reason).toBe('storage_nearly_full')
  const before = writer.committed()
  await until(
    'writes that go on',
    () => machine.look().then(() => writer.committed()),
    (committed) => committed > before + DISK_MEBIBYTES,
    120_000,
  )
  await writer.end()
  await store().start()
  const { gaps } = await reportWhen(machine, 'the end of the pause', (report) => report.pause === undefined)
  expect(gaps).toEqual([{ from: pause?.from, to: expect.any(String) }])
  const after = await commit(machine, 1)
  await reportWhen(machine, 'the row', ({ latestAt }) => (latestAt ?? '') > after)
  expect(await rowsOf(await restored(repository, after))).toEqual([1])
})
