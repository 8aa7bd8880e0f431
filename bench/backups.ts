/** A partly written disk, and the agent's work to back it up: for the benchmarks of backups. The folder of the
 *  benchmark contains everything; the store of backups is a folder too, because the work is compared, not the
 *  connection to a store. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDiskWork } from '../agents/node/backup/disk-work.ts'
import { openDiskServer } from '../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../agents/node/drivers/storage/qcow2.ts'
import { KeyedMutex } from '../kit/sys/mutex.ts'
import { runProgram } from '../agents/node/run-program.ts'
import { defined } from '../domain/defined.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { systemRandom as random } from '../kit/sys/random.ts'
import type { Round } from './runner.ts'

const MEBIBYTE = 1_048_576
const VOLUME = 'data'
const SIZE_GIBIBYTES = 10
/** Without a rate limit. */
const BYTES_PER_SECOND = 1_000_000_000_000
/** Random bytes, so that compression gains nothing. */
const WRITTEN = { full: 128, short: 10 }
/** The share of the written data, in this many places. */
const CHANGED_SHARE = 0.1
const CHANGED_PLACES = 8

export type BackedUpDisk = Awaited<ReturnType<typeof openBackedUpDisk>>

export async function openBackedUpDisk(round: Round) {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
  const mebibytes = WRITTEN[round]
  const raw = join(folder, 'disk.raw')
  await mkdir(join(folder, 'files'))
  const volumes = await openQcow2Volumes({
    folder: join(folder, 'volumes'),
    imageFolder: join(folder, 'files'),
    server: await openDiskServer({ folder: join(folder, 'served'), host: '127.0.0.1', clock }),
  })
  await volumes.create({ name: VOLUME, sizeGibibytes: SIZE_GIBIBYTES })
  const path = await volumes.pathOf(VOLUME)
  await runProgram('truncate', ['--size', `${mebibytes}M`, raw])
  await fill(0, mebibytes)

  /** Writes into the disk, and into the equivalent raw file. */
  async function fill(offset: number, length: number): Promise<void> {
    const bytes = join(folder, 'bytes')
    await writeFile(bytes, random.bytes(length * MEBIBYTE))
    await runProgram('qemu-io', ['-f', 'qcow2', '-c', `write -q -s ${bytes} ${offset}M ${length}M`, path])
    await runProgram('qemu-io', ['-f', 'raw', '-c', `write -q -s ${bytes} ${offset}M ${length}M`, raw])
  }

  const work = openDiskWork({
    location: join(folder, 'store'),
    environment: {},
    bytesPerSecond: BYTES_PER_SECOND,
    folder: join(folder, 'files'),
    hypervisor: { monitorOf: () => undefined, inspect: async () => undefined },
    volumes,
    diskLocks: new KeyedMutex(),
    userOf: async () => undefined,
    store: {
      get: async () => ({ metadata: { name: 'key' }, data: { key: Buffer.from('01'.repeat(32)).toString('base64') } }),
    } as never, // the benchmark uses nothing else of it
    namespace: 'node-n1',
    clock,
    random,
  })
  const location = { accountId: 'a', secretName: 'key', storageId: 's1' }
  let count = 0
  let turn = 0
  return {
    folder,
    /** The disk as qcow2; the written data as a raw file, because restic reads zeros too. */
    path,
    raw,
    mebibytes,
    changedMebibytes: Math.max(1, Math.floor((mebibytes * CHANGED_SHARE) / CHANGED_PLACES)) * CHANGED_PLACES,
    /** Backs the disk up, and returns the backup. It is full without a parent. */
    async backUp(parent?: string): Promise<string> {
      const name = `b${(count += 1)}`
      const backup = { namespace: 'acct-a', name, uid: `uid-${name}` }
      const result = await work.run(
        { ...location, work: 'write', volume: VOLUME, backup, ...defined({ parent }) },
        { signal: new AbortController().signal, onProgress: () => {} },
      )
      if (result.parent !== parent) throw new Error(`it read everything: ${result.fullBecause ?? ''}`)
      return name
    },
    /** With new content, so that no chunk of it is in the store. */
    rewrite: () => fill(0, mebibytes),
    /** Changes a tenth of the written data, in different places each time. */
    async change(): Promise<void> {
      const length = Math.max(1, Math.floor((mebibytes * CHANGED_SHARE) / CHANGED_PLACES))
      const distance = Math.floor(mebibytes / CHANGED_PLACES)
      turn = (turn + length) % Math.max(1, distance - length + 1)
      for (let place = 0; place < CHANGED_PLACES; place++)
        if (place * distance + turn + length <= mebibytes) await fill(place * distance + turn, length)
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The duration of the work. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = clock.monotonicMilliseconds()
  await work()
  return (clock.monotonicMilliseconds() - startedAt) / 1_000
}

/** Runs restic with a repository in the folder. */
export async function openRestic(folder: string) {
  const passwordFile = join(folder, 'restic-password')
  await writeFile(passwordFile, 'bench')
  let count = 0
  let repository = ''
  const run = (...input: readonly string[]) =>
    runProgram('restic', ['--quiet', '--no-cache', '--repo', repository, '--password-file', passwordFile, ...input], {
      timeoutMilliseconds: 240_000,
    })
  return {
    /** Uses another, empty repository from now on. */
    async begin(): Promise<void> {
      repository = join(folder, `restic-${(count += 1)}`)
      await run('init')
    },
    backUp: (file: string) => run('backup', file),
  }
}
