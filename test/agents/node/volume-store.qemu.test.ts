import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openDiskServer } from '../../../agents/node/drivers/storage/disk-server.ts'
import { openPool } from '../../../agents/node/drivers/storage/pool.ts'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { takeSnapshotClosed } from '../../../agents/node/drivers/storage/qcow2-snapshots.ts'
import type { VolumeStore } from '../../../agents/node/drivers/storage/volume-store.ts'
import { runProgram } from '../../../agents/node/run-program.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { volumeStoreContract } from './volume-store-contract.ts'

async function openFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-volumes-'))
  await mkdir(join(folder, 'images'))
  const disk = join(folder, 'images', 'template.qcow2')
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '1G'])
  await runProgram('qemu-io', ['-c', 'write -P 0x5a 1M 64k', disk])
  const boot = { kernel: '/k', initialRamdisk: '/i', commandLine: '' }
  const opened: VolumeStore[] = []
  const openHost = async (host: string) => {
    const server = await openDiskServer({ folder: join(folder, host, 'served'), host: '127.0.0.1', clock: systemClock })
    const store = await openQcow2Volumes({
      folder: join(folder, host, 'volumes'),
      server,
      imageFolder: join(folder, 'images'),
      pools: [
        await openPool({ path: join(folder, 'shared'), markerFile: join(folder, host, 'pool'), random: systemRandom }),
      ],
    })
    opened.push(store)
    return store
  }
  return {
    folder,
    volumes: join(folder, 'alpha', 'volumes'),
    open: () => openHost('alpha'),
    openOther: () => openHost('beta'),
    template: { name: 'debian-13', version: '1', boot, disk },
    takeFrozen: (path: string, labelOf: (isFrozen: boolean) => string) => takeSnapshotClosed(path, () => labelOf(true)),
    async close() {
      for (const store of opened) for (const { name } of await store.list()) await store.stopServing(name)
      await rm(folder, { recursive: true })
    },
  }
}

volumeStoreContract(openFolder)

const pattern = (path: string): Promise<string> => runProgram('qemu-io', ['-r', '-c', 'read -P 0x5a 1M 64k', path])

it('a qcow2 volume is an overlay of its template, in its own size', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  await volumes.create({ name: 'a', sizeGibibytes: 3, source: world.template })
  const facts = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', await volumes.pathOf('a')]))
  expect(facts).toMatchObject({
    format: 'qcow2',
    'virtual-size': 3 * 1024 ** 3,
    'backing-filename': world.template.disk,
  })
  await world.close()
})

it('says how much room each snapshot alone keeps', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  await volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template })
  const write = async (command: string) => runProgram('qemu-io', ['-c', command, await volumes.pathOf('a')])
  const room = async () => Object.fromEntries(await volumes.roomOfSnapshots('a'))
  await write('write -P 1 0 4M')
  await volumes.takeSnapshot('a', 's1')
  expect(await room()).toEqual({ s1: 0 }) // the disk shares all of it
  await write('write -P 2 0 1M')
  const table = 65_536
  expect(await room()).toEqual({ s1: 1_048_576 + table })
  await volumes.takeSnapshot('a', 's2')
  await write('write -P 3 0 2M')
  // of its two, the first is what lies between the snapshots, and the second both have
  expect(await room()).toEqual({ s1: 1_048_576 + table, s2: 1_048_576 + table })
  await volumes.removeSnapshot('a', 's1')
  expect(await room()).toEqual({ s2: 2 * 1_048_576 + table })
  await writeFile(await volumes.pathOf('a'), Buffer.alloc(100_000, 0xff))
  await expect(volumes.roomOfSnapshots('a')).rejects.toThrow('no qcow2 file')
  expect(await volumes.roomOfSnapshots('nowhere')).toEqual(new Map())
  await world.close()
})

it('no program of the host opens files that a header rewritten by a guest names', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  for (const name of ['a', 'b', 'other']) await volumes.create({ name, sizeGibibytes: 1, source: world.template })
  const [a, b, other] = await Promise.all(['a', 'b', 'other'].map((name) => volumes.pathOf(name)))
  expect(await volumes.checkedPathOf('a')).toBe(a)
  await runProgram('qemu-img', ['rebase', '-u', '-f', 'qcow2', '-b', other ?? '', '-F', 'qcow2', a ?? ''])
  await expect(volumes.checkedPathOf('a')).rejects.toThrow('an overlay of what is no template')
  await expect(volumes.serve('a', 'e5'.repeat(32))).rejects.toThrow('an overlay of what is no template')
  await expect(volumes.grow('a', 2)).rejects.toThrow('an overlay of what is no template')
  const data = `data_file=${join(world.folder, 'data')},data_file_raw=on`
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', '-o', data, b ?? '', '1G'])
  await expect(volumes.checkedPathOf('b')).rejects.toThrow('its data are said to be in another file')
  await world.close()
})

it('a volume in a pool needs nothing of the host that made it, wherever the pool is mounted', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  await volumes.create({ name: 'a', sizeGibibytes: 3, source: world.template, pool: volumes.pools[0] ?? '' })
  await volumes.create({ name: 'b', sizeGibibytes: 3, source: world.template, pool: volumes.pools[0] ?? '' })
  await rm(world.template.disk)
  expect(await readdir(join(world.folder, 'shared', 'templates'))).toEqual(['debian-13-1.qcow2'])
  expect(await pattern(await volumes.pathOf('a'))).toContain('read 65536/65536')
  const facts = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', await volumes.pathOf('a')]))
  expect(facts['backing-filename']).toBe('../templates/debian-13-1.qcow2')
  await world.close()
})

it('a copy from another host is complete and independent', async () => {
  const world = await openFolder()
  const [volumes, other] = [await world.open(), await world.openOther()]
  await volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template })
  const key = 'e5'.repeat(32)
  await other.create({ name: 'a', sizeGibibytes: 2, from: { ...(await volumes.serve('a', key)), key } })
  const path = await other.pathOf('a')
  const facts = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', path]))
  expect([facts['virtual-size'], facts['backing-filename']]).toEqual([2 * 1024 ** 3, undefined])
  expect(await pattern(path)).toContain('read 65536/65536')
  await world.close()
})

it('a copy into a pool replaces an existing disk, and is removed with its host when it was interrupted', async () => {
  const world = await openFolder()
  const [volumes, other] = [await world.open(), await world.openOther()]
  const [pool = ''] = other.pools
  await other.create({ name: 'a', sizeGibibytes: 1, pool })
  await other.release('a')
  await volumes.create({ name: 'a', sizeGibibytes: 2, source: world.template })
  const from = { ...(await volumes.serve('a', 'e5'.repeat(32))), key: 'e5'.repeat(32) }
  await expect(
    other.create({ name: 'a', sizeGibibytes: 2, pool, from: { ...from, key: 'f6'.repeat(32) } }),
  ).rejects.toThrow()
  expect([await other.inspect('a'), await other.isInPool('a', pool)]).toEqual([undefined, false])
  await other.create({ name: 'a', sizeGibibytes: 2, pool, from })
  expect([await other.inspect('a'), await pattern(await other.pathOf('a'))]).toEqual([
    { name: 'a', sizeGibibytes: 2, pool },
    expect.stringContaining('read 65536/65536'),
  ])
  await other.remove('a')
  expect(await readdir(join(world.folder, 'shared', 'volumes'))).toEqual([])
  await world.close()
})

it('ends what an agent that was killed still serves', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  await volumes.create({ name: 'a', sizeGibibytes: 1 })
  await volumes.serve('a', 'f6'.repeat(32))
  await expect(runProgram('qemu-io', ['-c', 'write 0 64k', await volumes.pathOf('a')])).rejects.toThrow('lock')
  const next = await world.open()
  await runProgram('qemu-io', ['-c', 'write 0 64k', await next.pathOf('a')])
  expect(next.servedAt('a')).toBeUndefined()
  await world.close()
})

it('what was left half made is not there, and is cleared away', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  // Killed before the rename, and between the rename and the record.
  await writeFile(`${await volumes.pathOf('a')}.new`, 'half')
  await writeFile(await volumes.pathOf('b'), 'no record')
  const again = await world.open()
  expect([await again.inspect('a'), await again.inspect('b')]).toEqual([undefined, undefined])
  await again.create({ name: 'b', sizeGibibytes: 1 })
  expect((await readdir(world.volumes)).sort()).toEqual(['b.json', 'b.qcow2'])
  await expect(
    again.create({ name: 'c', sizeGibibytes: 1, source: { ...world.template, disk: '/no/such/disk' } }),
  ).rejects.toThrow('qemu-img failed')
  expect(await again.inspect('c')).toBeUndefined()
  await world.close()
})

it('hosts that open a pool at once agree on its name', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-pool-'))
  const ids = await Promise.all(
    Array.from(
      { length: 8 },
      async (_, index) =>
        (
          await openPool({
            path: join(folder, 'pool'),
            markerFile: join(folder, `memory-${index}`),
            random: systemRandom,
          })
        ).id,
    ),
  )
  expect(new Set(ids).size).toBe(1)
  expect((await readdir(join(folder, 'pool'))).sort()).toEqual(['pool.json', 'templates', 'volumes'])
  expect((await stat(join(folder, 'pool', 'pool.json'))).nlink).toBe(1)
  await rm(folder, { recursive: true })
})

it('a volume that is made from a snapshot has its bytes, and not what was written since', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  await volumes.create({ name: 'a', sizeGibibytes: 1, source: world.template })
  const io = async (name: string, ...commands: readonly string[]) =>
    runProgram('qemu-io', [...commands.flatMap((command) => ['-c', command]), await volumes.pathOf(name)])
  await io('a', 'write -P 1 8M 8M')
  await volumes.takeSnapshot('a', 's1')
  await io('a', 'write -P 2 8M 4M', 'write -P 2 64M 1M')
  await volumes.takeSnapshot('a', 's2')
  await io('a', 'write -P 3 0 128M')
  for (const snapshot of ['s1', 's2'])
    await volumes.create({ name: snapshot, sizeGibibytes: 2, snapshotOf: { volume: 'a', snapshot } })
  await io('s1', 'read -P 0x5a 1M 64k', 'read -P 1 8M 8M', 'read -P 0 64M 1M', 'read -P 0 1G 64k')
  await io('s2', 'read -P 0x5a 1M 64k', 'read -P 2 8M 4M', 'read -P 1 12M 4M', 'read -P 2 64M 1M')
  const facts = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', await volumes.pathOf('s1')]))
  expect([facts['backing-filename'], facts['virtual-size']]).toEqual([undefined, 2 * 1024 ** 3])

  const { blocks: before } = await stat(await volumes.pathOf('a'))
  await volumes.removeSnapshot('a', 's1')
  await volumes.removeSnapshot('a', 's2')
  const { blocks: after } = await stat(await volumes.pathOf('a'))
  expect((before - after) * 512).toBeGreaterThan(8 * 1024 ** 2)
  await io('a', 'read -P 3 0 128M')
  expect(await runProgram('qemu-img', ['check', await volumes.pathOf('a')])).toContain('No errors were found')
  await world.close()
})
