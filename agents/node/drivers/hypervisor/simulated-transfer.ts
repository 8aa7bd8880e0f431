/** Code that both ends of the migration of a simulated guest share. */
import type { Clock } from '../../../../kit/sys/clock.ts'
import type { Random } from '../../../../kit/sys/random.ts'
import type { ReceiveRequest, Transfer } from './hypervisor.ts'
import type { SimulatedGuests } from './simulated-guests.ts'
import type { GuestTransport } from './simulated-network.ts'
import type { SimulatedSystem } from './simulated-system.ts'

export interface SimulatedMigrationOptions {
  readonly clock: Clock
  readonly random: Random
  readonly network: GuestTransport
  /** The host's name in the network. */
  readonly host: string
  /** See `SimulatedHostOptions.isSplitBrainAllowed`. */
  readonly isSplitBrainAllowed: boolean
  readonly guests: SimulatedGuests
  readonly system: SimulatedSystem
  /** Whether an agent is attached to order the steps that need one. */
  readonly hasAgent: () => boolean
}

/** Report on a transfer that has just started. */
export const newTransfer = (
  role: Transfer['role'],
  { id, attempt }: Pick<ReceiveRequest, 'id' | 'attempt'>,
  at: Date,
  where: Pick<Transfer, 'host' | 'port' | 'diskPort'> = {},
): Transfer => ({
  id,
  attempt,
  role,
  phase: 'transferring',
  ...where,
  iteration: 0,
  transferredBytes: 0,
  totalBytes: 0,
  dirtyBytesPerSecond: 0,
  downtimeMilliseconds: 0,
  detail: '',
  reportedAt: at.toISOString(),
})
