/** Alternatives with room when a zone has none for a plan. They follow from the last reports of the zones: a hint and
 *  no promise. */
import { serverPlans } from '../../../changes/kit/machine.ts'
import { findServerPlan } from '../../../changes/kit/system.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { Problem } from '../../../domain/problem.ts'
import { isOffered, leastStorageOf, Template, Zone } from '../../../resources/catalog/index.ts'
import type { CreateServer } from '../../../resources/server/index.ts'
import type { Parts } from '../../kit/parts.ts'

type Demand = Pick<CreateServer, 'zone' | 'plan' | 'template' | 'server_group_id' | 'storage_gibibytes'>
type Alternative = NonNullable<Problem['members']['alternatives']>[number]

const ALTERNATIVES_MAXIMUM = 8

/** Rethrows the error; a refusal for lack of room names alternatives. */
export const namingAlternatives =
  (parts: Pick<Parts, 'caches'>, demand: Demand, now: Date) =>
  (error: unknown): never => {
    if (!(error instanceof Problem) || error.members.reason !== 'no_capacity') throw error
    const alternatives = listAlternatives(parts, demand, now)
    throw alternatives.length === 0
      ? error
      : new Problem(error.status, error.message, { ...error.members, alternatives }, error.cause)
  }

/** The plan in other zones of the region first, then smaller plans in the zone, the largest first. */
function listAlternatives({ caches }: Pick<Parts, 'caches'>, demand: Demand, now: Date): readonly Alternative[] {
  const zones = caches.of(Zone)
  const [own, wanted] = [zones.get({ name: demand.zone }), findServerPlan(worldOf(caches), demand.plan)]
  const template = caches.of(Template).get({ name: demand.template ?? '' })
  if (own === undefined || wanted === undefined || template === undefined) return []
  const hasRoom = ({ spec, status }: typeof own, plan: string): boolean =>
    !spec.isClosed && status?.unavailablePlans?.includes(plan) === false
  const elsewhere = zones
    .list()
    .filter(
      (zone) =>
        zone !== own &&
        zone.spec.region === own.spec.region &&
        hasRoom(zone, demand.plan) &&
        isOffered(template, zone.metadata.name, now),
    )
    .map(({ metadata: { name } }) => ({ zone: name, plan: demand.plan }))
    .sort((one, other) => (one.zone < other.zone ? -1 : 1))
  const smaller = serverPlans(worldOf(caches))
    .filter(
      ({ metadata: { name }, spec }) =>
        spec.memoryMebibytes < wanted.memoryMebibytes &&
        spec.memoryMebibytes >= template.spec.minMemoryMebibytes &&
        (demand.storage_gibibytes ?? spec.storageGibibytes) >=
          Math.max(spec.storageGibibytes, leastStorageOf(template)) &&
        hasRoom(own, name),
    )
    .sort(
      (one, other) =>
        other.spec.memoryMebibytes - one.spec.memoryMebibytes || (one.metadata.name < other.metadata.name ? -1 : 1),
    )
    .map(({ metadata: { name } }) => ({ zone: demand.zone, plan: name }))
  // The other members of a group are in this zone, as far as is known here.
  return [...(typeof demand.server_group_id === 'string' ? [] : elsewhere), ...smaller].slice(0, ALTERNATIVES_MAXIMUM)
}
