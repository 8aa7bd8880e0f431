/** What requests for edges, load balancers and databases ask beforehand about the machines that they need. */
import { MANAGED_IMAGE_COMMAND, type MachineOwner, managedByOf } from '../../domain/managed-machine.ts'
import { zoneLacks } from '../../domain/problem.ts'
import type { InterfaceDemand } from '../../db/network-interface/index.ts'
import { claimServer } from '../../db/server/index.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { accountNamespace } from '../../resources/index.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { offersManagedMachines } from '../../resources/managed-machine/index.ts'
import { Network } from '../../resources/network/index.ts'
import { rehearse } from '../admission/rehearse.ts'
import type { Parts } from '../parts.ts'
import { requireAnyPlan } from './plans.ts'

export { cheapestMachinePlan, requireMachinePlan } from './plans.ts'

/** A machine that is to have room. */
export interface WantedMachine {
  readonly plan: string
  readonly publicIpv4: boolean
  readonly networkIds: readonly string[]
}

interface Rehearsal {
  readonly accountId: string
  readonly zone: string
  /** Whose machines are kept apart from them; nobody's when it is not there yet. */
  readonly owner?: MachineOwner
  readonly machines: readonly WantedMachine[]
}

/** Throws 409 `zone_capability_missing`, with the command that helps, in a zone whose hosts lack the image of machines:
 *  such a zone has no load balancers either. */
export function requireManagedMachines({ caches }: Pick<Parts, 'caches'>, zone: string): void {
  if (offersManagedMachines(caches.of(Zone).get({ name: zone })?.status)) return
  throw zoneLacks(
    'load_balancers',
    `The hosts of zone ${zone} have no image for it. On each of them its operator runs: ${MANAGED_IMAGE_COMMAND}`,
  )
}

/** Claims all that the machines need and gives it back. Throws what their creation would be refused with: 400 for a
 *  plan that is unknown or too small, `quota_exceeded` (422), `no_capacity` and `no_free_address` (503). */
export async function rehearseMachines(
  parts: Pick<Parts, 'db' | 'caches' | 'clock' | 'random'>,
  { accountId, zone, owner, machines }: Rehearsal,
): Promise<void> {
  const { caches, clock, random } = parts
  const demands = machines.map(({ plan, publicIpv4, networkIds }) => ({
    accountId,
    zone,
    region: caches.of(Zone).get({ name: zone })?.spec.region,
    ...(owner === undefined ? {} : { managedBy: managedByOf(owner) }),
    publicIpv4,
    networks: networkIds.flatMap((networkId) => networkDemand(parts, accountId, networkId)),
    ...roomOf(parts, plan),
  }))
  await rehearse(parts, async (tx) => {
    for (const demand of demands) {
      const serverId = newUuid(random)
      await claimServer(tx, { ...demand, serverId, hostname: serverId }, { now: clock.now(), random })
    }
  })
}

function roomOf(parts: Pick<Parts, 'caches'>, name: string) {
  const { cores, memoryMebibytes, storageGibibytes, cpuPool } = requireAnyPlan(parts, name)
  return { cores, memoryMebibytes, storageGibibytes, ...(cpuPool === undefined ? {} : { cpuPool }) }
}

/** Of a network that is not known here its machine says so itself. */
function networkDemand(
  { caches }: Pick<Parts, 'caches'>,
  accountId: string,
  networkId: string,
): readonly InterfaceDemand[] {
  const network = caches.of(Network).get({ namespace: accountNamespace(accountId), name: networkId })
  const networkUid = network?.status?.ipv6Prefix === undefined ? undefined : network.metadata.uid
  return networkUid === undefined ? [] : [{ networkId, networkUid }]
}
