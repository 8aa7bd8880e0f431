/** Rules of changes about zones. */
import { badField, type Problem, unavailable, zoneLacks } from '../../domain/problem.ts'
import { noSuch } from '../../domain/suggestion.ts'
import type { KubeObject } from '../../kit/kube/object.ts'
import { Region, Zone, type ZONE_CAPABILITIES, type ZoneSpec, type ZoneStatus } from '../../resources/catalog/index.ts'
import type { World } from './world.ts'

/** 400 that lists the existing zones. */
export const unknownZone = (world: World, name: string, field = 'zone'): Problem =>
  badField(field, noSuch('zone', name, [...world.list(Zone)].map(({ metadata }) => metadata.name).sort()))

/** 400 that lists the existing regions. */
export const unknownRegion = (world: World, name: string): Problem =>
  badField('region', noSuch('region', name, [...world.list(Region)].map(({ metadata }) => metadata.name).sort()))

/** Throws 400 for a zone that does not exist, 503 for one that accepts nothing new. */
export function requireOpenZone(world: World, name: string): void {
  const zone = world.find(Zone, { name })
  if (zone === undefined) throw badField('zone', 'there is no such zone')
  if (zone.spec.isClosed) throw unavailable('no_capacity', 'The zone takes nothing new.')
}

/** Throws 400 for a zone that does not exist, 503 for one that accepts nothing new, and 409 for one without private
 *  networks. */
export function requirePrivateNetworks(world: World, name: string, field = 'zone'): void {
  const zone = world.find(Zone, { name })
  if (zone === undefined) throw unknownZone(world, name, field)
  if (zone.spec.isClosed) throw unavailable('no_capacity', 'The zone takes nothing new.')
  if (zone.status?.hasPrivateNetworks !== true)
    throw withoutNetworks(zone, `The zone ${name} has no private networks`, 'private_networks')
}

/** 409 with what is missing, as the start of a sentence, and why. */
export const withoutNetworks = (
  { status }: Pick<KubeObject<ZoneSpec, ZoneStatus>, 'status'>,
  what: string,
  capability: (typeof ZONE_CAPABILITIES)[number],
): Problem => zoneLacks(capability, `${what}: ${status?.networkObstacle ?? 'none of its hosts answers yet'}.`)
