/** The frame of pages for people who are not signed in. */
import '../shell/frame.css'
import { type ReactNode, useEffect } from 'react'
import { brand } from '../api/brand.ts'
import { BrandLink, BrandLinks } from '../shell/brand.tsx'
import { showIn } from '../shell/language.ts'
import { chosenLocale, LOCALE_NAMES } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'

export interface OutsideProps {
  readonly title: string
  readonly note?: string | undefined
  readonly children: ReactNode
  readonly below?: ReactNode
}

export function Outside({ title, note, children, below }: OutsideProps): ReactNode {
  useEffect(() => {
    document.title = `${title} · ${brand().name}`
  }, [title])
  return (
    <main className="outside">
      <BrandLink href="/login" />
      <div className="sheet">
        <header>
          <h1>{title}</h1>
          {note === undefined ? null : <p className="soft">{note}</p>}
        </header>
        {children}
      </div>
      {below === undefined ? null : <p className="below">{below}</p>}
      <BrandLinks />
      <p className="languages">
        {Object.entries(LOCALE_NAMES)
          .filter(([tag]) => tag !== chosenLocale())
          .map(([tag, name]) => (
            <Button key={tag} kind="quiet" onPress={() => showIn(tag)}>
              {name}
            </Button>
          ))}
      </p>
    </main>
  )
}
