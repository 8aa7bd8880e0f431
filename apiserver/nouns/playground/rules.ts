/** Rules of playgrounds about other resources, for every interface. */
import {
  eligibilityOf,
  type EligibilityFacts,
  type NewPlayground,
  newPlayground,
  playgroundRefusal,
} from '../../../domain/playground/rules.ts'
import { Problem } from '../../../domain/problem.ts'
import { readStanding } from '../../../db/account/index.ts'
import { findLivePlayground, type Playground, readAllowance } from '../../../db/playground/index.ts'
import { guestRelease } from '../../../integrations/control-planes/guests.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Zone } from '../../../resources/catalog/index.ts'
import { requireHost } from '../kubernetes-cluster/index.ts'
import type { Parts } from '../../kit/parts.ts'

export interface Offer {
  /** Regions that offer playgrounds, in order. */
  readonly regions: readonly string[]
  /** Why there are none, for people; empty when there are. */
  readonly obstacle: string
}

/** According to the status of zones. */
export function offeredRegions({ caches }: Pick<Parts, 'caches'>): Offer {
  const zones = caches.of(Zone).list()
  const regions = zones.flatMap(({ spec, status }) => (status?.hasPlaygrounds === true ? [spec.region] : []))
  if (regions.length > 0) return { regions: [...new Set(regions)].toSorted(), obstacle: '' }
  const obstacle = zones.map(({ status }) => status?.playgroundsObstacle).find((text) => text !== undefined)
  return { regions: [], obstacle: obstacle ?? 'nothing is known of them yet' }
}

/** The requested region, or the first one. Throws 503 while none are offered, and 422 for one that does not offer
 *  playgrounds. */
export function requireRegion(parts: Pick<Parts, 'caches'>, region: string | undefined): string {
  const { regions, obstacle } = offeredRegions(parts)
  const [first] = regions
  if (first === undefined) throw playgroundRefusal('unavailable', obstacle) ?? new Error('it is refused')
  if (region !== undefined && !regions.includes(region))
    throw new Problem(422, `Region ${region} has no playgrounds; ${regions.join(', ')} has.`, {
      errors: [{ field: 'region', detail: `must be one of ${regions.join(', ')}` }],
    })
  return region ?? first
}

export interface AccountFacts extends Pick<EligibilityFacts, 'isSuspended' | 'allowance' | 'allowanceUsed'> {
  readonly active: Playground | undefined
}

export async function readAccountFacts({ db }: Pick<Parts, 'db'>, accountId: string, now: Date): Promise<AccountFacts> {
  const { suspendedByStaffAt, suspendedForPaymentAt } = await readStanding(db, accountId, now)
  return {
    isSuspended: suspendedByStaffAt !== null || suspendedForPaymentAt !== null,
    active: await findLivePlayground(db, accountId),
    ...(await readAllowance(db, accountId)),
  }
}

export const eligibilityIn = ({ regions }: Offer, { active, ...facts }: AccountFacts) =>
  eligibilityOf({ ...facts, isOffered: regions.length > 0, hasActive: active !== undefined })

/** Throws the refusal, if there is one: 403, 409 or 503. */
export async function requireEligible(
  parts: Pick<Parts, 'caches' | 'db'>,
  accountId: string,
  now: Date,
): Promise<void> {
  const offered = offeredRegions(parts)
  const refusal = playgroundRefusal(
    eligibilityIn(offered, await readAccountFacts(parts, accountId, now)),
    offered.obstacle,
  )
  if (refusal !== undefined) throw refusal
}

/** The resources that its host grants. Throws 503 while that does not answer, has no room, or cannot have any. */
export async function askHost(
  parts: Pick<Parts, 'controlPlanes'>,
  region: string,
): Promise<{ readonly release: string; readonly domain: string }> {
  const offer = await requireHost(parts, region).offer()
  return { release: guestRelease(offer), domain: offer.guests.appDomain }
}

export const rowOf = (
  { random }: Pick<Parts, 'random'>,
  draft: Pick<NewPlayground, 'id' | 'region' | 'release'>,
  domain: string,
  now: Date,
): NewPlayground =>
  newPlayground({ ...draft, controlPlaneId: newUuid(random) }, { digits: newUuid(random).slice(-DIGITS), domain, now })
const DIGITS = 12
