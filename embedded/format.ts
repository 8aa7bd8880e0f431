/** Which versions may use a data folder. A version that cannot refuses before it opens or writes anything there. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { z } from 'zod'
import { VERSION } from '../domain/version.ts'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { StartRefused } from './kit/data-folder.ts'

/** Raised with each change of the folder that the version before cannot read. */
const FORMAT = 1

const Format = z.object({
  format: z.int(),
  /** The version that used the folder last. */
  version: z.string(),
  /** The newest migration that a version must know; null while all of them can use the database. */
  needs: z.string().nullable(),
})

const fileOf = (root: string): string => join(root, 'format.json')

/** Throws StartRefused for a folder that only later versions can use. Any version may use one that says nothing. */
export async function requireFormat(root: string): Promise<void> {
  const text = await readFile(fileOf(root), 'utf8').catch(() => undefined)
  if (text === undefined) return
  const found = Format.safeParse(parsed(text))
  if (!found.success)
    throw new StartRefused(
      `${fileOf(root)} cannot be read. Put it back, or choose another folder: npm start -- --data DIR`,
    )
  const { format, version, needs } = found.data
  if (format <= FORMAT && (needs === null || (await isKnown(needs)))) return
  throw new StartRefused(
    `The folder ${root} was used by svccloud ${version}, and this is ${VERSION}, which cannot read it any longer. ` +
      'Start the later version, or choose another folder: npm start -- --data DIR',
  )
}

const isKnown = async (migration: string): Promise<boolean> =>
  (await readdir(join(import.meta.dirname, '../db/migrations'))).includes(`${migration}.ts`)

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Records that this version uses the folder, and what its database needs. */
export async function noteFormat(root: string, databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => undefined) // the query also fails
  await client.connect()
  try {
    const { rows } = await client.query<{ needs: string | null }>('select max(needs) as needs from kysely_migration')
    const needs = rows[0]?.needs ?? null
    await writeDurably(fileOf(root), JSON.stringify({ format: FORMAT, version: VERSION, needs }))
  } finally {
    await client.end()
  }
}
