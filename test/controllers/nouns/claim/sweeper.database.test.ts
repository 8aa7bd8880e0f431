/** When the sweeper looks. */
import { expect, test } from 'vitest'
import { runClaimSweeper } from '../../../../controllers/nouns/claim/index.ts'
import { openSweepRate } from '../../../../controllers/kit/sweep-rate.ts'
import type { Parts } from '../../../../controllers/kit/parts.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { silentLog } from '../../../../kit/sys/log.ts'
import { systemRandom } from '../../../../kit/sys/random.ts'
import { useDatabase } from '../../../database.ts'

const database = useDatabase()

test('the first look comes within seconds of a start, the next ones every two minutes', async () => {
  let now = 0
  const clock = {
    ...systemClock,
    monotonicMilliseconds: () => now,
    sleep: async (milliseconds: number) => void (now += milliseconds),
  }
  const looks: number[] = []
  const end = new AbortController()
  await runClaimSweeper(
    {
      db: database.db,
      clock,
      random: systemRandom,
      log: silentLog,
      sweepRate: openSweepRate(clock),
      // nothing is claimed, so that nothing is asked for
      caches: { isReady: () => true } as unknown as Parts['caches'],
      store: {} as Parts['store'],
      onClaimsSwept: () => {
        looks.push(now / 1_000)
        if (looks.length === 3) end.abort()
      },
    },
    end.signal,
  )
  expect(looks).toEqual([10, 130, 250])
})
