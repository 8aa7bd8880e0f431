/** Removes copies of templates in pools that back no disk. They are created again when needed and contain no customer
 *  data. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Outages } from '../../kit/sys/outages.ts'
import type { VolumeStore } from './drivers/storage/volume-store.ts'

export interface TemplateSweepOptions {
  readonly volumes: Pick<VolumeStore, 'removeUnusedTemplates'>
  readonly clock: Clock
  readonly log: Logger
}

const INTERVAL_MILLISECONDS = 3_600_000

/** Checks at once and then every hour, until the signal aborts, for unused copies of templates in pools. */
export async function runTemplateSweep(
  { volumes, clock, log }: TemplateSweepOptions,
  signal: AbortSignal,
): Promise<void> {
  const outages = new Outages({ log, clock }, 'unused templates not looked for')
  while (volumes.removeUnusedTemplates !== undefined && !signal.aborted) {
    try {
      const names = await volumes.removeUnusedTemplates()
      outages.over()
      if (names.length > 0) log.info('unused templates removed from their pool', { names })
    } catch (error) {
      outages.failed(error)
    }
    await clock.sleep(INTERVAL_MILLISECONDS, signal)
  }
}
