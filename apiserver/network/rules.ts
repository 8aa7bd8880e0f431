/** What private networks need of their surroundings, for nouns that are in one. */
import { requirePrivateNetworks as requireIn } from '../../changes/kit/zone.ts'
import { worldOf } from '../../changes/kit/world.ts'
import type { Parts } from '../parts.ts'

export { withoutNetworks } from '../../changes/kit/zone.ts'

/** Throws 400 for a zone that is not there, 503 for one that takes nothing new, and 409 for one without private
 *  networks. */
export const requirePrivateNetworks = ({ caches }: Pick<Parts, 'caches'>, name: string, field = 'zone'): void =>
  requireIn(worldOf(caches), name, field)
