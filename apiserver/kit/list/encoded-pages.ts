/** Pages of lists as bytes, joined once and reused while the same pieces are requested in the same order: most clients
 *  repeat their requests. Pieces are never changed in place. */

export interface EncodedPages {
  /** `{"items":[…],"next_cursor":…}`. */
  join(pieces: readonly Buffer[], nextCursor: string | null): Buffer
}

interface Page {
  readonly pieces: readonly Buffer[]
  readonly nextCursor: string | null
  readonly json: Buffer
}

const OPENS = Buffer.from('{"items":[')
const COMMA = Buffer.from(',')

/** Caches the most recent pages, until together they are larger than `bytesMaximum`. */
export function createEncodedPages(bytesMaximum: number): EncodedPages {
  const kept = new Map<Buffer, Page>() // by the first piece; oldest first
  let bytes = 0
  const drop = (first: Buffer) => {
    bytes -= kept.get(first)?.json.length ?? 0
    kept.delete(first)
  }
  return {
    join(pieces, nextCursor) {
      const [first] = pieces
      const known = first && kept.get(first)
      if (
        known?.nextCursor === nextCursor &&
        known.pieces.length === pieces.length &&
        known.pieces.every((piece, index) => piece === pieces[index])
      )
        return known.json
      const json = Buffer.concat([
        OPENS,
        ...pieces.flatMap((piece, index) => (index === 0 ? [piece] : [COMMA, piece])),
        Buffer.from(`],"next_cursor":${JSON.stringify(nextCursor)}}`),
      ])
      if (first === undefined || json.length > bytesMaximum) return json
      drop(first)
      kept.set(first, { pieces, nextCursor, json })
      bytes += json.length
      for (const oldest of kept.keys()) {
        if (bytes <= bytesMaximum) break
        drop(oldest)
      }
      return json
    },
  }
}
