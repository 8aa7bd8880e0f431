/** What surrounds every page. */
import './frame.css'
import type { ReactNode } from 'react'

export function Frame(): ReactNode {
  return (
    <main>
      <h1>svccloud</h1>
    </main>
  )
}
