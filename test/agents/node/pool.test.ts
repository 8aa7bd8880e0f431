/** Shared storage as a host finds it: new, mounted, or not there. */
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPool, PoolMissing } from '../../../agents/node/drivers/storage/pool.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-pool-'))
})
afterEach(() => rm(folder, { recursive: true }))

const path = () => join(folder, 'mounted')
const openOn = (host: string) =>
  openPool({ path: path(), markerFile: join(folder, `pool-of-${host}`), random: systemRandom })

test('the first host names a pool, and others find it', async () => {
  const { id } = await openOn('a')
  expect([(await openOn('a')).id, (await openOn('b')).id]).toEqual([id, id])
})

test('where nothing is mounted there is no pool, and none is created', async () => {
  const { id } = await openOn('a')
  await rename(path(), join(folder, 'elsewhere'))
  await mkdir(path())
  await expect(openOn('a')).rejects.toThrow(PoolMissing)
  expect(await readdir(path())).toEqual([])
  await rm(path(), { recursive: true })
  await expect(openOn('a')).rejects.toThrow(PoolMissing)
  await rename(join(folder, 'elsewhere'), path())
  expect((await openOn('a')).id).toBe(id)
})

test('what is not readable is no pool', async () => {
  await openOn('a')
  await writeFile(join(path(), 'pool.json'), '{')
  await expect(openOn('a')).rejects.toThrow(PoolMissing)
})

test('another pool may take its place', async () => {
  const { id } = await openOn('a')
  await rm(path(), { recursive: true })
  const other = await openOn('b')
  expect(other.id).not.toBe(id)
  expect((await openOn('a')).id).toBe(other.id)
})
