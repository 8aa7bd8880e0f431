/** Which organisation platform the cloud has, as the environment says. */
import { readFile } from 'node:fs/promises'
import type { Clock } from '../sys/clock.ts'
import { openPlatformClient } from './client.ts'
import type { OrganisationPlatform } from './platform.ts'

/** Of the processes that speak to it, or say whether there is one. */
export interface PlatformEnvironment {
  readonly SVCCLOUD_ORGANISATION_PLATFORM_URL?: string | undefined
  readonly SVCCLOUD_ORGANISATION_PLATFORM_TOKEN_FILE?: string | undefined
}

/** Undefined where there is none. Throws for settings that are half there, and a token file that cannot be read. */
export async function openOrganisationPlatform(
  {
    SVCCLOUD_ORGANISATION_PLATFORM_URL: url,
    SVCCLOUD_ORGANISATION_PLATFORM_TOKEN_FILE: tokenFile,
  }: PlatformEnvironment,
  clock: Clock,
): Promise<OrganisationPlatform | undefined> {
  if (url === undefined) return undefined
  if (tokenFile === undefined)
    throw new Error('the organisation platform needs its token file (SVCCLOUD_ORGANISATION_PLATFORM_TOKEN_FILE)')
  return openPlatformClient({ url, token: (await readFile(tokenFile, 'utf8')).trim(), clock })
}
