/** Parts of pages that first pages do without: they are loaded when they are shown. */
import { type ComponentProps, lazy, type ReactNode, Suspense } from 'react'

const load = () => import('./activity.tsx')
const LazyProgress = lazy(async () => ({ default: (await load()).Progress }))
const LazyOperations = lazy(async () => ({ default: (await load()).Operations }))

export const LaterProgress = (props: ComponentProps<typeof LazyProgress>): ReactNode => (
  <Suspense>
    <LazyProgress {...props} />
  </Suspense>
)

export const LaterOperations = (props: ComponentProps<typeof LazyOperations>): ReactNode => (
  <Suspense>
    <LazyOperations {...props} />
  </Suspense>
)
