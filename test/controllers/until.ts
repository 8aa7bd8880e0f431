/** Waiting for what controllers bring about. */

const PATIENCE_MILLISECONDS = 30_000
const LOOK_MILLISECONDS = 10

/** Looks until it is so; says what was seen last when it never is. */
export async function until<T>(what: string, look: () => Promise<T>, isSo: (seen: T) => boolean): Promise<T> {
  const deadline = performance.now() + PATIENCE_MILLISECONDS
  for (;;) {
    const seen = await look()
    if (isSo(seen)) return seen
    if (performance.now() > deadline) throw new Error(`${what} did not come true: ${JSON.stringify(seen, (key, value: unknown) => (key === 'managedFields' ? undefined : value))}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MILLISECONDS))
  }
}
