/** Checks that requests make in advance for the machines that they need. */
import { claimMachines, type WantedMachines } from '../../../changes/kit/machine.ts'
import { rehearse } from '../../kit/admission/rehearse.ts'
import type { Parts } from '../../kit/parts.ts'
import { inWords, type Rename } from '../../kit/words.ts'

export { cheapestMachinePlan } from './plans.ts'

/** Claims everything that the machines need and releases it. Throws the refusals that their creation would get, with
 *  the fields of the interface: `rename` converts those of the machines' spec. */
export const rehearseMachines = (
  parts: Pick<Parts, 'db' | 'caches' | 'clock' | 'random'>,
  rename: Rename,
  wanted: WantedMachines,
): Promise<void> => inWords(rename, () => rehearse(parts, (tx) => claimMachines(tx, parts, wanted)))
