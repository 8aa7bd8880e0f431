import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openQcow2Volumes } from '../../../agents/node/drivers/storage/qcow2.ts'
import { runProgram } from '../../../agents/node/run-program.ts'
import { volumeStoreContract } from './volume-store-contract.ts'

async function openFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-volumes-'))
  const disk = join(folder, 'template.qcow2')
  await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', disk, '1G'])
  const boot = { kernel: '/k', initialRamdisk: '/i', commandLine: '' }
  return {
    folder, volumes: join(folder, 'volumes'), open: () => openQcow2Volumes(join(folder, 'volumes')),
    template: { name: 'debian-13', version: '1', boot, disk }, close: () => rm(folder, { recursive: true }),
  }
}

volumeStoreContract(openFolder)

it('a qcow2 volume is an overlay of its template, in its own size', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  await volumes.create({ name: 'a', sizeGibibytes: 3, source: world.template })
  const facts = JSON.parse(await runProgram('qemu-img', ['info', '--output=json', volumes.pathOf('a')]))
  expect(facts).toMatchObject({ format: 'qcow2', 'virtual-size': 3 * 1024 ** 3, 'backing-filename': world.template.disk })
  await world.close()
})

it('what was left half made is not there, and is cleared away', async () => {
  const world = await openFolder()
  const volumes = await world.open()
  // Killed before the rename, and between the rename and the record.
  await writeFile(`${volumes.pathOf('a')}.new`, 'half')
  await writeFile(volumes.pathOf('b'), 'no record')
  const again = await world.open()
  expect([await again.inspect('a'), await again.inspect('b')]).toEqual([undefined, undefined])
  await again.create({ name: 'b', sizeGibibytes: 1 })
  expect((await readdir(world.volumes)).sort()).toEqual(['b.json', 'b.qcow2'])
  await expect(again.create({ name: 'c', sizeGibibytes: 1, source: { ...world.template, disk: '/no/such/disk' } })).rejects.toThrow('qemu-img failed')
  expect(await again.inspect('c')).toBeUndefined()
  await world.close()
})
