/** The refusal of a template that is not in the catalogue: it lists those that are. */
import { badField, type Problem } from '../../../domain/problem.ts'
import { noSuch } from '../../../domain/suggestion.ts'
import { isHidden, isOffered, Template } from '../../../resources/catalog/index.ts'
import type { Parts } from '../../kit/parts.ts'

type Catalog = Pick<Parts, 'caches'>
const sorted = (objects: readonly { readonly metadata: { readonly name: string } }[]): readonly string[] =>
  objects.map(({ metadata }) => metadata.name).sort()

/** A template that is not offered in the zone is unknown there. Hidden ones are not listed. */
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
