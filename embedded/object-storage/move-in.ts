/** Moves data of an earlier version, which had one folder for all tenants, into the folders of each tenant: buckets and
 *  their old versions by renaming, secrets from the engine's file of users. Data of unknown tenants stay where they
 *  are. */
import { appendFile, lstat, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { fingerprintOfSecret } from '../../integrations/object-storage/control.ts'
import { syncToDisk } from '../../kit/sys/durable-file.ts'
import { own, type TenantPlace } from './places.ts'

/** The folders that all tenants shared. */
const SHARED_PARTS = ['data', 'versions'] as const
export const JOURNAL = 'moves.jsonl'

/** A bucket exists in both places. Nobody can tell which one is right, so both stay. */
export class BothThere extends Error {}

/** Moves the tenant's buckets. Its folders must exist, and its engine must not run. May be repeated after an
 *  interruption at any point. `step` is called before each change. Throws BothThere, and file system errors. */
export async function moveIn(folder: string, place: TenantPlace, step = async (): Promise<void> => {}): Promise<void> {
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

/** Old buckets that match none of these prefixes. */
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
/** Secrets by key id, from the engine's file of users; undefined when there is no readable file. */
async function readUsers(folder: string): Promise<ReadonlyMap<string, string> | undefined> {
  const text = await readFile(join(folder, 'users', 'users.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  try {
    const { accessAccounts } = UsersFile.parse(JSON.parse(text))
    return new Map(Object.entries(accessAccounts).map(([key, { secret }]) => [key, secret]))
  } catch {
    return undefined // the platform sends its secrets again
  }
}

/** The secret of a key that the old engine knew, if it has this fingerprint. */
export async function secretOfBefore(
  folder: string,
  { accessKeyId, secretFingerprint }: { readonly accessKeyId: string; readonly secretFingerprint: string },
): Promise<string | undefined> {
  const secret = (await readUsers(folder))?.get(accessKeyId)
  return secret !== undefined && fingerprintOfSecret(secret) === secretFingerprint ? secret : undefined
}

/** Removes the old file of users when places contain all its secrets; otherwise it stays. */
export async function forgetUsersOfBefore(folder: string, places: readonly TenantPlace[]): Promise<void> {
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

/** Names of the engine's own files start with a dot. */
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
