/** What an agent does for backups with real volumes, and what comes between. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openDiskWork } from '../../../../agents/node/backup/disk-work.ts'
import type { BackupWork } from '../../../../agents/node/backup/work.ts'
import { openDiskServer } from '../../../../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../../../../agents/node/drivers/storage/qcow2.ts'
import type { VolumeStore } from '../../../../agents/node/drivers/storage/volume-store.ts'
import { KeyedMutex } from '../../../../kit/sys/mutex.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { type Clock, systemClock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import type { BackupJobSpec } from '../../../../resources/backup-job/index.ts'

const GIBIBYTE = 1_073_741_824
const MEBIBYTE = 1_048_576
let folder: string
let volumes: VolumeStore
let work: BackupWork
let user: string | undefined
let clock: Clock
const diskLocks = new KeyedMutex()

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-work-'))
  await mkdir(join(folder, 'backups'))
  clock = systemClock
  user = undefined
  const server = await openDiskServer({ folder: join(folder, 'served'), host: '127.0.0.1', clock })
  volumes = await openQcow2Volumes({
    folder: join(folder, 'volumes'),
    server,
    imageFolder: join(folder, 'backups'),
  })
  await volumes.create({ name: 'v1', sizeGibibytes: 1 })
  work = openWork()
})
afterEach(() => rm(folder, { recursive: true }))

const openWork = (
  bytesPerSecond = 1_000 * MEBIBYTE,
  place: { location?: string; sources?: Record<string, string> } = {},
) =>
  openDiskWork({
    location: join(folder, 'store'),
    ...place,
    environment: {},
    bytesPerSecond,
    folder: join(folder, 'backups'),
    hypervisor: { monitorOf: () => undefined, inspect: async () => undefined },
    volumes,
    diskLocks,
    userOf: async () => user,
    store: {
      get: async () => ({ metadata: { name: 'key' }, data: { key: Buffer.from('01'.repeat(32)).toString('base64') } }),
    } as never, // nothing else is asked of it
    namespace: 'node-n1',
    clock,
    random: systemRandom,
  })

const jobOf = (work: BackupJobSpec['work'], name: string, more: Partial<BackupJobSpec> = {}): BackupJobSpec => ({
  backup: { namespace: 'acct-a', name, uid: `uid-${name}` },
  work,
  accountId: 'a',
  secretName: 'key',
  storageId: 's1',
  volume: 'v1',
  ...more,
})
const signal = new AbortController().signal
const run = (job: BackupJobSpec) => work.run(job, { signal, onProgress: () => {} })
const write = async (command: string, volume = 'v1') =>
  runProgram('qemu-io', ['-c', command, await volumes.pathOf(volume)])
async function expectEqual(one: string, other: string): Promise<void> {
  const paths = await Promise.all([one, other].map((name) => volumes.pathOf(name)))
  expect(await runProgram('qemu-img', ['compare', ...paths])).toContain('Images are identical')
}

it('writes full, then incremental, and restores in place and as a new disk', async () => {
  await write('write -P 1 0 8M')
  expect(await run(jobOf('write', 'b1'))).toMatchObject({
    sizeBytes: GIBIBYTE,
    fullBecause: 'it is the first backup of the storage',
    target: 'zone-object-store',
    isSameHost: true,
  })
  await write('write -P 2 2M 1M')
  expect(await run(jobOf('write', 'b2', { parent: 'b1' }))).toMatchObject({ parent: 'b1' })
  await volumes.create({ name: 'v2', sizeGibibytes: 1 })
  await run(jobOf('restore', 'b2', { volume: 'v2' }))
  await expectEqual('v1', 'v2')
  await write('write -P 9 0 32M')
  await run(jobOf('restore', 'b2'))
  await expectEqual('v1', 'v2')
  // What a restore writes is a change too.
  expect(await run(jobOf('write', 'b3', { parent: 'b2' }))).toMatchObject({ parent: 'b2' })
  await volumes.create({ name: 'v3', sizeGibibytes: 1 })
  await run(jobOf('restore', 'b3', { volume: 'v3' }))
  await expectEqual('v1', 'v3')
})

it('copies a backup to the store of another zone, and sends once what several share', async () => {
  await write('write -P 1 0 8M')
  await run(jobOf('write', 'b1'))
  await write('write -P 2 2M 1M')
  await run(jobOf('write', 'b2', { parent: 'b1' }))
  const other = openWork(undefined, { location: join(folder, 'other'), sources: { z1: join(folder, 'store') } })
  const sent: (number | undefined)[] = []
  const copy = (from: string, name: string, more: Partial<BackupJobSpec> = {}) =>
    other.run(jobOf('copy', name, { copyOf: { zone: 'z1', name: from }, ...more }), {
      signal,
      onProgress: ({ bytesDone, bytesSent }) => {
        if (bytesDone === GIBIBYTE) sent.push(bytesSent)
      },
    })
  expect(await copy('b1', 'c1')).toMatchObject({ sizeBytes: GIBIBYTE, target: 'zone-object-store', isSameHost: false })
  await copy('b2', 'c2', { parent: 'c1' })
  // One chunk stands for eight that are the same.
  expect(sent).toEqual([MEBIBYTE, MEBIBYTE])
  await rm(join(folder, 'store'), { recursive: true })
  expect(await copy('b2', 'c2')).toMatchObject({ sizeBytes: GIBIBYTE })
  await volumes.create({ name: 'v2', sizeGibibytes: 1 })
  await other.run(jobOf('restore', 'c2', { volume: 'v2' }), { signal, onProgress: () => {} })
  await expectEqual('v1', 'v2')
  await expect(copy('b1', 'c3')).rejects.toThrow('m/b1 is missing')
  await expect(copy('b1', 'c3', { copyOf: { zone: 'z2', name: 'b1' } })).rejects.toThrow('does not reach')
})

it('a restore to a larger disk leaves nothing behind the end of the backup', async () => {
  await write('write -P 1 0 1M')
  await run(jobOf('write', 'b1'))
  await volumes.grow('v1', 2)
  await write('write -P 9 1500M 1M')
  await run(jobOf('restore', 'b1'))
  await volumes.create({ name: 'v2', sizeGibibytes: 2 })
  await write('write -P 1 0 1M', 'v2')
  await expectEqual('v1', 'v2')
})

it('reads everything when the record of changes is missing, and says why', async () => {
  await write('write -P 1 0 4M')
  await run(jobOf('write', 'b1'))
  await runProgram('qemu-img', ['bitmap', '--remove', await volumes.pathOf('v1'), 'backup-b1'])
  await write('write -P 2 0 1M')
  expect(await run(jobOf('write', 'b2', { parent: 'b1' }))).toMatchObject({
    fullBecause: 'the disk has no record of what has changed since the last backup',
  })
  expect(await run(jobOf('write', 'b3', { parent: 'gone' }))).toMatchObject({
    fullBecause: 'it is the first backup of the storage',
  })
})

it('is complete at once when an attempt that was killed had written the manifest', async () => {
  await write('write -P 1 0 4M')
  await run(jobOf('write', 'b1'))
  await write('write -P 2 0 4M')
  expect(await run(jobOf('write', 'b1'))).toMatchObject({ sizeBytes: GIBIBYTE })
  expect(await run(jobOf('write', 'b2', { parent: 'b1' }))).toMatchObject({ parent: 'b1' })
})

it('work that was abandoned leaves the record of the backup before it', async () => {
  await write('write -P 1 0 4M')
  await run(jobOf('write', 'b1'))
  const stop = new AbortController()
  await write('write -P 2 0 4M')
  const interrupted = work.run(jobOf('write', 'b2', { parent: 'b1' }), {
    signal: stop.signal,
    onProgress: () => stop.abort(),
  })
  await expect(interrupted).rejects.toThrow()
  await work.abandon(jobOf('write', 'b2'))
  expect(await run(jobOf('write', 'b3', { parent: 'b1' }))).toMatchObject({ parent: 'b1' })
})

it('a guest that wants the disk has it at once', async () => {
  await write('write -P 1 0 64M')
  work = openWork(1 * MEBIBYTE)
  const reading = Promise.withResolvers<void>()
  const interrupted = work.run(jobOf('write', 'b1'), { signal, onProgress: () => reading.resolve() })
  interrupted.catch(() => {})
  await reading.promise
  await work.yieldDisk('v1')
  await expect(interrupted).rejects.toThrow('needed by its guest')
  // QEMU could open it for writing now.
  await write('write -P 2 0 1M')
})

it('never restores to a disk that a guest has', async () => {
  await write('write -P 1 0 4M')
  await run(jobOf('write', 'b1'))
  user = 'guest'
  await expect(run(jobOf('restore', 'b1'))).rejects.toThrow('guest')
})

it('verifies by reading, and removes what nothing names', async () => {
  await write('write -P 1 0 4M')
  await run(jobOf('write', 'b1'))
  expect(await run(jobOf('verify', 'b1'))).toMatchObject({ sizeBytes: GIBIBYTE })
  await rm(join(folder, 'store', 'a', 'c'), { recursive: true })
  clock = { ...systemClock, sleep: async () => {} }
  work = openWork()
  expect((await run(jobOf('verify', 'b1'))).damage).toContain('is missing')
  await run(jobOf('remove', 'b1', { completeBackups: [] }))
  expect((await run(jobOf('verify', 'b1'))).damage).toBe('m/b1 is missing')
})
