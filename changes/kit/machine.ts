/** Rules for the machines that changes need, and for their plans. */
import type { Transaction } from 'kysely'
import { isDatabasePlan } from '../../domain/database/rules.ts'
import { defined } from '../../domain/defined.ts'
import { MANAGED_TEMPLATE, type MachineOwner, managedByOf } from '../../domain/managed-machine/rules.ts'
import { badField, type Problem } from '../../domain/problem.ts'
import { noSuch } from '../../domain/suggestion.ts'
import type { InterfaceDemand } from '../../db/network-interface/index.ts'
import { claimServer } from '../../db/server/index.ts'
import type { Tables } from '../../db/tables.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { type DryRunContext, dryRunNotes } from '../../kit/sys/dry-run.ts'
import { leastStorageOf, Plan, type PlanSpec, Template, Zone } from '../../resources/catalog/index.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Network } from '../../resources/network/index.ts'
import type { Means } from './define.ts'
import { type World, worldOf } from './world.ts'

/** A machine that needs room. */
interface WantedMachine {
  readonly plan: string
  readonly publicIpv4: boolean
  readonly networkIds: readonly string[]
}

export interface WantedMachines {
  readonly accountId: string
  readonly zone: string
  /** The resource whose machines are kept apart; undefined when it does not exist yet. */
  readonly owner?: MachineOwner
  readonly machines: readonly WantedMachine[]
}

const wanted = dryRunNotes((): WantedMachine[] => [])

/** The machines that a dry run would create. */
export const dryRunMachines = (dryRun: DryRunContext): readonly Pick<WantedMachine, 'plan' | 'publicIpv4'>[] =>
  wanted.of(dryRun)

/** Claims everything that the machines need. Throws the refusals that their creation would get: 400 for a plan that is
 *  unknown or too small, `quota_exceeded` (422), `no_capacity` and `no_free_address` (503). */
export async function claimMachines(
  tx: Transaction<Tables>,
  { caches, clock, random }: Omit<Means, 'changeId'>,
  { accountId, zone, owner, machines }: WantedMachines,
): Promise<void> {
  wanted.current()?.push(...machines)
  const world = worldOf(caches)
  const demands = machines.map(({ plan, publicIpv4, networkIds }) => ({
    accountId,
    zone,
    region: world.find(Zone, { name: zone })?.spec.region,
    ...(owner === undefined ? {} : { managedBy: managedByOf(owner) }),
    publicIpv4,
    networks: networkIds.flatMap((networkId) => networkDemand(world, accountId, { networkId })),
    ...roomOf(world, plan),
  }))
  for (const demand of demands) {
    const serverId = newUuid(random)
    await claimServer(tx, { ...demand, serverId, hostname: serverId }, { now: clock.now(), random })
  }
}

function roomOf(world: World, name: string) {
  const { cores, memoryMebibytes, storageGibibytes, cpuPool } = requireAnyPlan(world, name)
  return { cores, memoryMebibytes, storageGibibytes, ...defined({ cpuPool }) }
}

/** None for a network that is not known here: its server refuses it later, or waits for it. */
export function networkDemand(
  world: World,
  accountId: string,
  entry: Omit<InterfaceDemand, 'networkUid'>,
): readonly InterfaceDemand[] {
  const network = world.find(Network, { namespace: accountNamespace(accountId), name: entry.networkId })
  const networkUid = network?.status?.ipv6Prefix === undefined ? undefined : network.metadata.uid
  return networkUid === undefined ? [] : [{ ...entry, networkUid }]
}

/** Plans that servers can have: plans for databases are for their machines only. */
export const serverPlans = (world: World) =>
  [...world.list(Plan)].filter(({ metadata }) => !isDatabasePlan(metadata.name))

/** 400 that lists the existing plans. */
export const unknownPlan = (world: World, name: string, field = 'plan'): Problem =>
  badField(
    field,
    noSuch(
      'plan',
      name,
      serverPlans(world)
        .map(({ metadata }) => metadata.name)
        .sort(),
    ),
  )

/** Why no machine fits; undefined when one does. */
export function planFault(
  world: World,
  { memoryMebibytes, storageGibibytes }: PlanSpec,
  name: string = MANAGED_TEMPLATE,
): string | undefined {
  const template = world.find(Template, { name })
  if (template === undefined) return undefined
  const { minMemoryMebibytes } = template.spec
  if (memoryMebibytes < minMemoryMebibytes) return `its machines need ${minMemoryMebibytes} MiB of memory`
  const least = leastStorageOf(template)
  return storageGibibytes < least ? `its machines need ${least} GiB of storage` : undefined
}

/** The size of a machine of the plan, including those for databases. Throws 400 for a plan that is unknown or too
 *  small. */
function requireAnyPlan(world: World, name: string, field = 'plan', template?: string): PlanSpec {
  const plan = world.find(Plan, { name })?.spec
  if (plan === undefined) throw unknownPlan(world, name, field)
  const fault = planFault(world, plan, template)
  if (fault !== undefined) throw badField(field, fault)
  return plan
}

/** The size of a machine of the plan. Throws 400 for a plan that is unknown, too small, or for databases. */
export function requireMachinePlan(world: World, name: string, field = 'plan', template?: string): PlanSpec {
  if (isDatabasePlan(name)) throw unknownPlan(world, name, field)
  return requireAnyPlan(world, name, field, template)
}
