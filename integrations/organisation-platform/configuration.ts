/** The cloud's organisation platform, from the settings. */
import type { Clock } from '../../kit/sys/clock.ts'
import { readSecretFile } from '../../kit/sys/secret-file.ts'
import { openPlatformClient } from './client.ts'
import type { OrganisationPlatform } from './platform.ts'
import type { OrganisationPlatformSettings } from './settings.ts'

/** Undefined when there is none. Throws for incomplete settings, and a token file that is empty or cannot be read. */
export async function openOrganisationPlatform(
  { organisationPlatformUrl: url, organisationPlatformTokenFile: tokenFile }: OrganisationPlatformSettings,
  clock: Clock,
): Promise<OrganisationPlatform | undefined> {
  if (url === undefined) return undefined
  if (tokenFile === undefined)
    throw new Error('the organisation platform needs its token file (SVCCLOUD_ORGANISATION_PLATFORM_TOKEN_FILE)')
  return openPlatformClient({ url, token: await readSecretFile(tokenFile), clock })
}
