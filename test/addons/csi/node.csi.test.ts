/** The node part with real disks: what is on them stays, whatever happens to them. */
import { execFile } from 'node:child_process'
import { mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { status } from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { type Caller, callerOf, type Driver, startDriver } from './driver.ts'
import { LoopDisks } from './loop-disks.ts'

const run = promisify(execFile)
const GIBIBYTE = 1024 ** 3

let folder: string
let disks: LoopDisks
let driver: Driver
let node: Caller

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-csi-'))
  disks = new LoopDisks(folder)
  await start()
})
afterAll(async () => {
  node?.close()
  await driver?.stop()
  const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '')
  for (const path of mounts.filter((mount) => mount.startsWith(`${folder}/`)).toReversed()) await run('umount', [path])
  await disks?.end()
  await rm(folder, { recursive: true, force: true })
})

async function start(): Promise<void> {
  const settings = { SVCCLOUD_SERVER_ID: 'server', SVCCLOUD_ZONE: 'zone-1', SVCCLOUD_DISKS: disks.byId }
  driver = await startDriver('node', folder, settings)
  node = callerOf(driver.socket, 'Node')
}

interface Use {
  readonly serial?: string
  readonly type?: string
  readonly mode?: string
  readonly name?: string
  readonly isReadOnly?: boolean
  readonly isRaw?: boolean
}

interface Volume {
  readonly volumeId: string
  readonly serial: string
  readonly staged: string
  target(name?: string): string
  stage(use?: Use): Promise<unknown>
  publish(use?: Use): Promise<unknown>
  unpublish(name?: string): Promise<unknown>
  unstage(): Promise<unknown>
}

/** A volume that is not attached yet. */
function newVolume(): Volume {
  const volumeId = newUuid(systemRandom)
  const serial = volumeId.replaceAll('-', '').slice(0, 20)
  const staged = join(folder, volumeId, 'staged')
  const target = (name = 'target') => join(folder, volumeId, name)
  const requestOf = ({ type = '', mode = 'SINGLE_NODE_WRITER', isRaw = false, ...use }: Use) => ({
    volumeId,
    stagingTargetPath: staged,
    publishContext: { serial: use.serial ?? serial },
    volumeCapability: { ...(isRaw ? { block: {} } : { mount: { fsType: type } }), accessMode: { mode } },
  })
  return {
    volumeId,
    serial,
    staged,
    target,
    stage: (use = {}) => node.call('NodeStageVolume', requestOf(use)),
    publish: (use = {}) =>
      node.call('NodePublishVolume', {
        ...requestOf(use),
        targetPath: target(use.name),
        readonly: use.isReadOnly ?? false,
      }),
    unpublish: (name) => node.call('NodeUnpublishVolume', { volumeId, targetPath: target(name) }),
    unstage: () => node.call('NodeUnstageVolume', { volumeId, stagingTargetPath: staged }),
  }
}

const typeOn = async (device: string): Promise<string> =>
  (await run('blkid', ['--probe', '--match-tag', 'TYPE', '--output', 'value', device])).stdout.trim()

test.each(['ext4', 'xfs'])('what was written to %s is there again after the node part was killed', async (type) => {
  const volume = newVolume()
  const device = await disks.add(volume.serial, 1)
  await volume.stage({ type })
  await volume.publish({ type })
  expect(await typeOn(device)).toBe(type)
  await writeFile(join(volume.target(), 'a'), 'kept')
  driver.process.kill('SIGKILL')
  node.close()
  await start()
  await volume.stage({ type })
  await volume.publish({ type })
  expect(await readFile(join(volume.target(), 'a'), 'utf8')).toBe('kept')
  await volume.unpublish()
  await volume.unstage()
  // on its way to another node
  await disks.remove(volume.serial)
  await disks.add(volume.serial, 1)
  await volume.stage({ type })
  await volume.publish({ type })
  expect(await readFile(join(volume.target(), 'a'), 'utf8')).toBe('kept')
  await volume.unpublish()
  await volume.unpublish()
  await volume.unstage()
  await volume.unstage()
})

/** What the kernel wants of whoever lets ext4 grow while it is mounted; root in a container may be without it. */
const CAP_SYS_RESOURCE = 24
const capabilities = BigInt(`0x${/^CapEff:\s*(\w+)/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1]}`)
const growing = ['xfs', ...((capabilities >> BigInt(CAP_SYS_RESOURCE)) & 1n ? ['ext4'] : [])]

test.each(growing)('%s grows with its disk, whether that comes larger or grows while it is in use', async (type) => {
  const volume = newVolume()
  const paths = { volumeId: volume.volumeId, volumePath: volume.target() }
  const bytes = async () => {
    const { usage } = await node.call<{ usage: { total: number; unit: string }[] }>('NodeGetVolumeStats', paths)
    return usage.find(({ unit }) => unit === 'BYTES')?.total
  }
  await disks.add(volume.serial, 1)
  await volume.stage({ type })
  await writeFile(join(volume.staged, 'a'), 'kept')
  await volume.unstage()
  await disks.grow(volume.serial, 2)
  await volume.stage({ type })
  await volume.publish({ type })
  expect(await bytes()).toBeGreaterThan(1.8 * GIBIBYTE)
  await disks.grow(volume.serial, 3)
  const grown = await node.call<{ capacityBytes: number }>('NodeExpandVolume', paths)
  expect(grown.capacityBytes).toBe(3 * GIBIBYTE)
  expect(await bytes()).toBeGreaterThan(2.8 * GIBIBYTE)
  expect(await readFile(join(volume.target(), 'a'), 'utf8')).toBe('kept')
  await volume.unpublish()
  await volume.unstage()
})

/** A table of one partition, from its second MiB on. */
async function writePartition(device: string): Promise<void> {
  const sector = Buffer.alloc(512)
  sector.writeUInt8(0x83, 446 + 4)
  sector.writeUInt32LE(2_048, 446 + 8)
  sector.writeUInt32LE(100_000, 446 + 12)
  sector.writeUInt16LE(0xaa55, 510)
  const file = await open(device, 'r+')
  await file.write(sector, 0, sector.length, 0)
  await file.sync()
  await file.close()
}

test('a disk that holds something else is never formatted', async () => {
  const volume = newVolume()
  const device = await disks.add(volume.serial, 1)
  await run('mkfs.xfs', ['-q', device])
  await expect(volume.stage({ type: 'ext4' })).rejects.toMatchObject({
    code: status.FAILED_PRECONDITION,
    details: 'the disk has xfs, not ext4',
  })
  expect(await typeOn(device)).toBe('xfs')

  const parted = newVolume()
  const other = await disks.add(parted.serial, 1)
  await writePartition(other)
  const before = (await run('sh', ['-c', `head -c 1048576 ${other} | sha256sum`])).stdout
  await expect(parted.stage()).rejects.toMatchObject({ code: status.FAILED_PRECONDITION })
  expect((await run('sh', ['-c', `head -c 1048576 ${other} | sha256sum`])).stdout).toBe(before)
})

test('a volume is found by the serial of its disk only', async () => {
  const [attached, other] = [newVolume(), newVolume()]
  await disks.add(attached.serial, 1)
  await attached.stage()
  await expect(attached.stage({ serial: '../../../dev/sda' })).rejects.toMatchObject({ code: status.INVALID_ARGUMENT })
  // what is staged is another disk than the one that is asked for
  await disks.add(other.serial, 1)
  await expect(attached.stage({ serial: other.serial })).rejects.toMatchObject({ code: status.ALREADY_EXISTS })
  await expect(attached.publish({ serial: other.serial })).rejects.toMatchObject({ code: status.FAILED_PRECONDITION })
  await expect(other.publish()).rejects.toMatchObject({ code: status.FAILED_PRECONDITION })
  await attached.unstage()
})

test('readers do not write, and one user is one', async () => {
  const volume = newVolume()
  await disks.add(volume.serial, 1)
  const mode = 'SINGLE_NODE_MULTI_WRITER'
  await volume.stage({ mode })
  await volume.publish({ mode, name: 'writer' })
  await volume.publish({ mode, name: 'reader', isReadOnly: true })
  await writeFile(join(volume.target('writer'), 'a'), 'seen')
  expect(await readFile(join(volume.target('reader'), 'a'), 'utf8')).toBe('seen')
  await expect(writeFile(join(volume.target('reader'), 'b'), '')).rejects.toMatchObject({ code: 'EROFS' })
  await expect(volume.publish({ mode: 'SINGLE_NODE_SINGLE_WRITER', name: 'third' })).rejects.toMatchObject({
    code: status.FAILED_PRECONDITION,
  })
  // data never go with a target that could not be unmounted
  await volume.unpublish('reader')
  await volume.unpublish('writer')
  await volume.unstage()
})

test('a raw disk is a disk, for one user when that is asked for', async () => {
  const volume = newVolume()
  await disks.add(volume.serial, 1)
  const use = { isRaw: true, mode: 'SINGLE_NODE_SINGLE_WRITER' }
  await volume.stage(use)
  await volume.publish(use)
  await volume.publish(use)
  expect((await stat(volume.target())).isBlockDevice()).toBe(true)
  await run('dd', ['if=/dev/urandom', `of=${volume.target()}`, 'bs=4096', 'count=1', 'conv=fsync,notrunc'])
  await expect(volume.publish({ ...use, name: 'other' })).rejects.toMatchObject({ code: status.FAILED_PRECONDITION })
  await expect(volume.publish({ isRaw: true, name: 'reader', isReadOnly: true })).rejects.toMatchObject({
    code: status.INVALID_ARGUMENT,
  })
  const paths = { volumeId: volume.volumeId, volumePath: volume.target() }
  expect(await node.call('NodeGetVolumeStats', paths)).toMatchObject({ usage: [{ total: GIBIBYTE, unit: 'BYTES' }] })
  await volume.unpublish()
  await expect(stat(volume.target())).rejects.toMatchObject({ code: 'ENOENT' })
  await volume.unstage()
})

test('a copy of a volume is used beside it', async () => {
  const [volume, copy] = [newVolume(), newVolume()]
  const [device, other] = [await disks.add(volume.serial, 1), await disks.add(copy.serial, 1)]
  await volume.stage({ type: 'xfs' })
  await writeFile(join(volume.staged, 'a'), 'copied')
  await volume.unstage()
  await run('dd', [`if=${device}`, `of=${other}`, 'bs=1M', 'conv=sparse,fsync'])
  await volume.stage({ type: 'xfs' })
  await copy.stage({ type: 'xfs' })
  expect(await readFile(join(copy.staged, 'a'), 'utf8')).toBe('copied')
  await volume.unstage()
  await copy.unstage()
})
