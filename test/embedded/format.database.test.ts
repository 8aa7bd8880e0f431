/** A data folder that a later version has changed is refused, and not touched. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { noteFormat, requireFormat } from '../../embedded/format.ts'
import { StartRefused } from '../../embedded/kit/data-folder.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svccloud-format-'))
})
afterEach(() => rm(root, { recursive: true }))
const file = () => join(root, 'format.json')

test('a new folder, and one of this version, can be used', async () => {
  await requireFormat(join(root, 'new'))
  await requireFormat(root)
  expect(await readdir(root)).toEqual([])
  await noteFormat(root, database.url)
  expect(JSON.parse(await readFile(file(), 'utf8'))).toMatchObject({ format: 1, needs: null })
  await requireFormat(root)
})

test('what the database needs is recorded, and refused where it is not known', async () => {
  await sql`insert into kysely_migration (name, timestamp, needs)
    values ('9002-x', '2030-01-01T00:00:00.000Z', '9001-y')`.execute(database.db)
  await noteFormat(root, database.url)
  expect(JSON.parse(await readFile(file(), 'utf8'))).toMatchObject({ needs: '9001-y' })
  await expect(requireFormat(root)).rejects.toThrow(StartRefused)
})

test.each([
  [{ format: 2, version: '7.0.0', needs: null }, /was used by svccloud 7\.0\.0, and this is \d/],
  [{ format: 1, version: '7.0.0', needs: '9999-later' }, /Start the later version/],
  [{ format: 'x' }, /cannot be read/],
])('%j is refused', async (content, message) => {
  await writeFile(file(), JSON.stringify(content))
  await expect(requireFormat(root)).rejects.toThrow(message)
})

test('a file that is torn is refused', async () => {
  await writeFile(file(), '{"format":')
  await expect(requireFormat(root)).rejects.toThrow(/cannot be read/)
})
