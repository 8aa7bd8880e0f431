/** Traffic of the guests of this host in bytes. Counters exist as long as a guest's process. The last reading of a
 *  guest that has ended is kept for a while, so that its last traffic is not lost. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { GuestUsage } from '../../resources/instance/index.ts'
import type { Guest, GuestCounters, Hypervisor } from './drivers/hypervisor/hypervisor.ts'

export interface Usage {
  /** Newest readings of running guests, and last readings of guests that ended recently. */
  list(): Promise<readonly GuestUsage[]>
  /** Takes a reading now, for a guest that is about to end. Never throws. */
  takeReading(name: string): Promise<void>
  /** Takes readings until the signal aborts, for guests that end unnoticed. */
  run(signal: AbortSignal): Promise<void>
}

const SAMPLE_MILLISECONDS = 10_000
/** Thirty times the interval at which the controllers collect readings. */
const ENDED_KEPT_MILLISECONDS = 600_000

/** Keeps the last reading of a guest for a while after its end, so that its last bytes are collected. */
export function openGuestUsage({
  hypervisor,
  clock,
}: {
  readonly hypervisor: Pick<Hypervisor, 'list' | 'inspect' | 'counters'>
  readonly clock: Clock
}): Usage {
  const readings = new Map<string, { readonly usage: GuestUsage; readonly at: number }>()

  async function read(guest: Guest): Promise<void> {
    const counters = await hypervisor.counters(guest.name).catch(() => undefined)
    if (counters === undefined) return
    const usage = usageOf(guest, counters)
    readings.set(usage.epoch, { usage, at: clock.monotonicMilliseconds() })
  }

  async function readAll(): Promise<void> {
    await Promise.all((await hypervisor.list()).map(read))
    const oldest = clock.monotonicMilliseconds() - ENDED_KEPT_MILLISECONDS
    for (const [epoch, { at }] of readings) if (at < oldest) readings.delete(epoch)
  }

  return {
    async list() {
      await readAll()
      return [...readings.values()].map(({ usage }) => usage)
    },
    async takeReading(name) {
      const guest = await hypervisor.inspect(name).catch(() => undefined)
      if (guest !== undefined) await read(guest)
    },
    async run(signal) {
      while (!signal.aborted) {
        await readAll().catch(() => undefined)
        await clock.sleep(SAMPLE_MILLISECONDS, signal)
      }
    },
  }
}

const usageOf = ({ name, uid, incarnation, startedAt }: Guest, counters: GuestCounters): GuestUsage => ({
  instance: name,
  epoch: `${uid}/${incarnation}/${startedAt}`,
  counters: {
    networkReceivedBytes: counters.networkReceivedBytes ?? 0,
    networkTransmittedBytes: counters.networkTransmittedBytes ?? 0,
    diskReadBytes: counters.diskReadBytes,
    diskWrittenBytes: counters.diskWrittenBytes,
    diskReadOperations: counters.diskReadOperations,
    diskWriteOperations: counters.diskWriteOperations,
  },
  load: {
    cpuMilliseconds: counters.cpuMilliseconds ?? null,
    memoryUsedBytes: counters.memoryUsedBytes ?? null,
  },
})
