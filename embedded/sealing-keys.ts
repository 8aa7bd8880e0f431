/** The sealing keys of an embedded cloud. They are created once, and never again while the database contains data of
 *  another key. */
import pg from 'pg'
import { usesText, listSealedUses } from '../db/sealing-key/uses.ts'
import { readIfThere, writeDurably } from '../kit/sys/durable-file.ts'
import { newBase62, type Random } from '../kit/sys/random.ts'
import { type DataFolder, StartRefused } from './kit/data-folder.ts'

const SEALING_KEY_BYTES = 32
const ID_LETTERS = 6

/** The keys in the format of the API server. Throws StartRefused when they are missing although the database needs
 *  them, unless they are among `acceptedLosses`. */
export async function readSealingKeys(
  folder: Pick<DataFolder, 'sealingKeysFile'>,
  {
    databaseUrl,
    acceptedLosses,
    random,
  }: { readonly databaseUrl: string; readonly acceptedLosses: readonly string[]; readonly random: Random },
): Promise<string> {
  const file = folder.sealingKeysFile
  const text = await readIfThere(file)
  if (text !== undefined && text.trim() !== '') return text.trim()
  const lost = (await usesIn(databaseUrl)).filter(({ keyId }) => !acceptedLosses.includes(keyId))
  const ids = [...new Set(lost.map(({ keyId }) => keyId))]
  if (ids.length > 0)
    throw new StartRefused(
      `The sealing keys of this cloud are missing: ${file}. They open ${usesText(lost)}. Put the file back. To start ` +
        `with a new key and give these secrets up for good: SVCCLOUD_LOST_SEALING_KEYS=${ids.join(',')}`,
    )
  // A new id that no earlier key had.
  const key = `embedded-${newBase62(random, ID_LETTERS)}:${random.bytes(SEALING_KEY_BYTES).toString('base64')}`
  await writeDurably(file, `${key}\n`)
  return key
}

async function usesIn(databaseUrl: string) {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  pool.on('error', () => undefined) // the query also fails
  try {
    return await listSealedUses(async (text) => (await pool.query<Record<string, unknown>>(text)).rows)
  } finally {
    await pool.end()
  }
}
