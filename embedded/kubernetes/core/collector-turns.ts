/** Schedules the collection of objects: one at a time for each object, and again after a refusal, with growing
 *  intervals. */
import { backoffMilliseconds, type BackoffLimits } from '../../../kit/sys/backoff.ts'
import type { Engine } from './engine.ts'
import type { ObjectRef } from './ownership.ts'

const REFUSED_LIMITS: BackoffLimits = { baseMilliseconds: 2_000, maximumMilliseconds: 60_000 }

/** `collect` returns whether something was refused. */
export function openTurns(
  { log, clock, random }: Pick<Engine, 'log' | 'clock' | 'random'>,
  collect: (ref: ObjectRef) => Promise<boolean>,
): { readonly enqueue: (ref: ObjectRef) => void; readonly stop: () => void } {
  const queue = new Map<string, ObjectRef>()
  /** Objects that admission is being asked about, and whether they have changed meanwhile. */
  const asking = new Map<string, { isStale: boolean }>()
  /** Number of consecutive refusals by admission, and a function that cancels the next attempt. */
  const refused = new Map<string, { readonly count: number; readonly cancel: () => void }>()
  let isRunning = false
  let isStopped = false

  const nameOf = ({ storageKey, key }: ObjectRef): string => `${storageKey} ${key}`
  const enqueue = (ref: ObjectRef) => {
    queue.set(nameOf(ref), ref)
    if (isRunning || isStopped) return
    isRunning = true
    void Promise.resolve().then(drain)
  }
  const again = (name: string, ref: ObjectRef) => {
    const { count = 0, cancel } = refused.get(name) ?? {}
    cancel?.()
    const pause = backoffMilliseconds(count, REFUSED_LIMITS, random)
    refused.set(name, { count: count + 1, cancel: clock.after(pause, () => enqueue(ref)) })
  }
  const collectOne = async (name: string, ref: ObjectRef) => {
    const own = { isStale: false }
    asking.set(name, own)
    try {
      const isRefused = await collect(ref)
      if (isStopped) return
      if (isRefused) again(name, ref)
      else {
        refused.get(name)?.cancel()
        refused.delete(name)
      }
    } catch (error) {
      log.error('an object could not be collected', { storageKey: ref.storageKey, error })
    } finally {
      asking.delete(name)
      if (own.isStale) enqueue(ref)
    }
  }
  const drain = () => {
    for (const [name, ref] of queue) {
      queue.delete(name)
      const current = asking.get(name)
      if (current !== undefined) current.isStale = true
      else if (!isStopped) void collectOne(name, ref)
    }
    isRunning = false
  }
  return {
    enqueue,
    stop() {
      isStopped = true
      for (const { cancel } of refused.values()) cancel()
    },
  }
}
