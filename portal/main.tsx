/** The customers' page: starts the portal in it. */
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Frame } from './shell/frame.tsx'

const place = document.getElementById('portal')
if (place === null) throw new Error('the page has no place for the portal')
createRoot(place).render(
  <StrictMode>
    <Frame />
  </StrictMode>,
)
