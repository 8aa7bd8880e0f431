/** The page of staff and operators: starts the portal in it. */
import '../ui/tokens.css'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { cache } from '../api/cache.ts'
import { liveState } from '../api/live.ts'
import { openPortal } from '../api/portal.ts'
import { register } from '../nouns/registry.ts'
import { loadTexts } from '../texts/index.ts'
import { OPERATOR_NOUNS } from './nouns.ts'
import { operatorPortal } from './portal.ts'
import { operatorRouterOf } from './router.tsx'
import { loadOperatorTexts } from './texts/index.ts'

const place = document.getElementById('portal')
if (place === null) throw new Error('the page has no place for the portal')
openPortal(operatorPortal)
// The operator listener has no stream of changes: pages read again.
liveState.set('polling')
await loadTexts(loadOperatorTexts)
register(OPERATOR_NOUNS)
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={cache}>
      <RouterProvider router={operatorRouterOf()} />
    </QueryClientProvider>
  </StrictMode>,
)
