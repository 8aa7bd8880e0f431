/** Passes durable changes to the watches of their resource. A watch that is too slow is ended, so that its client
 *  resumes it; it never silently misses a change. */
import type { Store } from './store.ts'
import type { StoreChange } from './store-table.ts'

export interface Subscription {
  /** Waits for the next change or note; undefined at the end. */
  next(): Promise<StoreChange | Note | undefined>
  /** Queues a note after the waiting changes. */
  note(note: Note): void
  end(): void
}

export type Note = 'bookmark' | 'expired'

export interface WatchHub {
  /** Changes with a revision above `after`, from the window and from now on; undefined when the window is too short. */
  subscribe(storageKey: string, after: number): Subscription | undefined
  count(): number
  endAll(): void
}

/** Limit of the changes that may wait for one watch. */
const QUEUE_MOST_CHANGES = 10_000

export function openWatchHub(store: Store): WatchHub {
  const subscribers = new Map<string, Set<ReturnType<typeof openSubscription>>>()
  store.onChange((storageKey, change) => {
    for (const subscriber of subscribers.get(storageKey) ?? []) subscriber.push(change)
  })
  return {
    subscribe(storageKey, after) {
      const missed = store.table(storageKey).window.since(after)
      if (!missed) return undefined
      let group = subscribers.get(storageKey)
      if (!group) subscribers.set(storageKey, (group = new Set()))
      const members = group
      const published = store.published()
      const waiting = missed.filter(({ revision }) => revision <= published)
      const subscription = openSubscription(after, waiting, () => members.delete(subscription))
      members.add(subscription)
      return subscription
    },
    count: () => [...subscribers.values()].reduce((sum, group) => sum + group.size, 0),
    endAll: () => [...subscribers.values()].forEach((group) => [...group].forEach((subscriber) => subscriber.end())),
  }
}

function openSubscription(
  after: number,
  missed: readonly StoreChange[],
  onEnd: () => void,
): Subscription & { push(change: StoreChange): void } {
  let queue: (StoreChange | Note)[] = [...missed]
  let position = 0
  let isEnded = false
  let wake: (() => void) | undefined
  const add = (item: StoreChange | Note) => {
    if (isEnded) return
    queue.push(item)
    wake?.()
  }
  const end = () => {
    isEnded = true
    queue = []
    position = 0
    onEnd()
    wake?.()
  }
  return {
    push(change) {
      if (change.revision <= after) return
      if (queue.length - position >= QUEUE_MOST_CHANGES + missed.length) end()
      else add(change)
    },
    note: add,
    end,
    async next() {
      while (!isEnded && position >= queue.length) {
        queue = []
        position = 0
        await new Promise<void>((resolve) => (wake = resolve))
        wake = undefined
      }
      return isEnded ? undefined : queue[position++]
    },
  }
}
