/** Checks that requests make in advance for the machines that they need. */
import { claimMachines, type WantedMachines } from '../../../changes/kit/machine.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import type { Parts } from '../../kit/parts.ts'

export { cheapestMachinePlan } from './plans.ts'

/** Claims everything that the machines need and releases it. Throws the refusals that their creation would get. */
export const rehearseMachines = (
  parts: Pick<Parts, 'db' | 'caches' | 'clock' | 'random'>,
  wanted: WantedMachines,
): Promise<void> => rehearse(parts, (tx) => claimMachines(tx, parts, wanted))
