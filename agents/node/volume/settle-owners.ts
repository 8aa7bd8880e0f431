/** Corrects owners of disks on shared storage that a killed agent, or one of an earlier release, left inconsistent:
 *  records the disks of running guests, and releases disks that no guest has. */
import type { Guest } from '../drivers/hypervisor/hypervisor.ts'
import { volumeUser, type VolumeOptions } from './effects.ts'
import { Outages } from '../../../kit/sys/outages.ts'

const INTERVAL_MILLISECONDS = 15_000

/** Runs at once and then every INTERVAL_MILLISECONDS, until the signal aborts. The caches must be ready. */
export async function runOwnerSettling(options: VolumeOptions, signal: AbortSignal): Promise<void> {
  const outages = new Outages(options, 'owners of disks not settled')
  while (!signal.aborted) {
    await outages.attempt(() => settleOwners(options))
    await options.clock.sleep(INTERVAL_MILLISECONDS, signal)
  }
}

/** Whether it writes to its disks. A guest that is still arriving does not. */
const runsHere = ({ state, transfer }: Guest): boolean =>
  state === 'running' && (transfer?.role !== 'receive' || transfer.phase === 'completed')

async function settleOwners(options: VolumeOptions): Promise<void> {
  const { volumes, hypervisor, ownership, diskLocks, ledger, log } = options
  let failure: unknown
  for (const { name: volume, pool } of await volumes.list()) {
    if (pool === undefined) continue
    const isUsed = async () =>
      (await hypervisor.list()).some(
        (guest) =>
          runsHere(guest) &&
          (ledger.get(guest.name)?.volumes?.includes(volume) === true ||
            guest.disks.some((path) => volumes.nameOf(path) === volume)),
      )
    const settle = async () => {
      const last = ownership.lastNoted(volume)
      if (await isUsed()) return last === 'taken' ? undefined : ownership.take(volume)
      return last === 'given' || (await volumeUser(options, volume)) !== undefined ? undefined : ownership.give(volume)
    }
    await diskLocks.run(volume, settle).catch((error: unknown) => {
      log.info('owner of a disk not settled', { volume, error })
      failure = error
    })
  }
  if (failure !== undefined) throw failure
}
