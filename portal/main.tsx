/** The customers' page: starts the portal in it. */
import './ui/tokens.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { cache } from './api/cache.ts'
import { openPortal } from './api/portal.ts'
import { customerPortal } from './customer.ts'
import { NOUNS } from './nouns.ts'
import { register } from './nouns/registry.ts'
import { loadTexts } from './texts/index.ts'
import { routerOf } from './shell/router.tsx'

const place = document.getElementById('portal')
if (place === null) throw new Error('the page has no place for the portal')
openPortal(customerPortal)
await loadTexts()
register(NOUNS)
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={cache}>
      <RouterProvider router={routerOf()} />
    </QueryClientProvider>
  </StrictMode>,
)
