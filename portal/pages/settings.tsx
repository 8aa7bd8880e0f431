/** `/settings`: members, tokens, sessions, second factor, billing. */
import { useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useGo } from '../shell/go.ts'
import { t } from '../texts/index.ts'
import { Page, Tabs } from '../ui/layout.tsx'
import { Billing } from './settings/billing.tsx'
import { Members } from './settings/members.tsx'
import { PrivateCloud } from './settings/private-cloud.tsx'
import { Quotas } from './settings/quotas.tsx'
import { Security } from './settings/security.tsx'
import { Sessions } from './settings/sessions.tsx'
import { Support } from './settings/support.tsx'
import { Tokens } from './settings/tokens.tsx'
import { SETTINGS_PAGES } from './settings-pages.ts'

const VIEWS = {
  members: Members,
  tokens: Tokens,
  sessions: Sessions,
  security: Security,
  billing: Billing,
  quotas: Quotas,
  support: Support,
  'private-cloud': PrivateCloud,
} as const

export function Settings(): ReactNode {
  const { page = 'members' }: { readonly page?: string } = useParams({ strict: false })
  const go = useGo()
  return (
    <Page title={t().account.title}>
      <Tabs
        label={t().account.title}
        chosen={SETTINGS_PAGES.some(({ id }) => id === page) ? page : 'members'}
        onChoose={(id) => go(`/settings/${id}`)}
        tabs={SETTINGS_PAGES.map(({ id, name }) => {
          const View = VIEWS[id]
          return { id, name: name(), content: <View /> }
        })}
      />
    </Page>
  )
}
