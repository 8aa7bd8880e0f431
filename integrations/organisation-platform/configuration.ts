/** The cloud's organisation platform, from the settings. */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../../kit/sys/clock.ts'
import { openPlatformClient } from './client.ts'
import type { OrganisationPlatform } from './platform.ts'
import type { OrganisationPlatformSettings } from './settings.ts'

/** Undefined when there is none. Throws for incomplete settings, and a token file that cannot be read. */
export async function openOrganisationPlatform(
  { organisationPlatformUrl: url, organisationPlatformTokenFile: tokenFile }: OrganisationPlatformSettings,
  clock: Clock,
): Promise<OrganisationPlatform | undefined> {
  if (url === undefined) return undefined
  if (tokenFile === undefined)
    throw new Error('the organisation platform needs its token file (SVCCLOUD_ORGANISATION_PLATFORM_TOKEN_FILE)')
  return openPlatformClient({ url, token: (await readFile(tokenFile, 'utf8')).trim(), clock })
}
