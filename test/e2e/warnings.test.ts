import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { unexpectedWarnings } from './warnings.ts'

let data: string
const line = (level: number, msg: string) => `${JSON.stringify({ level, msg })}\n`
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'svccloud-warnings-'))
  await mkdir(join(data, 'logs'))
  await writeFile(join(data, 'logs', 'api.log'), `${line(30, 'ready')}${line(40, 'a host is away')}|WARN|of others\n`)
  await writeFile(join(data, 'logs', 'api.log.1'), `${line(50, 'unexpected error')}{"level":50,"msg":"cut`)
})
afterAll(() => rm(data, { recursive: true }))

test('lines at warn and above are found, also in a log that was cut, but for those that are expected', async () => {
  expect(await unexpectedWarnings(data, [])).toEqual([
    `api.log: ${line(40, 'a host is away').trim()}`,
    `api.log.1: ${line(50, 'unexpected error').trim()}`,
  ])
  expect(await unexpectedWarnings(data, [/a host is away/, /unexpected error/])).toEqual([])
})
test('a folder without logs is no silence', async () => {
  await mkdir(join(data, 'empty', 'logs'), { recursive: true })
  await expect(unexpectedWarnings(join(data, 'empty'), [])).rejects.toThrow('nothing was logged')
})

const KILLS = 'it kills parts of the product, and was not run yet since failures that pass are no warnings'
const ONE_RUN = 'it kills everything in the middle of changes: one run without a warning is too few to judge it'
const NOT_READ = 'its log was not read yet'
const MEASURES = 'it measures on a machine that may be busy'
/** Products whose logs are not judged, and why. */
const UNREAD_BY: Readonly<Record<string, string>> = {
  'bench/b04-post-to-prompt.ts': MEASURES,
  'bench/b55-attach.ts': MEASURES,
  'test/cluster/product.cluster.test.ts': NOT_READ,
  'test/e2e/absence.endurance.test.ts': KILLS,
  'test/e2e/checksummed-log.endurance.test.ts': KILLS,
  'test/e2e/cluster-of-guests.ts': NOT_READ,
  'test/e2e/fencing.endurance.test.ts': KILLS,
  'test/e2e/migration.endurance.test.ts': KILLS,
  'test/e2e/ordinary-user.e2e-long.test.ts': KILLS,
  'test/e2e/public-network.network-long.test.ts': KILLS,
  'test/e2e/storages.ceph.test.ts': NOT_READ,
  'test/e2e/survival.endurance.test.ts': ONE_RUN,
}

/** Files that import it to start a product. */
async function unreadIn(folder: string): Promise<readonly string[]> {
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith('.ts'))
  const paths = files.map((file) => join(folder, file))
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
  return paths.filter((_path, index) => /^import \{.*\bUNREAD\b.*warnings\.ts'$/m.test(texts[index] ?? ''))
}

test('every product is judged by its log, or its test is on the list', async () => {
  const found = (await Promise.all(['test', 'bench'].map(unreadIn))).flat()
  expect(found.sort()).toEqual(Object.keys(UNREAD_BY).sort())
})
