/** What a host records about a volume, in a file of the volume's name. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeDurably } from '../../../../kit/sys/durable-file.ts'
import type { HeldVolume } from './volume-store.ts'

export const RECORD = '.json'

const Record = z.strictObject({
  name: z.string(),
  sizeGibibytes: z.int(),
  source: z.strictObject({ name: z.string(), version: z.string() }).optional(),
  pool: z.string().optional(),
})

/** Undefined when there is no record. */
export async function readRecord(folder: string, name: string): Promise<HeldVolume | undefined> {
  const text = await readFile(join(folder, `${name}${RECORD}`), 'utf8').catch(() => undefined)
  // exact optional fields are beyond zod's types
  return text === undefined ? undefined : (Record.parse(JSON.parse(text)) as HeldVolume)
}

export const writeRecord = (folder: string, record: HeldVolume): Promise<void> =>
  writeDurably(join(folder, `${record.name}${RECORD}`), JSON.stringify(record))

/** Names of the volumes that have a record. */
export const recordedNames = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder)).filter((file) => file.endsWith(RECORD)).map((file) => file.slice(0, -RECORD.length))
