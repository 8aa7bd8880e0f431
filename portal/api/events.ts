/** Server-sent events of an answer, as they arrive. */

export interface ServerSentEvent {
  /** `message` when the service gives no name; empty for a line with an id alone. */
  readonly event: string
  readonly data: string
  /** Empty without one. */
  readonly id: string
}

const LINES_BYTES_MAXIMUM = 4_000_000

/** Ends with the answer. Throws when the connection is lost, or when one event is larger than any that is sent. */
export async function* serverSentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  // its types know no shared memory
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += value
      if (rest.length > LINES_BYTES_MAXIMUM) throw new Error('an event is too large')
      const blocks = rest.split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const event = eventOf(block)
        if (event !== undefined) yield event
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** The event of a block of lines; undefined for a comment. */
export function eventOf(block: string): ServerSentEvent | undefined {
  const fields = block.split(/\r?\n/).flatMap((line) => {
    const [, name = '', value = ''] = /^([a-z]+): ?(.*)$/s.exec(line) ?? []
    return name === '' ? [] : [[name, value] as const]
  })
  const of = (wanted: string): readonly string[] => fields.filter(([name]) => name === wanted).map(([, value]) => value)
  if (fields.length === 0) return undefined
  return { event: of('event')[0] ?? '', data: of('data').join('\n'), id: of('id')[0] ?? '' }
}
