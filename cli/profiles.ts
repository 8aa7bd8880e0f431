/** Services and their credentials, in a file that only its owner can read. */
import { readFile, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { z } from 'zod'
import { noSuch } from '../domain/suggestion.ts'
import type { Clock } from '../kit/sys/clock.ts'
import { writeWhole } from '../kit/sys/durable-file.ts'
import { exclusively } from '../kit/sys/exclusive.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'

const Profile = z.object({
  url: z.url(),
  token: z.string(),
  /** `login` created the token for this profile, so `logout` revokes it. */
  isTokenOurs: z.boolean().optional(),
})
export type Profile = z.infer<typeof Profile>
const Profiles = z.object({ current: z.string(), profiles: z.record(z.string(), Profile) })
export type Profiles = z.infer<typeof Profiles>

export type Environment = Readonly<Record<string, string | undefined>>

export const DEFAULT_URL = 'http://127.0.0.1:8080'
export const DEFAULT_PROFILE = 'default'
const NOTHING: Profiles = { current: DEFAULT_PROFILE, profiles: {} }

/** `$XDG_CONFIG_HOME/svccloud/config.json`; the default folder is `~/.config`. */
const folderOf = (environment: Environment): string =>
  join(environment['XDG_CONFIG_HOME'] ?? join(environment['HOME'] ?? '.', '.config'), 'svccloud')
const profilesFile = (environment: Environment): string => join(folderOf(environment), 'config.json')

/** Host keys of the servers of the profile, in OpenSSH format. */
export const knownHostsFile = (environment: Environment, profile: string): string =>
  join(folderOf(environment), 'known_hosts', profile.replaceAll(/[^\w.-]/g, '_'))

/** The URL without a trailing slash. Throws a Failure for an invalid one. */
export function parseUrl(text: string): string {
  const url = text.trim().replace(/\/+$/, '')
  if (!/^https?:\/\//i.test(url))
    throw usageFailure(
      `${text} is not the URL of a service: it must start with http:// or https://, as in ` +
        `http://${url.replace(/^\w+:\/\//, '')}`,
    )
  if (!URL.canParse(url)) throw usageFailure(`${text} is not the URL of a service, such as http://127.0.0.1:8080`)
  return url
}

/** Empty when there is no file. Throws a Failure when the file cannot be read. */
export async function readProfiles(environment: Environment): Promise<Profiles> {
  const file = profilesFile(environment)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new Failure(EXIT.usage, `${file} cannot be read: ${error.message}`, error)
  })
  if (text === undefined) return NOTHING
  await requirePrivate(file)
  try {
    return Profiles.parse(JSON.parse(text))
  } catch (error) {
    throw new Failure(EXIT.usage, `${file} is not a profile file; remove it and log in again`, error)
  }
}

const OTHERS = 0o077
/** Systems without file modes report every file as readable. */
const hasModes = sep === '/'

/** The file contains tokens, so it needs the same mode as a private key of ssh. Throws a Failure when others may read
 *  or write it. */
async function requirePrivate(file: string): Promise<void> {
  const { mode } = await stat(file)
  if (!hasModes || (mode & OTHERS) === 0) return
  const shown = (mode & 0o777).toString(8).padStart(3, '0')
  throw new Failure(
    EXIT.usage,
    `${file} has mode ${shown}: others can read or change the tokens in it; run chmod 600 ${file}, and create ` +
      'new tokens if somebody may have read it',
  )
}

/** Changes the current content of the file; concurrent commands change it one after another. Writes a new file and
 *  renames it, so that a killed command leaves the old file or the new one. Throws a Failure as `readProfiles` does. */
export async function changeProfiles(
  environment: Environment,
  clock: Clock,
  change: (known: Profiles) => Profiles,
): Promise<void> {
  const file = profilesFile(environment)
  await exclusively(`${file}.lock`, clock, async () => {
    const changed = change(await readProfiles(environment))
    await writeWhole(file, `${JSON.stringify(changed, null, 2)}\n`)
  })
}

/** The profile of a command; SVCCLOUD_URL and SVCCLOUD_TOKEN override the file. */
export async function chooseProfile(
  environment: Environment,
  name: string | undefined,
): Promise<{ readonly name: string; readonly url: string; readonly token: string | undefined }> {
  const { SVCCLOUD_URL: address, SVCCLOUD_TOKEN: token } = environment
  const url = address === undefined ? undefined : parseUrl(address)
  if (url !== undefined && token !== undefined) return { name: 'environment', url, token }
  const { current, profiles } = await readProfiles(environment)
  const wanted = name ?? environment['SVCCLOUD_PROFILE']
  const profile = profiles[wanted ?? current]
  if (wanted !== undefined && profile === undefined)
    throw usageFailure(noSuch('profile', wanted, Object.keys(profiles)))
  return { name: wanted ?? current, url: url ?? profile?.url ?? DEFAULT_URL, token: token ?? profile?.token }
}
