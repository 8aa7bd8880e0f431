/** Plans that managed machines can have: those that their image fits. */
import { MANAGED_TEMPLATE } from '../../domain/managed-machine.ts'
import { badField } from '../../domain/problem.ts'
import { leastStorageOf, Plan, type PlanSpec, Template } from '../../resources/catalog/index.ts'
import { findServerPlan, serverPlans, unknownPlan } from '../catalog/index.ts'
import type { Parts } from '../parts.ts'

type Catalog = Pick<Parts, 'caches'>

/** Why no machine fits; undefined when one does. */
function planFault(
  { caches }: Catalog,
  { memoryMebibytes, storageGibibytes }: PlanSpec,
  name: string = MANAGED_TEMPLATE,
): string | undefined {
  const template = caches.of(Template).get({ name })
  if (template === undefined) return undefined
  const { minMemoryMebibytes } = template.spec
  if (memoryMebibytes < minMemoryMebibytes) return `its machines need ${minMemoryMebibytes} MiB of memory`
  const least = leastStorageOf(template)
  return storageGibibytes < least ? `its machines need ${least} GiB of storage` : undefined
}

/** What a machine of the plan has, also of one for databases. Throws 400 for a plan that is unknown or too small. */
export function requireAnyPlan(parts: Catalog, name: string, field = 'plan', template?: string): PlanSpec {
  const plan = parts.caches.of(Plan).get({ name })?.spec
  if (plan === undefined) throw unknownPlan(parts, name, field)
  const fault = planFault(parts, plan, template)
  if (fault !== undefined) throw badField(field, fault)
  return plan
}

/** As `requireAnyPlan`, of plans for servers only. */
export function requireMachinePlan(parts: Catalog, name: string, field = 'plan', template?: string): PlanSpec {
  if (findServerPlan(parts, name) === undefined) throw unknownPlan(parts, name, field)
  return requireAnyPlan(parts, name, field, template)
}

/** The plan that costs least of those that machines fit. Throws 400 when there is none. */
export function cheapestMachinePlan(parts: Catalog): string {
  const [cheapest] = serverPlans(parts)
    .filter(({ spec }) => planFault(parts, spec) === undefined)
    .toSorted(
      (one, other) =>
        one.spec.priceMonthlyCents - other.spec.priceMonthlyCents || (one.metadata.name < other.metadata.name ? -1 : 1),
    )
  if (cheapest === undefined) throw badField('plan', 'there is none that its machines fit')
  return cheapest.metadata.name
}
