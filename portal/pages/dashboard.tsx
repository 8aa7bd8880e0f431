/** `/dashboard`: first steps until they are done, what needs somebody, what is in progress, and the month so far. */
import { Check } from 'lucide-react'
import type { ReactNode } from 'react'
import { itemsOf, readAgain, useList, useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import type { Answer } from '../api/operations.ts'
import { Operations } from '../nouns/activity.tsx'
import { hrefOf, type Noun } from '../nouns/noun.ts'
import { allNouns, nounNamed } from '../nouns/registry.ts'
import { day, money, number, utc } from '../texts/format.ts'
import { nounTexts, t } from '../texts/index.ts'
import { quotaText } from '../texts/service.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { Between, Grid, Page, Panel, type Step, Steps, Tile } from '../ui/layout.tsx'
import { Note } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { Unread } from '../ui/unread.tsx'

type Overview = Answer<'get_overview'>

export const DashboardPage = (): ReactNode => (
  <Page title={t().dashboard.title}>
    <Notices />
    <FirstSteps />
    <Overviews />
    <Between>
      <h2>{t().dashboard.recent}</h2>
      <ButtonLink kind="quiet" href="/activity">
        {t().dashboard.all}
      </ButtonLink>
    </Between>
    <Operations query={{}} limit={8} />
  </Page>
)

export function Overviews(): ReactNode {
  const { data, error, refetch } = useRead('get_overview', {}, { isAlwaysStale: true })
  if (data === undefined)
    return (
      <Panel>
        <Unread error={error} retry={() => void refetch()} />
      </Panel>
    )
  return (
    <>
      <Counts overview={data} />
      <Attention overview={data} />
    </>
  )
}

/** What is announced, until somebody dismisses it. The unverified address has a banner on every page. */
function Notices(): ReactNode {
  const items = itemsOf(useList('list_notices').data).filter(
    ({ is_dismissed: isDismissed, kind }) => !isDismissed && kind !== 'email_unverified',
  )
  const dismiss = async (id: string): Promise<void> => {
    await call('dismiss_notice', { path: { id } }).catch(() => undefined)
    await readAgain('list_notices')
  }
  return items.map(({ id, message, at, severity }) => (
    <Note key={id} {...(severity === 'info' ? {} : { look: 'busy' as const })}>
      <Between>
        <span dir="auto">
          {message} {at === null ? null : <span className="soft">{utc(at)}</span>}
        </span>
        <Button kind="quiet" onPress={() => void dismiss(id)}>
          {t().ui.dismiss}
        </Button>
      </Between>
    </Note>
  ))
}

function FirstSteps(): ReactNode {
  const texts = t().dashboard
  const servers = useList('list_servers')
  const keys = useList('list_ssh_keys')
  if (servers.data === undefined || keys.data === undefined) return null
  const [server] = itemsOf(servers.data)
  const hasKey = itemsOf(keys.data).length > 0
  if (hasKey && server !== undefined) return null
  const step = (at: number, isDone: boolean, name: string, note: ReactNode, href: string): Step => ({
    name,
    note,
    mark: isDone ? <Check /> : at,
    isDone,
    ...(isDone
      ? {}
      : {
          button: (
            <ButtonLink href={href} kind={isNext(at, hasKey) ? 'primary' : 'plain'}>
              {name}
            </ButtonLink>
          ),
        }),
  })
  return (
    <Panel title={texts.steps} isBare>
      <Steps
        steps={[
          step(1, hasKey, texts.keyStep, texts.keyNote, '/ssh-keys/new'),
          step(2, server !== undefined, texts.serverStep, texts.serverNote, '/servers/new'),
          {
            name: texts.signInStep,
            note: server?.ssh_command == null ? texts.signInNote : <Copy text={server.ssh_command} />,
            mark: 3,
            isDone: false,
          },
        ]}
      />
    </Panel>
  )
}

const isNext = (at: number, hasKey: boolean): boolean => (hasKey ? at === 2 : at === 1)

/** Nouns that the account has something of; servers always. */
function Counts({ overview: { cost, resources } }: { readonly overview: Overview }): ReactNode {
  const counts = new Map<string, number>(resources.map(({ type, total }) => [type, total]))
  const shown = allNouns().filter(({ name }) => COUNTED.has(name) && (name === 'server' || (counts.get(name) ?? 0) > 0))
  return (
    <Grid>
      {cost === undefined ? null : (
        <Tile
          name={t().dashboard.month}
          value={money(cost.month_to_date_cents)}
          note={t().dashboard.estimate(money(cost.estimated_month_cents))}
          href="/settings/billing"
        />
      )}
      {cost === undefined || cost.credit_balance_cents === 0 ? null : (
        <Tile
          name={t().dashboard.credit}
          value={money(cost.credit_balance_cents)}
          note={cost.credit_next_expiry === null ? undefined : t().dashboard.creditUntil(day(cost.credit_next_expiry))}
          href="/settings/billing"
        />
      )}
      {shown.map((noun) => (
        <Count key={noun.name} noun={noun} total={counts.get(noun.name) ?? 0} />
      ))}
    </Grid>
  )
}

const COUNTED = new Set<string>([
  'server',
  'storage',
  'database',
  'load_balancer',
  'kubernetes_cluster',
  'dev_cluster',
  'network',
])

const Count = ({ noun, total }: { readonly noun: Noun; readonly total: number }): ReactNode => (
  <Tile name={nounTexts(noun.name).many} value={number(total)} href={noun.path} />
)

/** What is in error or unhealthy, quotas that are nearly used, and an audit log that does not verify. */
function Attention({ overview: { problems, quotas, audit } }: { readonly overview: Overview }): ReactNode {
  const rows = [
    ...problems.items.map(({ type, id, name, reason }) => ({ id: `${type}:${id}`, type, of: id, name, reason })),
    ...quotas.map(({ name, used, limit }) => ({
      id: `quota:${name}`,
      type: 'quota',
      of: '',
      name: quotaText(name),
      reason: t().dashboard.quotaNear(number(used), number(limit)),
    })),
    ...(audit.status === 'broken'
      ? [{ id: 'audit', type: 'audit', of: '', name: t().audit.title, reason: t().audit.broken }]
      : []),
  ]
  if (rows.length === 0) return null
  return (
    <>
      <h2>{t().dashboard.attention}</h2>
      <Table
        label={t().dashboard.attention}
        items={rows}
        hrefOf={({ type, of }) => {
          const noun = nounNamed(type)
          return noun === undefined ? (PAGES[type] ?? '/dashboard') : hrefOf(noun, { id: of })
        }}
        columns={[
          { id: 'name', name: t().fields.name, cell: ({ name }) => <span dir="auto">{name}</span> },
          { id: 'reason', name: t().fields.state_detail, cell: ({ reason }) => <span dir="auto">{reason}</span> },
        ]}
      />
    </>
  )
}

const PAGES: Readonly<Record<string, string>> = { quota: '/settings/quotas', audit: '/audit' }
