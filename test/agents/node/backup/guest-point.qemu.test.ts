/** Points of a disk that QEMU has open and goes on writing to. No guest runs here: the monitor writes to its device. */
import { type ChildProcess, spawn } from 'node:child_process'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { closeGuestPoint, type GuestPoint, openGuestPoint } from '../../../../agents/node/backup/guest-point.ts'
import { ALLOCATION, bitmapContext, openNbd } from '../../../../agents/node/backup/nbd.ts'
import { writeBackup } from '../../../../agents/node/backup/write-backup.ts'
import { withServedDisk } from '../../../../agents/node/backup/served-disk.ts'
import { connectQmp, type Qmp } from '../../../../agents/node/drivers/hypervisor/qmp.ts'
import { QEMU_BINARY } from '../../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import type { FrozenWork } from '../../../../agents/node/guest-agent/freeze.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { openFolderStore } from '../../../../kit/chunks/folder-store.ts'
import type { ChunkManifest } from '../../../../kit/chunks/manifest.ts'
import { openRepository, restoreDisk } from '../../../../kit/chunks/repository.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'

const DEVICE = '/machine/peripheral/vd0/virtio-backend'
let folder: string
let disk: string
let qemu: ChildProcess
let qmp: Qmp

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-point-'))
  disk = join(folder, 'disk.qcow2')
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '64M'])
  await start()
})
afterEach(async () => {
  await end('SIGKILL')
  await rm(folder, { recursive: true })
})

async function start(): Promise<void> {
  const socket = join(folder, 'qmp')
  await rm(socket, { force: true })
  const file = JSON.stringify({ driver: 'file', 'node-name': 'file0', filename: disk, locking: 'on' })
  const node = JSON.stringify({ driver: 'qcow2', 'node-name': 'disk0', file: 'file0' })
  qemu = spawn(
    QEMU_BINARY,
    [
      '-M',
      'q35',
      '-accel',
      'tcg',
      '-m',
      '16',
      '-S',
      '-nodefaults',
      '-display',
      'none',
      '-qmp',
      `unix:${socket},server=on,wait=off`,
      '-blockdev',
      file,
      '-blockdev',
      node,
      '-device',
      'virtio-blk-pci,id=vd0,drive=disk0',
    ],
    { stdio: 'ignore' },
  )
  await expect.poll(() => connect(socket)).toBe(true)
}
const connect = (socket: string): Promise<boolean> =>
  connectQmp(socket, { clock, onEvent: () => {}, onClose: () => {} }).then(
    (connected) => {
      qmp = connected
      return true
    },
    () => false,
  )
async function end(signal: NodeJS.Signals): Promise<void> {
  const ended = new Promise((resolve) => qemu.once('exit', resolve))
  if (qemu.exitCode !== null || qemu.signalCode !== null) return
  qmp.close()
  qemu.kill(signal)
  await ended
}

const write = async (...commands: string[]) => {
  for (const command of commands)
    expect(await qmp.execute('human-monitor-command', { 'command-line': `qemu-io -d ${DEVICE} "${command}"` })).toBe('')
}
const repository = () =>
  openRepository({
    store: openFolderStore(join(folder, 'repository')),
    key: Buffer.alloc(32, 1),
    clock,
    random: systemRandom,
  })
const optionsOf = (backup: string, parent?: string) => ({
  execute: qmp.execute,
  whileFrozen: async <Result>(work: FrozenWork<Result>) => ({ result: await work(false), isFrozen: false }),
  path: disk,
  backup,
  parent,
  give: async (path: string) => path,
  overwrittenFile: join(folder, `${backup}.qcow2`),
  socket: join(folder, `${backup}.sock`),
  connectSocket: join(folder, `${backup}.sock`),
  clock,
})

async function read(
  backup: string,
  { exportName, bitmap }: GuestPoint,
  parent?: ChunkManifest,
): Promise<ChunkManifest> {
  const contexts = [ALLOCATION, ...(bitmap === undefined ? [] : [bitmapContext(bitmap)])]
  const served = await openNbd({ socket: join(folder, `${backup}.sock`), exportName, contexts })
  try {
    return await writeBackup({
      repository: repository(),
      point: {
        sizeBytes: served.sizeBytes,
        read: (offset, length, place) => served.read(offset, length, place),
        data: await served.ranges(ALLOCATION),
        changed: bitmap === undefined ? undefined : await served.ranges(bitmapContext(bitmap)),
      },
      backup,
      origin: 's1',
      parent,
      longestBackupSeconds: 3_600,
      clock,
    })
  } finally {
    served.close()
  }
}

/** Of the disk as it is now: what a point taken now must equal. */
async function copyNow(name: string): Promise<string> {
  await write('flush')
  await copyFile(disk, join(folder, name))
  return join(folder, name)
}
async function expectRestored(manifest: ChunkManifest, original: string): Promise<void> {
  const target = join(folder, `restored-${manifest.backup}`)
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', target, '64M'])
  await withServedDisk({ folder, path: target, isWritable: true, clock }, (served) =>
    restoreDisk(repository(), manifest, served),
  )
  expect(await runProgram('qemu-img', ['compare', '-U', original, target])).toContain('Images are identical')
}
/** Makes the point, lets the guest write, reads the point. */
async function backUp(backup: string, parent?: ChunkManifest, ...meanwhile: string[]) {
  const point = await openGuestPoint(optionsOf(backup, parent?.backup))
  await write(...meanwhile)
  const manifest = await read(backup, point, parent)
  await closeGuestPoint(optionsOf(backup), { isComplete: true })
  return { point, manifest }
}

it('reads the disk as it was at the point, despite later writes', async () => {
  await write('write -P 1 0 4M', 'write -P 2 30M 1M')
  const before = await copyNow('before')
  const { point, manifest } = await backUp('b1', undefined, 'write -P 9 1M 2M', 'write -P 9 50M 1M', 'discard 30M 1M')
  expect(point.changes).toEqual({ fullBecause: 'it is the first backup of the storage' })
  await expectRestored(manifest, before)
})

it('an incremental point has what was written between both points, and nothing of what came after', async () => {
  await write('write -P 1 0 4M')
  const first = await backUp('b1', undefined, 'write -P 2 8M 64k')
  await write('write -P 3 20M 1M')
  const before = await copyNow('before')
  const point = await openGuestPoint(optionsOf('b2', 'b1'))
  expect(point.changes).toEqual({ since: 'b1' })
  await write('write -P 4 40M 1M', 'write -P 4 0 1M')
  const manifest = await read('b2', point, first.manifest)
  await closeGuestPoint(optionsOf('b2'), { isComplete: true })
  await expectRestored(manifest, before)
  const after = await copyNow('after')
  const third = await backUp('b3', manifest)
  expect(third.point.changes).toEqual({ since: 'b2' })
  await expectRestored(third.manifest, after)
})

it('a backup that failed costs nothing: the next one builds on the one before', async () => {
  await write('write -P 1 0 4M')
  const first = await backUp('b1')
  await write('write -P 2 8M 1M')
  await openGuestPoint(optionsOf('b2', 'b1'))
  await write('write -P 3 10M 1M')
  await closeGuestPoint(optionsOf('b2'), { isComplete: false })
  await closeGuestPoint(optionsOf('b2'), { isComplete: false })
  const before = await copyNow('before')
  const { point, manifest } = await backUp('b3', first.manifest)
  expect(point.changes).toEqual({ since: 'b1' })
  await expectRestored(manifest, before)
})

it('an agent that comes back finds the same point', async () => {
  await write('write -P 1 0 4M')
  const first = await backUp('b1')
  await write('write -P 2 8M 1M')
  const before = await copyNow('before')
  const made = await openGuestPoint(optionsOf('b2', 'b1'))
  await write('write -P 3 8M 1M')
  qmp.close()
  await expect.poll(() => connect(join(folder, 'qmp'))).toBe(true)
  const found = await openGuestPoint(optionsOf('b2', 'b1'))
  expect(found).toEqual(made)
  await expectRestored(await read('b2', found, first.manifest), before)
})

it('changes are recorded over a restart of the guest, and found void after a kill', async () => {
  await write('write -P 1 0 4M')
  const first = await backUp('b1')
  await write('write -P 2 8M 1M')
  await end('SIGTERM')
  await start()
  await write('write -P 3 12M 1M')
  const before = await copyNow('before')
  const second = await backUp('b2', first.manifest)
  expect(second.point.changes).toEqual({ since: 'b1' })
  await expectRestored(second.manifest, before)
  await end('SIGTERM')
  await start()
  await write('write -P 4 16M 1M')
  await end('SIGKILL')
  await start()
  const third = await backUp('b3', second.manifest)
  expect(third.point.changes).toEqual({
    fullBecause: 'the record of what has changed was lost when its guest was killed',
  })
  await expectRestored(third.manifest, await copyNow('after'))
  const fourth = await backUp('b4', third.manifest)
  expect(fourth.point.changes).toEqual({ since: 'b3' })
})
