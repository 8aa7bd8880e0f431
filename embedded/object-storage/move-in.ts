/** What an installation of before kept in one folder for all tenants comes into the folders of each: buckets and their
 *  older versions by renaming, secrets out of the engine's file of users. What belongs to nobody that is known stays
 *  where it is. */
import { appendFile, lstat, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { fingerprintOf } from '../../integrations/object-storage/control.ts'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import { own, type Place } from './places.ts'

/** The folders that were of all tenants. */
const SHARED_PARTS = ['data', 'versions'] as const
export const JOURNAL = 'moves.jsonl'

/** A bucket is in both places: which of the two is right nobody can tell, so both stay. */
export class BothThere extends Error {}

/** Moves what is the tenant's. Call while its engine does not run, when its folders are there. Stopped at any point it
 *  goes on when it is called again. `step` is called before each change. Throws BothThere, and what the file system
 *  says. */
export async function moveIn(folder: string, place: Place, step = async (): Promise<void> => {}): Promise<void> {
  const { bucketPrefix, cell } = place
  for (const part of SHARED_PARTS)
    for (const name of await bucketsIn(join(folder, part))) {
      if (!name.startsWith(bucketPrefix)) continue
      const [from, to] = [join(folder, part, name), join(cell.folder, part, name)]
      if (await isThere(to)) throw new BothThere(`${from} and ${to} are both there: remove the one that is wrong`)
      await step()
      if (cell.uid !== undefined) await own(from, cell.uid)
      await step()
      await note(folder, { from, to })
      await step()
      await rename(from, to)
      await step()
      await syncToDisk(join(cell.folder, part))
      await syncToDisk(join(folder, part))
    }
}

/** Buckets of before that none of these prefixes is of. */
export async function unknownBuckets(folder: string, prefixes: readonly string[]): Promise<readonly string[]> {
  const found = await Promise.all(
    SHARED_PARTS.map(async (part) =>
      (await bucketsIn(join(folder, part)))
        .filter((name) => !prefixes.some((prefix) => name.startsWith(prefix)))
        .map((name) => join(folder, part, name)),
    ),
  )
  return found.flat()
}

const UsersFile = z.object({ accessAccounts: z.record(z.string(), z.object({ secret: z.string() })) })
/** Secrets by the ids of keys, out of the engine's file of users; undefined where there is none that can be read. */
async function readUsers(folder: string): Promise<ReadonlyMap<string, string> | undefined> {
  const text = await readFile(join(folder, 'users', 'users.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  try {
    const { accessAccounts } = UsersFile.parse(JSON.parse(text))
    return new Map(Object.entries(accessAccounts).map(([key, { secret }]) => [key, secret]))
  } catch {
    return undefined // the platform says its secrets again
  }
}

/** The secret of a key that the engine of before knew, if it is the one of the fingerprint. */
export async function secretOfBefore(
  folder: string,
  { accessKeyId, secretFingerprint }: { readonly accessKeyId: string; readonly secretFingerprint: string },
): Promise<string | undefined> {
  const secret = (await readUsers(folder))?.get(accessKeyId)
  return secret !== undefined && fingerprintOf(secret) === secretFingerprint ? secret : undefined
}

/** Removes the file of users of before when places have all that it has; otherwise it stays. */
export async function forgetUsersOfBefore(folder: string, places: readonly Place[]): Promise<void> {
  const users = await readUsers(folder)
  const isIn = ([accessKeyId, secret]: readonly [string, string]) =>
    places.some((place) => place.accessKeyId === accessKeyId && place.secretAccessKey === secret)
  if (users !== undefined && [...users].every(isIn)) await rm(join(folder, 'users'), { recursive: true })
}

async function note(folder: string, move: { readonly from: string; readonly to: string }): Promise<void> {
  const journal = join(folder, JOURNAL)
  await appendFile(journal, `${JSON.stringify(move)}\n`, { mode: 0o600 })
  await syncToDisk(journal)
  await syncToDisk(folder)
}

/** The engine's own files begin with a dot. */
const bucketsIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch(orNone)).filter((name) => !name.startsWith('.'))

const orNone = (error: NodeJS.ErrnoException): string[] => {
  if (error.code !== 'ENOENT') throw error
  return []
}

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      return false
    },
  )
