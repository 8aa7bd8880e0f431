/** The frame of pages for people who are not signed in. */
import '../shell/frame.css'
import { Boxes } from 'lucide-react'
import { type ReactNode, useEffect } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { t } from '../texts/index.ts'

export interface OutsideProps {
  readonly title: string
  readonly note?: string | undefined
  readonly children: ReactNode
  readonly below?: ReactNode
}

export function Outside({ title, note, children, below }: OutsideProps): ReactNode {
  useEffect(() => {
    document.title = `${title} · ${t().product}`
  }, [title])
  return (
    <main className="outside">
      <AriaLink href="/login" className="brand">
        <span className="mark" aria-hidden="true">
          <Boxes />
        </span>
        {t().product}
      </AriaLink>
      <div className="sheet">
        <header>
          <h1>{title}</h1>
          {note === undefined ? null : <p className="soft">{note}</p>}
        </header>
        {children}
      </div>
      {below === undefined ? null : <p className="below">{below}</p>}
    </main>
  )
}
