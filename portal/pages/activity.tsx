/** `/activity`: all operations of the account. */
import type { ReactNode } from 'react'
import { Operations } from '../nouns/activity.tsx'
import { t } from '../texts/index.ts'
import { Page } from '../ui/layout.tsx'

export const ActivityPage = (): ReactNode => (
  <Page title={t().operations.title} note={t().operations.emptyText}>
    <Operations query={{}} />
  </Page>
)
