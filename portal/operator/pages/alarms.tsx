/** `/alarms`: what the platform's own records show to be wrong. */
import type { ReactNode } from 'react'
import type { Alarm } from '../../../client/operator-schema.ts'
import { itemsOf, useList } from '../../api/cache.ts'
import { asRefusal } from '../../api/refusal.ts'
import { Resource, Time, Value } from '../../nouns/value.tsx'
import { Loading, Page, Panel, Soft } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { o } from '../texts/index.ts'

export const AlarmsPage = (): ReactNode => (
  <Page title={o().alarms.title} note={o().alarms.note}>
    <Alarms />
  </Page>
)

export const ALARM_LOOKS = { critical: 'bad', warning: 'busy' } as const

type Row = Alarm & { readonly id: string }

/** The page of what an alarm is about; that of all alarms for what is about more than one resource. */
const hrefOf = ({ resource }: Alarm): string =>
  resource === null ? '/alarms' : `/alarms/${resource.type}/${encodeURIComponent(resource.id)}`

const columns = (): readonly Column<Row>[] => {
  const texts = o().alarms
  return [
    {
      id: 'kind',
      name: texts.what,
      cell: ({ kind, severity }) => <State look={ALARM_LOOKS[severity]}>{texts.kinds[kind]}</State>,
    },
    {
      id: 'resource',
      name: o().fields.resource,
      cell: ({ resource }) => (resource === null ? '–' : <Resource {...resource} />),
    },
    { id: 'message', name: texts.message, isText: true, cell: ({ message }) => <span dir="auto">{message}</span> },
    {
      id: 'account',
      name: o().fields.account_id,
      cell: ({ account_id: id }) => <Value field="account_id" value={id} isShort />,
    },
    { id: 'since', name: texts.since, cell: ({ since }) => (since === null ? '–' : <Time instant={since} />) },
    { id: 'alert', name: texts.alert, cell: ({ alert }) => alert ?? '–' },
  ]
}

/** The first of them, or all. */
export function Alarms({ limit }: { readonly limit?: number }): ReactNode {
  const { data, error } = useList('list_alarms')
  if (data === undefined)
    return <Panel>{error === null ? <Loading /> : <ProblemView refusal={asRefusal('list_alarms', error)} />}</Panel>
  const rows = itemsOf(data)
    .slice(0, limit)
    .map((alarm, at) => ({ ...alarm, id: `${alarm.kind} ${alarm.resource?.id ?? String(at)}` }))
  return rows.length === 0 ? (
    <Panel>
      <State look="good">{o().alarms.none}</State>
    </Panel>
  ) : (
    <Table
      label={o().alarms.title}
      items={rows}
      columns={columns()}
      hrefOf={hrefOf}
      foot={<Soft>{o().alarms.prometheus}</Soft>}
    />
  )
}
