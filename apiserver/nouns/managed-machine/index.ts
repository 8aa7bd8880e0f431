/** What requests ask beforehand about the machines that they need. */
import { claimMachines, type WantedMachines } from '../../../changes/kit/machine.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import type { Parts } from '../../kit/parts.ts'

export { cheapestMachinePlan } from './plans.ts'

/** Claims all that the machines need and gives it back. Throws what their creation would be refused with. */
export const rehearseMachines = (
  parts: Pick<Parts, 'db' | 'caches' | 'clock' | 'random'>,
  wanted: WantedMachines,
): Promise<void> => rehearse(parts, (tx) => claimMachines(tx, parts, wanted))
