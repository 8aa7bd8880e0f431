/** The life of engines: when they start, when they end, how many there are, and that what one lost or answers wrongly
 *  is mended. */
import { chmod, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fingerprintIn } from '../../../embedded/object-storage/cells.ts'
import { fingerprintOfSecret } from '../../../integrations/object-storage/control.ts'
import { newTenantKeys } from '../../../integrations/object-storage/keys.ts'
import { signalProcess } from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { until } from '../../eventually.ts'
import { openTestEngines, type TestTenant } from './cells.ts'

const SHORT = { idle: 300, idleOfInternal: 300, look: 300 }
type Cells = Awaited<ReturnType<typeof openTestEngines>>
const list = (cells: Cells, tenant: TestTenant) => cells.send(tenant, { method: 'GET', target: `/${tenant.bucket}` })
const isGone = (pid: number): boolean => !signalProcess(pid, 0)

test('an engine ends when nobody uses it, and the next request starts it', async () => {
  const cells = await openTestEngines({ times: SHORT })
  const ada = await cells.open('ada')
  const first = cells.engines.pid('ada') ?? 0
  const held = await cells.engines.hold('ada')
  await cells.open('bob')
  const { starts } = cells.engines.counts()
  await until(
    'the end of another that nobody holds',
    () => cells.engines.pid('bob'),
    (pid) => pid === undefined,
  )
  expect(cells.engines.pid('ada')).toBe(first)
  held.release()
  await until('its end', () => isGone(first), Boolean)
  await until(
    'nothing to run',
    () => cells.engines.counts().live,
    (live) => live === 0,
  )
  expect((await list(cells, ada)).status).toBe(200)
  expect([cells.engines.counts().starts, cells.engines.counts().failures]).toEqual([starts + 1, 0])
})

test('so many run and no more, a share of them for the platform; idle ones make room, busy ones do not', async () => {
  const cells = await openTestEngines({ liveMaximum: 3 })
  const [ada, bob, eve] = [await cells.open('ada'), await cells.open('bob'), await cells.open('eve')]
  expect([cells.engines.counts().live, cells.engines.pid('ada')]).toEqual([2, undefined])
  const held = await Promise.all([cells.engines.hold('bob'), cells.engines.hold('eve')])
  await expect(list(cells, ada)).rejects.toMatchObject({ status: 503, code: 'SlowDown' })
  const archive = await cells.open('internal.archive')
  expect((await list(cells, archive)).status).toBe(200)
  for (const each of held) each.release()
  expect((await list(cells, ada)).status).toBe(200)
  expect((await Promise.all([list(cells, bob), list(cells, eve)])).map(({ status }) => status)).toEqual([200, 200])
  expect(cells.engines.counts().live).toBeLessThanOrEqual(3)
})

test('one that ended by itself is started by the next request, five times a minute', async () => {
  const cells = await openTestEngines()
  const ada = await cells.open('ada')
  for (let times = 1; times <= 5; times++) {
    expect((await list(cells, ada)).status).toBe(200)
    const pid = cells.engines.pid('ada') ?? 0
    signalProcess(pid, 'SIGKILL')
    await until(
      'its end to be seen',
      () => cells.engines.counts().failures,
      (failures) => failures === times,
    )
    expect(cells.engines.fault('ada')).toContain('ended by itself')
  }
  await expect(list(cells, ada)).rejects.toMatchObject({ status: 503, code: 'ServiceUnavailable' })
  const bob = await cells.open('bob')
  expect((await list(cells, bob)).status).toBe(200)
})

test('an engine that lost its users has them again, and nobody says that it is up until then', async () => {
  const cells = await openTestEngines({ times: { ...SHORT, idle: 60_000 } })
  const ada = await cells.open('ada')
  const pid = cells.engines.pid('ada')
  await rm(join(cells.places.find('ada')?.cell.folder ?? '', 'run', 'users'), { recursive: true })
  await until(
    'another engine',
    () => cells.engines.pid('ada') ?? pid,
    (now) => now !== pid,
  )
  await until(
    'no fault',
    () => cells.engines.fault('ada'),
    (fault) => fault === undefined,
  )
  expect(cells.engines.counts().healed).toBe(1)
  expect((await list(cells, ada)).status).toBe(200)
})

test('an engine whose users are wrong is not up, although it answers', async () => {
  const cells = await openTestEngines({ times: { ...SHORT, idle: 60_000, look: 3_600_000 } })
  const ada = await cells.open('ada')
  const pid = cells.engines.pid('ada')
  const users = join(cells.places.find('ada')?.cell.folder ?? '', 'run', 'users', 'users.json')
  await writeFile(users, '{"accessAccounts":{}}')
  await chmod(users, 0o644)
  const held = await cells.engines.hold('ada')
  expect((await list(cells, ada)).status).toBe(403)
  held.answered(403)
  held.release()
  await until(
    'another engine',
    () => cells.engines.pid('ada') ?? pid,
    (now) => now !== pid,
  )
  expect((await list(cells, ada)).status).toBe(200)
  expect(cells.engines.counts()).toMatchObject({ faulty: 0, failures: 1 })
})

test('a folder that was there once is not made again: its tenant is not served, and that is said', async () => {
  const cells = await openTestEngines({ times: { ...SHORT, look: 3_600_000 } })
  const ada = await cells.open('ada')
  const { folder } = cells.places.find('ada')?.cell ?? { folder: '' }
  await until(
    'its end',
    () => cells.engines.counts().live,
    (live) => live === 0,
  )
  await rm(join(folder, 'data'), { recursive: true })
  await expect(list(cells, ada)).rejects.toMatchObject({ status: 503, code: 'ServiceUnavailable' })
  expect(cells.engines.fault('ada')).toContain(`${join(folder, 'data')} is missing`)
})

test('a folder that goes while the engine runs is noticed, and served again when it is brought back', async () => {
  const cells = await openTestEngines({ times: { ...SHORT, idle: 60_000 } })
  const ada = await cells.open('ada')
  const { folder } = cells.places.find('ada')?.cell ?? { folder: '' }
  await rename(join(folder, 'data'), join(folder, 'away'))
  await until(
    'its fault',
    () => cells.engines.fault('ada') ?? '',
    (fault) => fault.includes(`${join(folder, 'data')} is missing`),
  )
  await rename(join(folder, 'away'), join(folder, 'data'))
  await until(
    'no fault',
    () => cells.engines.fault('ada'),
    (fault) => fault === undefined,
  )
  expect((await list(cells, ada)).status).toBe(200)
})

test('a new secret holds at once, also for an engine that runs, and the old one is refused', async () => {
  const cells = await openTestEngines()
  const ada = await cells.open('ada')
  const held = await cells.engines.hold('ada')
  const { secretAccessKey } = newTenantKeys(systemRandom)
  await cells.engines.tell(ada, secretAccessKey)
  const anew = { ...ada, secretAccessKey }
  expect([(await list(cells, ada)).status, (await list(cells, anew)).status]).toEqual([403, 200])
  expect(fingerprintIn(cells.places, 'ada')).toBe(fingerprintOfSecret(secretAccessKey))
  held.release()
})
