/** Two ways to limit requests. Budgets are token buckets of this process, for a signed-in caller's normal requests.
 *  Rate rules are windows that hold across replicas, with a counter that the application provides. */
import type { Clock } from '../sys/clock.ts'
import type { RateRule } from './route.ts'

/** Counts one request against the rule; returns 0, or the whole seconds to wait when it is one too many. */
export type CountRequest = (rule: RateRule, key: string) => Promise<number>

export interface Budget {
  readonly name: string
  readonly perMinute: number
  /** How many may arrive at once. */
  readonly burst: number
}

export interface BudgetState {
  /** Whole requests that are allowed now. */
  readonly remaining: number
  /** Whole seconds until the bucket is full again. */
  readonly fullAfterSeconds: number
  /** 0 when the request was admitted, else the whole seconds until one more is. */
  readonly retryAfterSeconds: number
}

/** Maximum of remembered keys. The least recently used one is forgotten first; a forgotten bucket starts full again. */
const BUCKETS_MAXIMUM = 100_000

interface Bucket {
  tokens: number
  at: number
}

/** Takes one request from the bucket of the key, and returns what is left. Buckets belong to this process. */
export function createBuckets(clock: Clock): (budget: Budget, key: string) => BudgetState {
  const buckets = new Map<string, Bucket>()
  return (budget, key) => {
    const perMillisecond = budget.perMinute / 60_000
    const at = clock.monotonicMilliseconds()
    const id = `${budget.name} ${key}`
    const bucket = buckets.get(id) ?? { tokens: budget.burst, at }
    bucket.tokens = Math.min(budget.burst, bucket.tokens + (at - bucket.at) * perMillisecond)
    bucket.at = at
    buckets.delete(id)
    buckets.set(id, bucket) // newest last
    if (buckets.size > BUCKETS_MAXIMUM)
      for (const oldest of buckets.keys()) {
        buckets.delete(oldest)
        break
      }
    const isAllowed = bucket.tokens >= 1
    if (isAllowed) bucket.tokens -= 1
    return {
      remaining: Math.floor(bucket.tokens),
      fullAfterSeconds: Math.ceil((budget.burst - bucket.tokens) / perMillisecond / 1000),
      retryAfterSeconds: isAllowed ? 0 : Math.max(1, Math.ceil((1 - bucket.tokens) / perMillisecond / 1000)),
    }
  }
}
