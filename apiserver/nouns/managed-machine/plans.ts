/** Plans for managed machines: those that their image fits. */
import { planFault, serverPlans } from '../../../changes/kit/machine.ts'
import { worldOf } from '../../../changes/kit/world.ts'
import { badField } from '../../../domain/problem.ts'
import type { Parts } from '../../kit/parts.ts'

/** The cheapest plan that machines fit. Throws 400 when there is none. */
export function cheapestMachinePlan({ caches }: Pick<Parts, 'caches'>): string {
  const world = worldOf(caches)
  const [cheapest] = serverPlans(world)
    .filter(({ spec }) => planFault(world, spec) === undefined)
    .toSorted(
      (one, other) =>
        one.spec.priceMonthlyCents - other.spec.priceMonthlyCents || (one.metadata.name < other.metadata.name ? -1 : 1),
    )
  if (cheapest === undefined) throw badField('plan', 'there is none that its machines fit')
  return cheapest.metadata.name
}
