/** Does the work for each item, a bounded number of them at a time; takes the next item only when there is room. The
 *  first error stops it, after the started ones have finished. */
export async function forEachConcurrently<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>()
  const errors: unknown[] = []
  for await (const item of items) {
    if (errors.length > 0) break
    const done: Promise<void> = work(item)
      .catch((error: unknown) => void errors.push(error))
      .finally(() => running.delete(done))
    running.add(done)
    if (running.size >= limit) await Promise.race(running)
  }
  await Promise.all(running)
  if (errors.length > 0) throw errors[0]
}
