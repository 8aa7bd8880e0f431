/** What requests for edges, load balancers and databases ask beforehand about the machines that they need. */
import { claimMachines, type WantedMachines } from '../../changes/kit/machine.ts'
import { MANAGED_IMAGE_COMMAND } from '../../domain/managed-machine.ts'
import { zoneLacks } from '../../domain/problem.ts'
import { Zone } from '../../resources/catalog/index.ts'
import { offersManagedMachines } from '../../resources/managed-machine/index.ts'
import { rehearse } from '../admission/rehearse.ts'
import type { Parts } from '../parts.ts'

export { cheapestMachinePlan, requireMachinePlan } from './plans.ts'

/** Throws 409 `zone_capability_missing`, with the command that helps, in a zone whose hosts lack the image of machines:
 *  such a zone has no load balancers either. */
export function requireManagedMachines({ caches }: Pick<Parts, 'caches'>, zone: string): void {
  if (offersManagedMachines(caches.of(Zone).get({ name: zone })?.status)) return
  throw zoneLacks(
    'load_balancers',
    `The hosts of zone ${zone} have no image for it. On each of them its operator runs: ${MANAGED_IMAGE_COMMAND}`,
  )
}

/** Claims all that the machines need and gives it back. Throws what their creation would be refused with. */
export const rehearseMachines = (
  parts: Pick<Parts, 'db' | 'caches' | 'clock' | 'random'>,
  wanted: WantedMachines,
): Promise<void> => rehearse(parts, (tx) => claimMachines(tx, parts, wanted))
