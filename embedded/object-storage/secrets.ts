/** What tenants sign with, as the door proves it: out of the engine's file of users at the start, and from whoever
 *  changes it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'

const UsersFile = z.object({ accessAccounts: z.record(z.string(), z.object({ secret: z.string() })) })

/** By access key. A file that is missing or cannot be read says nothing. */
export async function readSecrets(usersFolder: string): Promise<Map<string, string>> {
  const text = await readFile(join(usersFolder, 'users.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return new Map()
  const { accessAccounts } = UsersFile.parse(JSON.parse(text))
  return new Map(Object.entries(accessAccounts).map(([key, { secret }]) => [key, secret]))
}
