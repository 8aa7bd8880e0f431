/** A custom image on a real host, from the server that has it to the guest that boots it. */
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openQemu } from '../../../agents/node/drivers/hypervisor/qemu.ts'
import { bootSector, probeQemu, QEMU_BINARY } from '../../../agents/node/drivers/hypervisor/qemu-probe.ts'
import { openDiskServer } from '../../../agents/node/drivers/storage/disk-server.ts'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { bootId } from '../../../agents/node/host.ts'
import { openImageStore } from '../../../agents/node/images/image-store.ts'
import { importImage } from '../../../agents/node/images/import/index.ts'
import { runProgram } from '../../../agents/node/run-program.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { eventually } from '../../eventually.ts'
import { startHostileServer } from './images/import/hostile-server.ts'

const MARKER = 'booted from the image'
const NAME = 'acct-1.mine'

it('a guest boots the copy of an image, also when the image is deleted', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-image-'))
  const disk = Buffer.concat([bootSector(`${MARKER}\r\n`), Buffer.alloc(1024 * 1024 - 512)])
  const server = await startHostileServer((_request, response) => void response.end(disk))
  const source = {
    url: `https://images.test:${server.port}/disk.img`,
    checksum: createHash('sha256').update(disk).digest('hex'),
  }
  const openImages = async () =>
    openImageStore({
      server: await openDiskServer({ folder: join(folder, 'images-served'), host: '127.0.0.1', clock: systemClock }),
      folder: join(folder, 'images'),
      clock: systemClock,
      importDisk: (from, options) => importImage(from, { ...options, trust: server.trust }),
    })
  const images = await openImages()
  await images.import(NAME, source)
  const held = await images.inspect(NAME)
  expect(held).toMatchObject({ name: NAME, sizeGibibytes: 1 })
  expect(await (await openImages()).inspect(NAME)).toEqual(held)
  expect((await readdir(join(folder, 'images'))).toSorted()).toEqual([`${NAME}.json`, `${NAME}.qcow2`])

  const volumes = await openQcow2Volumes({
    imageFolder: folder,
    folder: join(folder, 'volumes'),
    server: await openDiskServer({ folder: join(folder, 'served'), host: '127.0.0.1', clock: systemClock }),
  })
  await volumes.create({ name: 'boot', sizeGibibytes: 2, copyOf: held?.path ?? '' })
  await images.remove(NAME)
  expect(await readdir(join(folder, 'images'))).toEqual([])
  const facts = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', await volumes.pathOf('boot')]))
  expect(facts).toMatchObject({ format: 'qcow2', 'virtual-size': 2 * 1024 ** 3 })
  expect(facts).not.toHaveProperty('backing-filename')

  const boot = (await bootId()) ?? 'unknown'
  const hypervisor = await openQemu({
    folder: join(folder, 'guests'),
    binary: QEMU_BINARY,
    machine: await probeQemu({ cacheFile: join(folder, 'accelerator'), bootId: boot, clock: systemClock }),
    network: { isOutboundAllowed: false },
    bootId: boot,
    migrationHost: '127.0.0.1',
    clock: systemClock,
    log: silentLog,
  })
  try {
    await hypervisor.start({
      name: 'guest',
      uid: 'uid-1',
      incarnation: 1,
      hostname: 'web-1',
      cores: 1,
      memoryMebibytes: 128,
      boot: undefined,
      disks: [{ path: await volumes.pathOf('boot'), serial: 'boot' }],
      interfaces: [],
      forwardedPorts: [],
      seed: Buffer.alloc(512),
    })
    await eventually('the marker', () => hypervisor.console('guest').tail().toString().includes(MARKER) || undefined)
  } finally {
    await hypervisor.forget('guest')
    await hypervisor.close()
    await server.close()
    await rm(folder, { recursive: true, force: true })
  }
})

it('an image of which an agent was killed in the middle is not there', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-image-'))
  await mkdir(join(folder, 'import-half'))
  await writeFile(join(folder, 'half.qcow2'), 'without its record')
  const images = await openImageStore({
    folder,
    clock: systemClock,
    server: await openDiskServer({ folder: `${folder}-served`, host: '127.0.0.1', clock: systemClock }),
  })
  // It is found by its name all the same, so that it is removed where no object names it.
  expect([await images.names(), await images.inspect('half')]).toEqual([['half'], undefined])
  await images.remove('half')
  expect(await readdir(folder)).toEqual([])
  await rm(folder, { recursive: true })
  await rm(`${folder}-served`, { recursive: true })
})

it('an image is made of the disk of a server, and another host copies what this one serves', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-image-'))
  const open = async (host: string) => {
    const at = join(folder, host)
    await mkdir(at)
    const server = await openDiskServer({ folder: join(at, 'served'), host: '127.0.0.1', clock: systemClock })
    return {
      images: await openImageStore({ folder: join(at, 'images'), server, clock: systemClock }),
      volumes: await openQcow2Volumes({ folder: join(at, 'volumes'), imageFolder: join(at, 'templates'), server }),
    }
  }
  const [one, other] = [await open('one'), await open('other')]
  try {
    const origin = { name: 'tiny-linux', version: '1' }
    await one.volumes.create({ name: 'boot', sizeGibibytes: 2, origin })
    const written = (path: string, command: string) => runProgram('qemu-io', ['-f', 'qcow2', '-c', command, path])
    await written(await one.volumes.pathOf('boot'), 'write -P 0x5a 1M 64k')
    await one.images.make(NAME, { path: await one.volumes.pathOf('boot'), origin })
    await one.volumes.remove('boot')
    expect(await one.images.inspect(NAME)).toMatchObject({ sizeGibibytes: 2, origin })

    const key = 'ab'.repeat(32)
    await one.images.serve(NAME, key)
    const at = one.images.servedAt(NAME)
    if (at === undefined) throw new Error('the image is not served')
    await expect(other.images.copy(NAME, { ...at, key: 'cd'.repeat(32) })).rejects.toThrow()
    expect(await other.images.inspect(NAME)).toBeUndefined()
    await other.images.copy(NAME, { ...at, key, origin })
    await one.images.remove(NAME)
    expect([one.images.servedAt(NAME), await other.images.inspect(NAME)]).toMatchObject([
      undefined,
      { sizeGibibytes: 2, origin },
    ])
    const held = await other.images.inspect(NAME)
    await other.volumes.create({ name: 'new', sizeGibibytes: 3, copyOf: held?.path ?? '', origin })
    expect(await other.volumes.inspect('new')).toMatchObject({ sizeGibibytes: 3, source: origin })
    await written(await other.volumes.pathOf('new'), 'read -P 0x5a 1M 64k')

    // What a snapshot holds is what the image is, whatever the disk is by now.
    const disk = await other.volumes.pathOf('new')
    await other.volumes.takeSnapshot('new', 'point')
    await written(disk, 'write -P 0x77 1M 64k')
    const write = (of: string) => (path: string) => other.volumes.copySnapshot({ volume: 'new', snapshot: of }, path)
    await expect(other.images.fill('acct-1.lost', { write: write('nothing') })).rejects.toThrow('has no snapshot')
    expect(await other.images.inspect('acct-1.lost')).toBeUndefined()
    await other.images.fill('acct-1.point', { write: write('point'), origin })
    const point = await other.images.inspect('acct-1.point')
    expect(point).toMatchObject({ sizeGibibytes: 3, origin })
    await other.volumes.remove('new')
    await written(point?.path ?? '', 'read -P 0x5a 1M 64k')
    // So does one of what is written to an empty disk, as a backup is.
    await other.images.fill('acct-1.kept', {
      sizeGibibytes: 2,
      write: (path) => written(path, 'write -P 0x33 0 64k').then(() => undefined),
    })
    const kept = await other.images.inspect('acct-1.kept')
    expect(kept).toMatchObject({ sizeGibibytes: 2 })
    await written(kept?.path ?? '', 'read -P 0x33 0 64k')
    await written(kept?.path ?? '', 'read -P 0 64k 64k')
  } finally {
    await one.images.stopServing(NAME)
    await other.images.stopServing(NAME)
    await rm(folder, { recursive: true, force: true })
  }
})
