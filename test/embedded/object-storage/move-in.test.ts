/** What installations of before have comes over, whatever stops that, and nothing is lost or becomes another's. */
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import {
  BothThere,
  forgetUsersOfBefore,
  JOURNAL,
  moveIn,
  secretOfBefore,
  unknownBuckets,
} from '../../../embedded/object-storage/move-in.ts'
import { openPlaces } from '../../../embedded/object-storage/places.ts'
import { fingerprintOfSecret } from '../../../integrations/object-storage/control.ts'
import { isRoot } from '../../../kit/sys/process.ts'

const USERS = isRoot() ? { first: 0x7abc_0000, count: 1_024 } : undefined
const ADA = { id: 'ada', accessKeyId: 'ADA', bucketPrefix: 'ada-' }
const OBJECTS = ['data/ada-a/x', 'data/ada-a/deep/y', 'data/ada-b/z', 'versions/ada-a/x/1', 'data/bob-a/x'] as const

/** As the version before has left it. */
async function openBefore() {
  const folder = await mkdtemp(join(tmpdir(), 'move-in-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const object of OBJECTS) {
    await mkdir(join(folder, object, '..'), { recursive: true })
    await writeFile(join(folder, object), object)
  }
  await mkdir(join(folder, 'users'))
  const users = { ADA: { access: 'ADA', secret: 'of ada', role: 'userplus' } }
  await writeFile(join(folder, 'users', 'users.json'), JSON.stringify({ accessAccounts: users }))
  return folder
}
const open = (folder: string) => openPlaces({ folder, users: USERS, reportUnknown: () => {} })

/** One start, up to the end or to the step that it is stopped before. */
async function start(folder: string, stopBefore = Infinity): Promise<number> {
  const places = await open(folder)
  if (places.find('ada') === undefined) await places.keep(ADA, 'of ada')
  const place = await places.make('ada')
  let steps = 0
  await moveIn(folder, place, async () => {
    if (steps === stopBefore) throw new Error('killed')
    steps += 1
  })
  return steps
}

async function expectMoved(folder: string): Promise<void> {
  for (const object of OBJECTS.filter((each) => each.includes('/ada-'))) {
    const path = join(folder, 'tenants', '1', object)
    expect(await readFile(path, 'utf8')).toBe(object)
    const { uid } = await stat(path)
    if (USERS !== undefined) expect(uid).toBe(USERS.first + 1)
  }
  expect([await readdir(join(folder, 'data')), await readdir(join(folder, 'versions'))]).toEqual([['bob-a'], []])
}

test('buckets and older versions come over, each noted before; those of others stay', async () => {
  const folder = await openBefore()
  await start(folder)
  await expectMoved(folder)
  const lines = (await readFile(join(folder, JOURNAL), 'utf8')).trim().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    ['data/ada-a', 'data/ada-b', 'versions/ada-a'].map((part) => ({
      from: join(folder, part),
      to: join(folder, 'tenants', '1', part),
    })),
  )
  expect(await unknownBuckets(folder, ['ada-'])).toEqual([join(folder, 'data', 'bob-a')])
  expect(await start(folder)).toBe(0)
})

test('stopped at any point, also twice, it resumes and ends the same', async () => {
  const whole = await start(await openBefore())
  expect(whole).toBe(12)
  for (let first = 0; first < whole; first++)
    for (const second of [0, 1, 2]) {
      const folder = await openBefore()
      await expect(start(folder, first)).rejects.toThrow('killed')
      await start(folder, second).catch(() => {})
      await start(folder)
      await expectMoved(folder)
    }
})

test('a bucket that is in both places stays in both', async () => {
  const folder = await openBefore()
  await start(folder)
  await mkdir(join(folder, 'data', 'ada-a'))
  await writeFile(join(folder, 'data', 'ada-a', 'other'), 'written by the version before')
  await expect(start(folder)).rejects.toThrow(BothThere)
  expect(await readFile(join(folder, 'tenants', '1', 'data', 'ada-a', 'x'), 'utf8')).toBe('data/ada-a/x')
  expect(await readdir(join(folder, 'data', 'ada-a'))).toEqual(['other'])
})

test('the secret of before comes over when it is the one that the platform said last', async () => {
  const folder = await openBefore()
  const asked = { accessKeyId: 'ADA', secretFingerprint: fingerprintOfSecret('of ada') }
  expect(await secretOfBefore(folder, asked)).toBe('of ada')
  expect(await secretOfBefore(folder, { ...asked, secretFingerprint: fingerprintOfSecret('newer') })).toBeUndefined()
  expect(await secretOfBefore(folder, { ...asked, accessKeyId: 'BOB' })).toBeUndefined()
  await appendFile(join(folder, 'users', 'users.json'), '}')
  expect(await secretOfBefore(folder, asked)).toBeUndefined()
})

test('the file of users goes when all its secrets are kept elsewhere, and not before', async () => {
  const folder = await openBefore()
  const places = await open(folder)
  const isThere = async () => (await readdir(folder)).includes('users')
  await forgetUsersOfBefore(folder, places.all())
  expect(await isThere()).toBe(true)
  await places.keep(ADA)
  await forgetUsersOfBefore(folder, places.all())
  expect(await isThere()).toBe(true)
  await places.keep(ADA, 'of ada')
  await forgetUsersOfBefore(folder, places.all())
  expect(await isThere()).toBe(false)
})
