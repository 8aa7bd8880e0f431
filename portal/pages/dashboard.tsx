/** `/dashboard`: first steps until they are done, what needs somebody, what is in progress, and the month so far. */
import { Check } from 'lucide-react'
import { type ReactNode } from 'react'
import { itemsOf, useList, useRead } from '../api/cache.ts'
import { useMay } from '../api/session.ts'
import { Operations } from '../nouns/activity.tsx'
import { hrefOf, lookOf, type Noun } from '../nouns/noun.ts'
import { useThings } from '../nouns/reads.ts'
import { allNouns } from '../nouns/registry.ts'
import { StateOf } from '../nouns/list-page.tsx'
import { day, money } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { ButtonLink } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { Between, Grid, Page, Panel, Stack, type Step, Steps, Tile } from '../ui/layout.tsx'
import { Table } from '../ui/table.tsx'

export function DashboardPage(): ReactNode {
  return (
    <Page title={t().dashboard.title}>
      <FirstSteps />
      <Counts />
      <Attention />
      <Between>
        <h2>{t().dashboard.recent}</h2>
        <ButtonLink kind="quiet" href="/activity">
          {t().dashboard.all}
        </ButtonLink>
      </Between>
      <Operations query={{}} limit={8} />
    </Page>
  )
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

function Counts(): ReactNode {
  const may = useMay()
  const { data: usage } = useRead('get_usage_summary', {}, { isOn: may('get_usage_summary') })
  return (
    <Grid>
      {usage === undefined ? null : (
        <>
          <Tile
            name={t().dashboard.month}
            value={money(usage.month_to_date_cents)}
            note={t().dashboard.estimate(money(usage.estimated_month_cents))}
            href="/settings/billing"
          />
          {usage.credit_balance_cents === 0 ? null : (
            <Tile
              name={t().dashboard.credit}
              value={money(usage.credit_balance_cents)}
              note={
                usage.credit_next_expiry === null ? undefined : t().dashboard.creditUntil(day(usage.credit_next_expiry))
              }
              href="/settings/billing"
            />
          )}
        </>
      )}
      {allNouns()
        .filter(({ name }) => COUNTED.has(name))
        .map((noun) => (
          <Count key={noun.name} noun={noun} />
        ))}
    </Grid>
  )
}

const COUNTED = new Set<string>(['server', 'storage'])

function Count({ noun }: { readonly noun: Noun }): ReactNode {
  const { data } = useList(noun.list)
  const last = data?.pages.at(-1)
  const count = itemsOf(data).length
  return (
    <Tile
      name={t().nouns[noun.name].many}
      value={data === undefined ? '–' : `${count}${last?.next_cursor == null ? '' : '+'}`}
      href={noun.path}
    />
  )
}

/** Of what the lists that are counted show: everything in error. */
function Attention(): ReactNode {
  const nouns = allNouns().filter(({ name }) => COUNTED.has(name))
  return (
    <Stack>
      {nouns.map((noun) => (
        <Failed key={noun.name} noun={noun} />
      ))}
    </Stack>
  )
}

function Failed({ noun }: { readonly noun: Noun }): ReactNode {
  const { items } = useThings(noun)
  const failed = items.filter((item) => {
    const state = noun.stateOf?.(item)
    return state !== undefined && lookOf(noun, state) === 'bad'
  })
  if (failed.length === 0) return null
  return (
    <Table
      label={t().dashboard.attention}
      items={failed}
      hrefOf={(item) => hrefOf(noun, item)}
      columns={[
        { id: 'name', name: t().nouns[noun.name].one, cell: (item) => noun.titleOf(item) },
        { id: 'state', name: t().fields.state, cell: (item) => <StateOf noun={noun} item={item} /> },
        { id: 'detail', name: t().fields.state_detail, cell: (item) => String(item['state_detail'] ?? '') },
      ]}
    />
  )
}
