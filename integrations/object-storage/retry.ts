/** Retries requests to a store a few times, because some of many requests fail only once. */
import { backoffMilliseconds } from '../../kit/sys/backoff.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import { StoreRefused } from './s3.ts'

export interface Patience {
  readonly clock: Pick<Clock, 'sleep'>
  readonly random: Random
}

const ATTEMPTS_MAXIMUM = 5
const BACKOFF = { baseMilliseconds: 200, maximumMilliseconds: 2_000 }
/** Other refusals are permanent. 412 means that the object was changed while it was read. */
const PASSING_STATUSES = [408, 412, 429]

const mayPass = (error: unknown): boolean => {
  if (!(error instanceof StoreRefused)) return true
  const { status } = error
  return status === undefined || status >= 500 || PASSING_STATUSES.includes(status)
}

/** Repeats the work when it fails; the work must be repeatable. Throws the last failure. */
export async function persistently<Result>({ clock, random }: Patience, work: () => Promise<Result>): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work()
    } catch (error) {
      if (failures >= ATTEMPTS_MAXIMUM || !mayPass(error)) throw error
      await clock.sleep(backoffMilliseconds(failures - 1, BACKOFF, random))
    }
  }
}
