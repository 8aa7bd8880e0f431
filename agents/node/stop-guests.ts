/** Powers off every guest of the host: asks first, then kills. Only for hosts whose data are deleted with the agent. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Hypervisor } from './drivers/hypervisor/hypervisor.ts'

const SOFT_MILLISECONDS = 3_000
const POLL_MILLISECONDS = 50

/** Asks all guests to shut down, and kills those that are not off in time. */
export async function stopGuests(hypervisor: Hypervisor, clock: Clock, log: Logger): Promise<void> {
  const deadline = clock.monotonicMilliseconds() + SOFT_MILLISECONDS
  await Promise.all(
    (await hypervisor.list()).map(async ({ name }) => {
      try {
        await hypervisor.pressPowerButton(name)
        while (clock.monotonicMilliseconds() < deadline && (await hypervisor.inspect(name))?.state === 'running')
          await clock.sleep(POLL_MILLISECONDS)
      } finally {
        await hypervisor.destroy(name)
      }
    }),
  ).catch((error: unknown) => log.error('guests not stopped', { error }))
}
