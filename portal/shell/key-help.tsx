/** The keys that work on every page, and the list of them. */
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { useGo } from './go.ts'
import { type Place, useKeys, usePlaces } from './keys.ts'

// few people open it: it comes with the palette, soon after the first page
const KeyList = lazy(async () => ({ default: (await import('./palette.tsx')).KeyList }))

export interface KeyHelpProps {
  readonly openPalette: () => void
  readonly places: readonly Place[]
}

export function KeyHelp({ openPalette, places }: KeyHelpProps): ReactNode {
  const [isOpen, setOpen] = useState(false)
  usePlaces(places, useGo())
  useKeys({ '?': () => setOpen(true), '/': openPalette })
  return isOpen ? (
    <Suspense>
      <KeyList places={places} onClose={() => setOpen(false)} />
    </Suspense>
  ) : null
}
