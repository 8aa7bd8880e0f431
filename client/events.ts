/** Server-sent events of a response. */

export interface StreamEvent {
  /** Empty for a comment, and for a block that only has an id. */
  readonly event: string
  readonly data: string
  readonly id: string
}

/** Ends with the response; throws the signal's reason as soon as it aborts. The signal of the request does not suffice:
 *  Node's fetch forgets it when the request is garbage, and the body is silent for ever. */
export async function* events(response: Response, signal: AbortSignal): AsyncGenerator<StreamEvent, void, undefined> {
  // Not every browser iterates over streams.
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) return
  const leave = () => void reader.cancel().catch(() => {}) // it may have failed
  signal.addEventListener('abort', leave, { once: true })
  try {
    signal.throwIfAborted()
    let pending = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      pending += part.value
      const blocks = pending.split('\n\n')
      pending = blocks.pop() ?? ''
      for (const block of blocks)
        yield { event: fieldOf(block, 'event'), data: fieldOf(block, 'data'), id: fieldOf(block, 'id') }
    }
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', leave)
    leave()
  }
}

const fieldOf = (block: string, name: string): string => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? ''
