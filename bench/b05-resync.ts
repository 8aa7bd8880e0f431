/** A resync of controllers over 20 000 objects at rest, which are 5 000 servers with their storages, volumes and
 *  instances: every root is reconciled once more, and nothing is written. Against an empty asynchronous loop over as
 *  many roots. */
import type { Clock } from '../kit/sys/clock.ts'
import { systemClock } from '../kit/sys/clock.ts'
import { cpuSeconds } from '../kit/sys/process.ts'
import { openCloud } from './cloud.ts'
import { openProcess } from './controllers.ts'
import { type Bench, median } from './runner.ts'
import { createStartedServers, NODE, OBJECTS_OF_SERVER } from './started-servers.ts'

const SERVERS = { full: 5_000, short: 20 }
/** The measured time is proportional to the number of objects; it is reported for so many. */
const LARGE_OBJECTS = 100_000
/** The minimum between two resyncs of a controller. */
const RESYNC_MILLISECONDS = 600_000
const SECONDS = 'CPU seconds of a resync of 100,000 objects'

export const bench: Bench = {
  name: 'B05 resync',
  question: `${SERVERS.full * OBJECTS_OF_SERVER} objects at rest, all reconciled again`,
  subjectName: 'objects reconciled',
  peerName: 'empty loop over their names',
  unit: 'objects',
  goal: 0.05,
  limits: { [SECONDS]: 2, writes: 0 },
  heldBy:
    'a reconcile reads what the server claims from PostgreSQL, which no watch can tell; and its plan and the draft ' +
    'of the instance are made and hashed anew.',
  tier: 'database',
  async open(round) {
    const count = SERVERS[round]
    const cloud = await openCloud([NODE])
    await createStartedServers(cloud, count)
    const { clock, resync } = resyncingClock()
    const process = openProcess(cloud, clock)
    await process.fill()
    process.begin()
    await process.reconciled('server', count)
    await process.quiet()
    process.writes.count = 0
    const cpu: number[] = []
    return {
      subject: {
        async run() {
          const [begin, before, servers, storages] = [
            systemClock.monotonicMilliseconds(),
            cpuSeconds(),
            await process.reconciles('server'),
            await process.reconciles('storage'),
          ]
          resync()
          await process.reconciled('server', servers + count)
          await process.reconciled('storage', storages + count)
          cpu.push(((cpuSeconds() - before) * LARGE_OBJECTS) / (count * OBJECTS_OF_SERVER))
          return {
            units: count * OBJECTS_OF_SERVER,
            seconds: (systemClock.monotonicMilliseconds() - begin) / 1_000,
          }
        },
      },
      peer: {
        async run() {
          const names = Array.from({ length: count * OBJECTS_OF_SERVER }, (_, index) => String(index))
          const begin = systemClock.monotonicMilliseconds()
          for (const name of names) await nothing(name)
          return { units: names.length, seconds: (systemClock.monotonicMilliseconds() - begin) / 1_000 }
        },
      },
      facts: () => ({ [SECONDS]: median(cpu).toFixed(2), writes: process.writes.count }),
      async close() {
        await process.stop()
        await cloud.close()
      },
    }
  },
}

const nothing = async (_name: string): Promise<void> => {}

/** A clock on which the resync is due on demand. */
function resyncingClock(): { readonly clock: Clock; resync(): void } {
  let due = Promise.withResolvers<void>()
  return {
    clock: {
      ...systemClock,
      async sleep(milliseconds, signal) {
        if (milliseconds < RESYNC_MILLISECONDS) return systemClock.sleep(milliseconds, signal)
        await Promise.race([due.promise, systemClock.sleep(milliseconds, signal)])
      },
    },
    resync() {
      due.resolve()
      due = Promise.withResolvers<void>()
    },
  }
}
