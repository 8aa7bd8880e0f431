/** Backups of real disks: written by qemu-io, read over NBD, compared by qemu-img. */
import { mkdir, mkdtemp, readdir, rm, truncate, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openBandwidth, throttled } from '../../../../agents/node/backup/bandwidth.ts'
import { ALLOCATION, bitmapContext, openNbd } from '../../../../agents/node/backup/nbd.ts'
import { withServedDisk } from '../../../../agents/node/backup/served-disk.ts'
import { sweepChunks } from '../../../../agents/node/backup/sweep.ts'
import { type BackupProgress, writeBackup } from '../../../../agents/node/backup/write-backup.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { defined } from '../../../../domain/defined.ts'
import { openFolderStore } from '../../../../kit/chunks/folder-store.ts'
import { CHUNK_BYTES, digestAt, type ChunkManifest } from '../../../../kit/chunks/manifest.ts'
import type { ObjectStore } from '../../../../kit/chunks/object-store.ts'
import { openRepository, type Repository, restoreDisk, verifyBackup } from '../../../../kit/chunks/repository.ts'
import { DamagedObject } from '../../../../kit/chunks/seal.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'

const MEBIBYTE = 1_048_576
const LONGEST_BACKUP_SECONDS = 12 * 3_600
const clock: Clock = { ...systemClock, sleep: (milliseconds) => systemClock.sleep(Math.min(milliseconds, 20)) }
let folder: string
let disk: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-backup-'))
  disk = join(folder, 'disk.qcow2')
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '64M'])
  await write('write -P 1 0 3M', 'write -P 2 10M 64k', 'write -P 0 20M 2M', 'write -P 3 63M 1M')
})
afterEach(() => rm(folder, { recursive: true }))

const write = (...commands: string[]) => runProgram('qemu-io', [...commands.flatMap((each) => ['-c', each]), disk])
const bitmap = (...words: string[]) => runProgram('qemu-img', ['bitmap', ...words.slice(0, 1), disk, ...words.slice(1)])
const folderStore = () => openFolderStore(join(folder, 'repository'))
const open = (store: ObjectStore = folderStore()): Repository =>
  openRepository({ store, key: Buffer.alloc(32, 9), clock, random: systemRandom })

interface BackUp {
  readonly repository?: Repository
  readonly parent?: ChunkManifest
  readonly bitmap?: string
  readonly onProgress?: (progress: BackupProgress) => void
}

const backUp = (backup: string, { repository = open(), parent, bitmap: recorded, onProgress }: BackUp = {}) =>
  withServedDisk({ folder, path: disk, bitmap: recorded, clock }, async (served) =>
    writeBackup({
      repository,
      point: {
        sizeBytes: served.sizeBytes,
        read: (offset, length, place) => served.read(offset, length, place),
        data: await served.ranges(ALLOCATION),
        changed: recorded === undefined ? undefined : await served.ranges(bitmapContext(recorded)),
      },
      backup,
      origin: 'storage',
      parent,
      longestBackupSeconds: LONGEST_BACKUP_SECONDS,
      clock,
      ...defined({ onProgress }),
    }),
  )

/** Into a disk that held something else before. */
async function restore(backup: string, repository = open()): Promise<string> {
  const target = join(folder, 'restored.qcow2')
  const manifest = await repository.getManifest(backup)
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', target, String(manifest.sizeBytes)])
  await runProgram('qemu-io', ['-c', 'write -P 0x77 5M 10M', target])
  await withServedDisk({ folder, path: target, isWritable: true, clock }, (served) =>
    restoreDisk(repository, manifest, served),
  )
  return target
}
const compare = (one: string, other: string) => runProgram('qemu-img', ['compare', one, other])

it('a full backup restores to an identical disk, over any content', async () => {
  let progress: BackupProgress | undefined
  const manifest = await backUp('b1', { onProgress: (each) => void (progress = each) })
  expect(await compare(disk, await restore('b1'))).toContain('Images are identical')
  // Three equal chunks, one in part, one at the end; what was written as zeros is not kept.
  expect(await readdir(join(folder, 'repository', 'c'))).toHaveLength(3)
  expect(digestAt(manifest.digests, 20)).toBeUndefined()
  expect(progress?.bytesDone).toBe(progress?.bytesTotal)
  expect(progress?.bytesTotal).toBeLessThan(8 * MEBIBYTE)
})

it('an incremental backup reads what changed, and is complete without its parent', async () => {
  const parent = await backUp('b1')
  await bitmap('--add', 'from-b1')
  await write('write -P 4 1M 4k', 'write -P 5 40M 1M', 'discard 63M 1M')
  let progress: BackupProgress | undefined
  await backUp('b2', { parent, bitmap: 'from-b1', onProgress: (each) => void (progress = each) })
  expect(progress).toEqual({ bytesDone: 2 * MEBIBYTE, bytesTotal: 2 * MEBIBYTE, bytesSent: 2 * MEBIBYTE })
  await open().removeManifest('b1')
  expect(await compare(disk, await restore('b2'))).toContain('Images are identical')
})

it('a disk that grew since the parent is backed up to its end', async () => {
  const parent = await backUp('b1')
  await bitmap('--add', 'from-b1')
  await runProgram('qemu-img', ['resize', '-q', disk, '80M'])
  await write('write -P 6 79M 1M')
  await backUp('b2', { parent, bitmap: 'from-b1' })
  expect(await compare(disk, await restore('b2'))).toContain('Images are identical')
})

it('what was sent before a kill is not sent again', async () => {
  const store = folderStore()
  const dies = open({
    ...store,
    async put(name, bytes) {
      if (name.startsWith('m/')) throw new Error('killed')
      await store.put(name, bytes)
    },
  })
  await expect(backUp('b1', { repository: dies })).rejects.toThrow('killed')
  await expect(open().getManifest('b1')).rejects.toThrow(DamagedObject)
  let progress: BackupProgress | undefined
  await backUp('b1', { onProgress: (each) => void (progress = each) })
  expect(progress?.bytesSent).toBe(0)
  expect(await compare(disk, await restore('b1'))).toContain('Images are identical')
})

it('a chunk that is there, but not whole, is sent again', async () => {
  await backUp('b1')
  await open().removeManifest('b1')
  const chunks = join(folder, 'repository', 'c')
  for (const name of await readdir(chunks)) await truncate(join(chunks, name), 40)
  await backUp('b1')
  expect(await compare(disk, await restore('b1'))).toContain('Images are identical')
})

it('is not complete when its parent was removed in between: its chunks may have been swept', async () => {
  const parent = await backUp('b1')
  await bitmap('--add', 'from-b1')
  await open().removeManifest('b1')
  await expect(backUp('b2', { parent, bitmap: 'from-b1' })).rejects.toThrow('m/b1 was removed')
  await expect(open().getManifest('b2')).rejects.toThrow(DamagedObject)
})

it('a sweep removes what no backup names once it is old, and nothing else', async () => {
  const repository = open()
  const chunks = join(folder, 'repository', 'c')
  const age = async (hours: number) => {
    for (const name of await readdir(chunks)) {
      const at = new Date(Date.now() - hours * 3_600_000)
      await utimes(join(chunks, name), at, at)
    }
  }
  const sweep = (backups: readonly string[]) =>
    sweepChunks({ repository, backups, longestBackupSeconds: LONGEST_BACKUP_SECONDS, clock })
  await backUp('b1')
  await write('write -P 8 30M 2M')
  await backUp('b2')
  await repository.removeManifest('b2')
  await age(23)
  expect(await sweep(['b1'])).toBe(0)
  await age(25)
  await expect(sweep(['b1', 'b3'])).rejects.toThrow('m/b3')
  expect(await sweep(['b1'])).toBe(1)
  await verifyBackup(repository, 'b1')
  // What nobody names may go at any moment, so a backup that needs it again writes it anew.
  await repository.removeManifest('b1')
  let progress: BackupProgress | undefined
  await backUp('b3', { onProgress: (each) => void (progress = each) })
  expect(progress?.bytesSent).toBeGreaterThan(0)
  expect(await sweep(['b3'])).toBe(0)
})

it('a sweep removes nothing while a manifest cannot be read', async () => {
  const repository = open()
  await backUp('b1')
  const chunks = join(folder, 'repository', 'c')
  const files = await readdir(chunks)
  for (const name of files) await utimes(join(chunks, name), new Date(0), new Date(0))
  await truncate(join(folder, 'repository', 'm', 'b1'), 10)
  await expect(
    sweepChunks({ repository, backups: ['b1'], longestBackupSeconds: LONGEST_BACKUP_SECONDS, clock }),
  ).rejects.toThrow('m/b1')
  expect(await readdir(chunks)).toEqual(files)
})

it('bandwidth is an average over all requests, in both directions', async () => {
  let now = 0
  const virtual: Clock = {
    ...systemClock,
    monotonicMilliseconds: () => now,
    sleep: async (milliseconds) => void (now += milliseconds),
  }
  const store = throttled(folderStore(), openBandwidth(1_000, virtual))
  for (const name of ['c/a', 'c/b', 'c/d']) await store.put(name, Buffer.alloc(2_000))
  expect(now).toBe(4_000)
  await store.get('c/a', 2_000)
  await store.get('c/b', 2_000)
  expect(now).toBe(8_000)
})

it('the NBD client says why a disk cannot be had', async () => {
  const served = { folder, path: disk, clock }
  await expect(withServedDisk({ ...served, bitmap: 'none' }, async () => {})).rejects.toThrow(/none/)
  await expect(withServedDisk({ ...served, path: join(folder, 'absent') }, async () => {})).rejects.toThrow(/absent/)
  await withServedDisk(served, async (opened) => {
    await expect(opened.ranges('other:context')).rejects.toThrow('was not asked for')
    await expect(opened.read(64 * MEBIBYTE, CHUNK_BYTES)).rejects.toThrow()
    expect((await opened.read(10 * MEBIBYTE, 1))[0]).toBe(2)
    await expect(opened.write(0, Buffer.from('x'))).rejects.toThrow()
  })
  const sockets = (await readdir(folder)).filter((name) => name.startsWith('nbd-'))
  expect(sockets).toEqual([])
  await mkdir(join(folder, 'other'))
  await expect(openNbd({ socket: join(folder, 'other', 's'), exportName: 'disk' })).rejects.toThrow()
})
