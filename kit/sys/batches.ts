/** Batching: items that arrive while a batch of the same key runs wait for its end and form the next batch. */

/** An item in a queue, with the promise of its result. */
export interface PendingItem<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result | Promise<Result>) => void
  readonly reject: (error: unknown) => void
}

export interface BatchesOptions<Item, Result> {
  /** Maximum of one batch; unlimited when absent. */
  readonly itemsMaximum?: number
  /** Resolves each of them, and never throws. Batches of one key are done one after the other. */
  readonly work: (batch: readonly PendingItem<Item, Result>[], key: string) => Promise<void>
}

/** Each item is in a batch that starts after the item was added. */
export function inBatches<Item, Result>({
  itemsMaximum = Number.POSITIVE_INFINITY,
  work,
}: BatchesOptions<Item, Result>): (key: string, item: Item) => Promise<Result> {
  /** For each key in progress: the items that wait for the current batch. */
  const queues = new Map<string, PendingItem<Item, Result>[]>()

  async function run(key: string, queue: PendingItem<Item, Result>[]): Promise<void> {
    await Promise.resolve() // items added before the next microtask share a batch
    while (queue.length > 0) await work(queue.splice(0, itemsMaximum), key)
    queues.delete(key)
  }

  return (key, item) =>
    new Promise((resolve, reject) => {
      const queue = queues.get(key) ?? []
      queue.push({ item, resolve, reject })
      if (queues.has(key)) return
      queues.set(key, queue)
      void run(key, queue)
    })
}
