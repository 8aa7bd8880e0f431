/** `/activity`: all operations of the account. */
import type { InfiniteData } from '@tanstack/react-query'
import { type ReactNode, useEffect } from 'react'
import { cache, keyOf } from '../api/cache.ts'
import { Operations } from '../nouns/activity.tsx'
import { t } from '../texts/index.ts'
import { Page } from '../ui/layout.tsx'

export function ActivityPage(): ReactNode {
  useEffect(() => () => void keepFirstPage(), [])
  return (
    <Page title={t().operations.title} note={t().operations.emptyText}>
      <Operations query={{}} />
    </Page>
  )
}

/** Every page of the portal reads this list again and again: what was loaded here beyond its first page is not for
 *  them. */
async function keepFirstPage(): Promise<void> {
  const queryKey = keyOf('list_operations')
  const list = cache.getQueryData<InfiniteData<unknown>>(queryKey)
  if (list === undefined || list.pages.length < 2) return
  // one that is on its way would bring all of them
  await cache.cancelQueries({ queryKey, exact: true })
  cache.setQueryData<InfiniteData<unknown>>(
    queryKey,
    (read) => read && { pages: read.pages.slice(0, 1), pageParams: read.pageParams.slice(0, 1) },
  )
  await cache.invalidateQueries({ queryKey, exact: true })
}
