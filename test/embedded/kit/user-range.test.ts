/** Users of engines are of one installation each, also when folders are copied, moved and removed. */
import { cp, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openUserRange } from '../../../embedded/kit/user-range.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { isRoot } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

const WHOLE = '         0          0 4294967295\n'
const CONTAINER = '         0     100000      65536\n'

async function openMachine(uidMap = WHOLE, given?: string) {
  const root = await mkdtemp(join(tmpdir(), 'users-'))
  const registry = given ?? join(root, 'registry')
  onTestFinished(() => rm(root, { recursive: true }))
  return {
    root,
    open: async (name: string, random = systemRandom) => {
      await mkdir(join(root, name), { recursive: true })
      return openUserRange({ registry, uidMap, random, folder: join(root, name), clock: systemClock })
    },
  }
}
/** Chooses the first place again and again, then another one. */
const always = (fraction: number) => {
  let asked = 0
  return { ...systemRandom, fraction: () => (asked++ < 3 ? fraction : 0.5) }
}

test('an installation has the same users at each start, and no other one has them', async () => {
  const { open } = await openMachine()
  const first = await open('one', always(0))
  expect(first).toEqual({ first: 0x7000_0000, count: 65_536 })
  const second = await open('two', always(0))
  expect(second?.first).toBe(0x7000_0000 + 65_536 * 2_047)
  expect([await open('one'), await open('two')]).toEqual([first, second])
})

test('a copy of a folder has other users; one that was moved keeps them, and leaves none behind', async () => {
  const { open, root } = await openMachine()
  const first = await open('one')
  await cp(join(root, 'one'), join(root, 'copy'), { recursive: true })
  const copy = await open('copy')
  expect(copy?.first).not.toBe(first?.first)
  expect(await open('one')).toEqual(first)
  await rename(join(root, 'one'), join(root, 'moved'))
  expect(await open('moved')).toEqual(first)
  await rm(join(root, 'moved'), { recursive: true })
  expect(await open('three', always(((first?.first ?? 0) - 0x7000_0000) / 0x0fff_0000))).toEqual(first)
})

test('a container with few users has ranges of the upper half of them', async () => {
  const { open } = await openMachine(CONTAINER)
  const ranges = [await open('one', always(0)), await open('two', always(0))]
  expect(ranges).toEqual([
    { first: 32_768, count: 1_024 },
    { first: 32_768 + 16_384, count: 1_024 },
  ])
  expect(await (await openMachine('0 1000 1\n')).open('one')).toBeUndefined()
})

test.runIf(isRoot())('where ranges cannot be written down for the machine they are elsewhere', async () => {
  const { open, root } = await openMachine(WHOLE, '/proc/none')
  const range = await open('one')
  const registered = join('/run/svccloud/object-storage-users', String(range?.first))
  onTestFinished(() => rm(registered))
  expect(JSON.parse(await readFile(registered, 'utf8'))).toMatchObject({ folder: await realpath(join(root, 'one')) })
})

test('a record of another machine, or none that can be read, is no range', async () => {
  const { open, root } = await openMachine(CONTAINER)
  await mkdir(join(root, 'one'))
  for (const text of ['{', JSON.stringify({ id: crypto.randomUUID(), first: 0x7000_0000, count: 65_536 })]) {
    await writeFile(join(root, 'one', 'user-range.json'), text)
    expect((await open('one'))?.count).toBe(1_024)
  }
})
