/** Organisations of the identity platform, as its ID token lists them, and what they mean here. */
import type { Role } from '../permissions.ts'
import { isUuid } from '../uuid.ts'

/** How long the platform's statement of a sign-in counts as fresh. */
const FRESH_MILLISECONDS = 3_600_000
const ORGANISATIONS_MAXIMUM = 200
const NAME_CHARACTERS_MAXIMUM = 200
const ROLE_CHARACTERS_MAXIMUM = 63

export interface StatedOrganisation {
  readonly id: string
  readonly name: string
  readonly platformRole: string
}

/** Reads the claim: a list of {id, name, role}. Items without that form are left out; undefined when it is not a
 *  list. */
export function readOrganisations(claim: unknown): readonly StatedOrganisation[] | undefined {
  if (!Array.isArray(claim)) return undefined
  const found = claim.slice(0, ORGANISATIONS_MAXIMUM).flatMap((item: unknown): StatedOrganisation[] => {
    if (typeof item !== 'object' || item === null || !('id' in item) || !('name' in item) || !('role' in item))
      return []
    const { id, name, role } = item
    return typeof id === 'string' && isUuid(id) && typeof name === 'string' && typeof role === 'string'
      ? [
          {
            id: id.toLowerCase(),
            name: name.slice(0, NAME_CHARACTERS_MAXIMUM),
            platformRole: role.slice(0, ROLE_CHARACTERS_MAXIMUM),
          },
        ]
      : []
  })
  return [...new Map(found.map((organisation) => [organisation.id, organisation])).values()]
}

/** The role in the organisation's account that a role of the platform grants. Ownership is a seat, taken once. */
export const roleOfPlatform = (platformRole: string): Exclude<Role, 'owner'> =>
  platformRole === 'owner' || platformRole === 'admin'
    ? 'admin'
    : platformRole === 'viewer' || platformRole === 'guest'
      ? 'viewer'
      : 'member'

/** Whether the role at the identity platform is that of an administrator here. */
export const isAdministrator = (platformRole: string): boolean => roleOfPlatform(platformRole) === 'admin'

/** Whether the person has to sign in again before the platform's statement counts. */
export const isStale = (confirmedAt: Date, now: Date): boolean =>
  now.getTime() - confirmedAt.getTime() > FRESH_MILLISECONDS
