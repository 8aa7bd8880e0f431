/** Server-sent events of an answer of the service. */

export interface StreamEvent {
  /** Empty for a block that only has an id. */
  readonly event: string
  readonly data: string
  readonly id: string
}

/** Ends with the answer. */
export async function* events(response: Response): AsyncIterable<StreamEvent> {
  if (response.body === null) return
  let pending = ''
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    pending += text
    const blocks = pending.split('\n\n')
    pending = blocks.pop() ?? ''
    for (const block of blocks)
      yield { event: fieldOf(block, 'event'), data: fieldOf(block, 'data'), id: fieldOf(block, 'id') }
  }
}

const fieldOf = (block: string, name: string): string => new RegExp(`^${name}: ?(.*)$`, 'm').exec(block)?.[1] ?? ''
