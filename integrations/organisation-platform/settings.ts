/** Settings of the processes that use the organisation platform, or report whether it is configured. */
import { z } from 'zod'
import { HttpUrl } from '../../kit/sys/settings.ts'

export const organisationPlatformUrl = HttpUrl.optional().describe(
  'URL of the organisation platform, where organisations of accounts see their clusters.',
)
export const organisationPlatformTokenFile = z
  .string()
  .min(1)
  .optional()
  .describe('File with the token for the organisation platform.')

export interface OrganisationPlatformSettings {
  readonly organisationPlatformUrl?: string | undefined
  readonly organisationPlatformTokenFile?: string | undefined
}
