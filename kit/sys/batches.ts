/** Work that is asked for while the same work is under way waits for its end, and is then done together. */

/** One that was asked for, and is to be answered. */
export interface Asked<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result | Promise<Result>) => void
  readonly reject: (error: unknown) => void
}

export interface BatchesOptions<Item, Result> {
  /** In one batch; as many as there are, when absent. */
  readonly itemsMaximum?: number
  /** Answers each of them, and never throws. Batches of one key are done one after the other. */
  readonly work: (batch: readonly Asked<Item, Result>[], key: string) => Promise<void>
}

/** Each item is in a batch that begins after it was asked for. */
export function inBatches<Item, Result>({
  itemsMaximum = Number.POSITIVE_INFINITY,
  work,
}: BatchesOptions<Item, Result>): (key: string, item: Item) => Promise<Result> {
  /** Of each key that is worked on: what waits for the batch before. */
  const queues = new Map<string, Asked<Item, Result>[]>()

  async function run(key: string, queue: Asked<Item, Result>[]): Promise<void> {
    await Promise.resolve() // what is asked for in the same turn goes together
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
