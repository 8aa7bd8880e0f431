/** Of a table with many rows, those that can be seen. */
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, type RefObject, useEffect, useRef } from 'react'

const ROW_PIXELS = 46
const ROWS_BEFORE_END = 20

export interface RowsInSightProps {
  readonly count: number
  /** What scrolls. */
  readonly scroll: RefObject<HTMLElement | null>
  readonly rowAt: (at: number) => ReactNode
  /** Called a few rows before the end. */
  readonly onEnd: (() => void) | undefined
}

export function RowsInSight({ count, scroll, rowAt, onEnd }: RowsInSightProps): ReactNode {
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW_PIXELS,
    overscan: 12,
  })
  const inSight = rows.getVirtualItems()
  const last = inSight.at(-1)
  const end = last?.index ?? 0
  useAtEnd(end, count, onEnd)
  return (
    <>
      <Gap pixels={inSight[0]?.start ?? 0} />
      {inSight.map(({ index }) => rowAt(index))}
      <Gap pixels={last === undefined ? 0 : rows.getTotalSize() - last.end} />
    </>
  )
}

/** Calls once for each end that is reached, although the function is another one with every render. */
export function useAtEnd(end: number, count: number, onEnd: (() => void) | undefined): void {
  const latest = useRef(onEnd)
  useEffect(() => {
    latest.current = onEnd
  })
  useEffect(() => {
    if (end > count - ROWS_BEFORE_END) latest.current?.()
  }, [end, count])
}

function Gap({ pixels }: { readonly pixels: number }): ReactNode {
  return pixels <= 0 ? null : (
    <tr className="gap" aria-hidden="true">
      <td style={{ blockSize: pixels }} />
    </tr>
  )
}
