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
  const pages = new Map<Buffer, Page>() // by the first piece; oldest first
  let bytes = 0
  const drop = (first: Buffer) => {
    bytes -= pages.get(first)?.json.length ?? 0
    pages.delete(first)
  }
  return {
    join(pieces, nextCursor) {
      const [first] = pieces
      const known = first && pages.get(first)
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
      pages.set(first, { pieces, nextCursor, json })
      bytes += json.length
      for (const oldest of pages.keys()) {
        if (bytes <= bytesMaximum) break
        drop(oldest)
      }
      return json
    },
  }
}
