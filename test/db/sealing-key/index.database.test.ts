/** Keys that open what is sealed are never replaced silently. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { keepBackupKey } from '../../../db/backup/index.ts'
import { refuseSealingKeys } from '../../../db/sealing-key/index.ts'
import { readSealingKeys } from '../../../embedded/sealing-keys.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { createSealing, parseSealingKeys } from '../../../kit/sys/sealing.ts'
import { createAccount } from '../../accounts.ts'
import { useDatabase } from '../../database.ts'

const database = useDatabase()
const key = (id: string, byte: number) => ({ id, key: Buffer.alloc(32, byte) })
const check = (keys: readonly ReturnType<typeof key>[], acceptedLosses: readonly string[] = []) =>
  refuseSealingKeys(database.db, keys, { acceptedLosses, clock })

async function sealUnder(id: string, byte: number): Promise<void> {
  const accountId = await createAccount(database.db)
  const sealedKey = createSealing([key(id, byte)], random).seal('secret', accountId)
  await keepBackupKey(database.db, { accountId, sealedKey, createdAt: clock.now() })
}

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-sealing-'))
  for (const table of ['backup_key', 'sealing_key'] as const) await database.db.deleteFrom(table).execute()
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('a key that opens something must be there, and be the same', async () => {
  await sealUnder('one', 1)
  // a platform from before keys were noted
  expect(await check([key('two', 2)])).toContain('sealing key one is missing')
  expect(await check([key('one', 1)])).toBeUndefined()
  expect(await check([key('one', 9)])).toContain(
    'one is another one than the one that opens 1 of backup_key.sealed_key',
  )
  expect(await check([])).toContain('1 of backup_key.sealed_key')
  // the next one comes, and the first goes when it opens nothing
  expect(await check([key('two', 2), key('one', 1)])).toBeUndefined()
  expect(await check([key('two', 2)])).toContain('SVCCLOUD_LOST_SEALING_KEYS=one')
  await database.db.deleteFrom('backup_key').execute()
  expect(await check([key('two', 2)])).toBeUndefined()
})

test('a loss is accepted by name, once', async () => {
  await sealUnder('one', 1)
  expect(await check([key('one', 1)])).toBeUndefined()
  expect(await check([key('two', 2)], ['other'])).toContain('one')
  expect(await check([key('two', 2)], ['one'])).toBeUndefined()
  expect(await check([key('two', 2)])).toBeUndefined()
})

test('a cloud of one machine makes a key only where nothing is sealed by another', async () => {
  const file = join(folder, 'sealing-keys')
  const read = (acceptedLosses: readonly string[] = []) =>
    readSealingKeys({ sealingKeysFile: file }, { databaseUrl: database.url, acceptedLosses, random })
  const made = await read()
  expect([await read(), (await readFile(file, 'utf8')).trim()]).toEqual([made, made])
  const id = parseSealingKeys(made)[0]?.id ?? ''
  await sealUnder(id, 1)
  await rm(file)
  await expect(read()).rejects.toThrow(`They open 1 of backup_key.sealed_key`)
  await writeFile(file, '') // as a full disk leaves it
  await expect(read()).rejects.toThrow(id)
  expect(parseSealingKeys(await read([id]))[0]?.id).not.toBe(id)
})

test('every sealed column is found by its name', async () => {
  const tables = await Promise.all(
    ['tables.ts', 'identity-tables.ts'].map((name) => readFile(join(import.meta.dirname, '../../../db', name), 'utf8')),
  )
  const named = tables.join('').match(/\bsealed_\w+(?=:)/g) ?? []
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from information_schema.columns where column_name like 'sealed\\_%'`.execute(
    database.db,
  )
  expect(rows[0]?.count).toBe(named.length)
})
