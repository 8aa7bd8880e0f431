/** What dry runs show besides the answer: quotas that would change, and the resource as an object for kubectl. */
import { CHANGES } from '../../changes/index.ts'
import { dryRunMachines } from '../../changes/kit/machine.ts'
import { worldOf } from '../../changes/kit/world.ts'
import { HOURS_PER_MONTH } from '../../domain/billing/rules.ts'
import { listQuotas, dryRunQuotas } from '../../db/account/index.ts'
import { listPrices } from '../../db/billing/index.ts'
import type { DescribeDryRun, DryRun } from '../../kit/http/dry-run.ts'
import { type DryRunObject, dryRunObjects } from '../../kit/kube/dry-run-store.ts'
import type { DryRunContext } from '../../kit/sys/dry-run.ts'
import { API_GROUP } from '../../resources/kit/define.ts'
import { Operation } from '../../resources/operation/index.ts'
import { type Cost, costsOf, costsOfServer, planIn } from './costs.ts'
import type { Parts } from './parts.ts'

/** Must be called within the dry run. */
export const dryRunDescription =
  ({ db, caches }: Pick<Parts, 'db' | 'caches'>): DescribeDryRun =>
  async (dryRun, { caller: { accountId }, now }) => ({
    price: await priceOf({ db, caches }, dryRun, now),
    would_claim: await quotasOf({ db }, dryRun, accountId),
    manifest: manifestOf(dryRunObjects(dryRun)),
  })

/** What would be billed in addition, less what would no longer be billed. */
async function priceOf(
  { db, caches }: Pick<Parts, 'db' | 'caches'>,
  dryRun: DryRunContext,
  now: Date,
): Promise<DryRun['price']> {
  const world = worldOf(caches)
  const planOf = planIn((type, key) => world.find(type, key))
  const sums = new Map<string, Cost>()
  const add = (costs: readonly Cost[], sign: 1 | -1): void => {
    for (const { resourceType, plan, quantity } of costs) {
      const key = `${resourceType} ${plan}`
      sums.set(key, { resourceType, plan, quantity: (sums.get(key)?.quantity ?? 0) + sign * quantity })
    }
  }
  for (const { before, after } of dryRunObjects(dryRun)) {
    if (before !== undefined) add(costsOf(before, planOf), -1)
    if (after !== undefined) add(costsOf(after, planOf), 1)
  }
  for (const { plan, publicIpv4 } of dryRunMachines(dryRun)) add(costsOfServer(plan, publicIpv4), 1)
  const changed = [...sums.values()].filter(({ quantity }) => quantity !== 0)
  if (changed.length === 0) return null
  const prices = (await listPrices(db, now)).filter(({ validFrom }) => validFrom <= now)
  const lines = changed.map(({ resourceType, plan, quantity }) => {
    const price = prices.find((each) => each.resourceType === resourceType && each.plan === plan)
    const monthly_millicents = quantity * (price?.unitMillicents ?? 0)
    return { resource_type: resourceType, plan, quantity, monthly_millicents }
  })
  const monthly = lines.reduce((sum, { monthly_millicents }) => sum + monthly_millicents, 0)
  return { monthly_millicents: monthly, hourly_millicents: Math.round(monthly / HOURS_PER_MONTH), lines }
}

async function quotasOf(
  { db }: Pick<Parts, 'db'>,
  dryRun: DryRunContext,
  accountId: string,
): Promise<DryRun['would_claim']> {
  const amounts = dryRunQuotas(dryRun)
  if (amounts.size === 0) return []
  return (await listQuotas(db, accountId)).flatMap((quota) => {
    const amount = amounts.get(quota.name) ?? 0
    return amount === 0 ? [] : [{ ...quota, amount }]
  })
}

/** What `kubectl apply` takes instead of the request; null when it would create or change nothing. */
function manifestOf(objects: readonly DryRunObject[]): DryRun['manifest'] {
  const [first, ...others] = objects.flatMap(({ type, after }) =>
    after === undefined ||
    after.metadata.deletionTimestamp !== undefined ||
    type.group !== API_GROUP ||
    type.plural === Operation.plural
      ? []
      : [written(after)],
  )
  if (first === undefined) return null
  return others.length === 0 ? first : { apiVersion: 'v1', kind: 'List', items: [first, ...others] }
}

/** Without what the platform writes. */
function written({ apiVersion, kind, metadata: { name, namespace }, spec }: NonNullable<DryRunObject['after']>) {
  const platform: readonly string[] = CHANGES.find(({ resource }) => resource.kind === kind)?.platform ?? []
  // kinds of the API have specs
  const fields = Object.entries(spec as object).filter(([field]) => field !== 'operation' && !platform.includes(field))
  return { apiVersion, kind, metadata: { name, namespace }, spec: Object.fromEntries(fields) }
}
