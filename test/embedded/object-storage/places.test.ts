/** Which folder is whose: by records, which may be lost, of folders, which are not lost with them. */
import { lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fingerprintIn } from '../../../embedded/object-storage/cells.ts'
import { openPlaces, PlaceLost } from '../../../embedded/object-storage/places.ts'
import { fingerprintOfSecret } from '../../../integrations/object-storage/control.ts'

const residentOf = (id: string) => ({ id, accessKeyId: id.toUpperCase(), bucketPrefix: `${id}-` })

async function openFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'places-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const unknown: string[] = []
  const open = () => openPlaces({ folder, users: undefined, reportUnknown: (found) => unknown.push(...found) })
  return { folder, open, unknown, of: (...parts: readonly string[]) => join(folder, ...parts) }
}

test('a tenant has its number, its secret and its folders at each start', async () => {
  const { open, of } = await openFolder()
  const places = await open()
  await places.keep(residentOf('ada'), 'secret')
  await places.keep(residentOf('bob'))
  await places.make('ada')
  expect(['ada', 'bob'].map((id) => fingerprintIn(places, id))).toEqual([fingerprintOfSecret('secret'), ''])
  expect((await readdir(of('tenants', '1'))).toSorted()).toEqual(['data', 'run', 'versions'])
  for (const path of ['tenants', 'tenants/1', 'tenants/1/data', 'places'])
    expect((await lstat(of(path))).mode & 0o777).toBe(0o700)
  expect((await lstat(of('places', '1.json'))).mode & 0o777).toBe(0o600)
  const again = await open()
  expect(again.all().map(({ id, number, secretAccessKey }) => [id, number, secretAccessKey])).toEqual([
    ['ada', 1, 'secret'],
    ['bob', 2, null],
  ])
})

test('a number does not come again while others are there, and goes with its folder', async () => {
  const { open, of } = await openFolder()
  const places = await open()
  for (const id of ['ada', 'bob']) {
    await places.keep(residentOf(id), 'secret')
    await places.make(id)
  }
  await places.remove('ada')
  expect([await readdir(of('tenants')), await readdir(of('places'))]).toEqual([['2'], ['2.json']])
  expect((await places.keep(residentOf('eve'), 'secret')).number).toBe(3)
})

test('a folder whose record is lost is nobody’s until its tenant is known again, whose buckets say so', async () => {
  const { open, of, unknown } = await openFolder()
  const places = await open()
  await places.keep(residentOf('ada'), 'secret')
  await places.make('ada')
  await mkdir(of('tenants', '1', 'data', 'ada-a'))
  await rm(of('places', '1.json'))
  const again = await open()
  expect([again.all(), unknown]).toEqual([[], [of('tenants', '1')]])
  expect((await again.keep(residentOf('bob'), 'secret')).number).toBe(2)
  expect((await again.keep(residentOf('ada'), 'another')).number).toBe(1)
  await again.make('ada')
  expect(await readdir(of('tenants', '1', 'data'))).toEqual(['ada-a'])
})

test('a record that cannot be read loses no folder', async () => {
  const { open, of, unknown } = await openFolder()
  await (await open()).keep(residentOf('ada'), 'secret')
  await writeFile(of('places', '1.json'), '{"id":')
  await mkdir(of('tenants', '1', 'data', 'ada-a'), { recursive: true })
  const again = await open()
  expect([again.find('ada'), unknown]).toEqual([undefined, [of('tenants', '1')]])
  expect((await again.keep(residentOf('ada'), 'secret')).number).toBe(1)
})

test('a folder that was made once is not made again', async () => {
  const { open, of } = await openFolder()
  const places = await open()
  await places.keep(residentOf('ada'), 'secret')
  await places.make('ada')
  await rm(of('tenants', '1', 'versions'), { recursive: true })
  await expect(places.make('ada')).rejects.toThrow(PlaceLost)
  expect(await readdir(of('tenants', '1'))).not.toContain('versions')
  await mkdir(of('tenants', '1', 'versions'))
  await places.make('ada')
})

test('a removal that was stopped half-way ends at the next start', async () => {
  const { open, of } = await openFolder()
  const places = await open()
  await places.keep(residentOf('ada'), 'secret')
  await places.make('ada')
  await mkdir(of('tenants', '7.removed', 'data', 'x'), { recursive: true })
  await open()
  expect(await readdir(of('tenants'))).toEqual(['1'])
})
