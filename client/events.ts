/** Server-sent events of a response. */

export interface StreamEvent {
  /** Empty for a comment, and for a block that only has an id. */
  readonly event: string
  readonly data: string
  readonly id: string
}

/** Ends with the response. */
export async function* events(response: Response): AsyncGenerator<StreamEvent, void, undefined> {
  // Not every browser iterates over streams.
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) return
  try {
    let pending = ''
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      pending += part.value
      const blocks = pending.split('\n\n')
      pending = blocks.pop() ?? ''
      for (const block of blocks)
        yield { event: fieldOf(block, 'event'), data: fieldOf(block, 'data'), id: fieldOf(block, 'id') }
    }
  } finally {
    await reader.cancel().catch(() => {}) // it may have failed
  }
}

const fieldOf = (block: string, name: string): string => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? ''
