/** Runs work one at a time on the host, in the order of the calls. Work that is aborted while it waits gets no turn,
 *  and does not delay later work. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  /** Throws the signal's reason when it is aborted before the turn. */
  async run<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    const before = this.#last
    const { promise: over, resolve: end } = Promise.withResolvers<void>()
    this.#last = over
    try {
      await untilAborted(before, signal)
    } catch (error) {
      void before.then(() => end())
      throw error
    }
    try {
      return await work()
    } finally {
      end()
    }
  }
}

async function untilAborted(wait: Promise<unknown>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return void (await wait)
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([wait, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
