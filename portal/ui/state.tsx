/** States, tags and bars. A state is a word with a shape, never a colour alone. */
import './state.css'
import { Circle, CircleDashed, Info, Square, TriangleAlert } from 'lucide-react'
import { type ReactNode, useLayoutEffect, useRef } from 'react'

export type Look = 'good' | 'busy' | 'bad' | 'off'

const SHAPES = { good: Circle, busy: CircleDashed, bad: TriangleAlert, off: Square } as const

export function State({ look, children }: { readonly look: Look; readonly children: ReactNode }): ReactNode {
  const Shape = SHAPES[look]
  return (
    <span className={`state ${look}`}>
      <Shape aria-hidden="true" fill={look === 'good' || look === 'off' ? 'currentColor' : 'none'} strokeWidth={3} />
      {children}
    </span>
  )
}

export const Tag = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <span className="tag" dir="auto">
    {children}
  </span>
)

export const Tags = ({ children }: { readonly children: ReactNode }): ReactNode => (
  <div className="tags">{children}</div>
)

/** From 0 to 1. */
export function Bar({
  part,
  label,
  isBad = false,
}: {
  readonly part: number
  readonly label: string
  readonly isBad?: boolean
}): ReactNode {
  const fill = useRef<HTMLSpanElement>(null)
  const percent = Math.round(Math.min(1, Math.max(0, part)) * 100)
  useLayoutEffect(() => {
    if (fill.current !== null) fill.current.style.inlineSize = `${String(percent)}%`
  }, [percent])
  return (
    <div className={`bar ${isBad ? 'bad' : ''}`} role="progressbar" aria-label={label} aria-valuenow={percent}>
      <span ref={fill} />
    </div>
  )
}

/** A line of explanation in a box. It may come while somebody reads: screen readers say it. */
export const Note = ({ children, look }: { readonly children: ReactNode; readonly look?: 'busy' }): ReactNode => (
  <div className={`note-box ${look ?? ''}`} role="status">
    <Info aria-hidden="true" />
    <div>{children}</div>
  </div>
)
