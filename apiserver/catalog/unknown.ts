/** Refusals of names that are not in the catalogue: they say which there are. */
import { badField, type Problem } from '../../domain/problem.ts'
import { noSuch } from '../../domain/suggestion.ts'
import { unknownRegion as unknownRegionIn, unknownZone as unknownZoneIn } from '../../changes/kit/zone.ts'
import { unknownPlan as unknownPlanIn } from '../../changes/kit/machine.ts'
import { worldOf } from '../../changes/kit/world.ts'
import { isHidden, isOffered, Template } from '../../resources/catalog/index.ts'
import type { Parts } from '../parts.ts'

type Catalog = Pick<Parts, 'caches'>
const sorted = (objects: readonly { readonly metadata: { readonly name: string } }[]): readonly string[] =>
  objects.map(({ metadata }) => metadata.name).sort()

export const unknownZone = ({ caches }: Catalog, name: string, field = 'zone'): Problem =>
  unknownZoneIn(worldOf(caches), name, field)
export const unknownRegion = ({ caches }: Catalog, name: string): Problem => unknownRegionIn(worldOf(caches), name)
export const unknownPlan = ({ caches }: Catalog, name: string, field = 'plan'): Problem =>
  unknownPlanIn(worldOf(caches), name, field)
/** One that is not offered in the zone is unknown there. Hidden ones are not listed. */
export const unknownTemplate = ({ caches }: Catalog, name: string, zone: string, now: Date): Problem =>
  badField(
    'template',
    noSuch(
      'template',
      name,
      sorted(
        caches
          .of(Template)
          .list()
          .filter((template) => !isHidden(template.spec, now) && isOffered(template, zone, now)),
      ),
    ),
  )
