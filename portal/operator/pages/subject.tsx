/** `/alarms/TYPE/ID`: what is known of one resource that may be stuck: the condition that its controller reports, its
 *  operations, and the events of the newest. Nodes have more on their own page. */
import { useParams } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Alarm } from '../../../client/operator-schema.ts'
import { itemsOf, useList, useRead } from '../../api/cache.ts'
import { asRefusal } from '../../api/refusal.ts'
import { ActivityOf } from '../../nouns/activity.tsx'
import { hrefOf } from '../../nouns/noun.ts'
import { nounNamed } from '../../nouns/registry.ts'
import { Time, Value } from '../../nouns/value.tsx'
import { t } from '../../texts/index.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Copy } from '../../ui/copy.tsx'
import { Facts, Loading, Page, Panel } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { Events } from '../nouns/operation/head.tsx'
import { o } from '../texts/index.ts'
import { ALARM_LOOKS } from './alarms.tsx'

export function SubjectPage(): ReactNode {
  const { type = '', id = '' }: { readonly type?: string; readonly id?: string } = useParams({ strict: false })
  const list = useList('list_alarms', undefined, { isBusy: true })
  const alarms = itemsOf(list.data).filter(({ resource }) => resource?.type === type && resource.id === id)
  const name = alarms[0]?.resource?.name ?? id.slice(0, 8)
  const noun = nounNamed(type)
  return (
    <Page
      title={`${type.replaceAll('_', ' ')} ${name}`}
      crumbs={[{ name: o().alarms.title, href: '/alarms' }]}
      buttons={
        noun === undefined ? undefined : <ButtonLink href={hrefOf(noun, { id })}>{t().page.overview}</ButtonLink>
      }
    >
      {list.data !== undefined ? (
        <Conditions alarms={alarms} />
      ) : list.error === null ? (
        <Loading />
      ) : (
        <ProblemView refusal={asRefusal('list_alarms', list.error)} retry={() => void list.refetch()} />
      )}
      <Panel>
        <Facts facts={[{ name: t().page.id, value: <Copy text={id} /> }]} />
      </Panel>
      <Newest resource={`${type}:${id}`} />
      <h2>{o().alarms.history}</h2>
      <ActivityOf type={type} id={id} />
    </Page>
  )
}

function Conditions({ alarms }: { readonly alarms: readonly Alarm[] }): ReactNode {
  const texts = o().alarms
  if (alarms.length === 0)
    return (
      <Panel>
        <State look="good">{texts.fine}</State>
      </Panel>
    )
  return alarms.map(({ kind, severity, message, since, account_id: account, alert }) => (
    <Panel key={kind} title={texts.wrong}>
      <Facts
        facts={[
          { name: texts.what, value: <State look={ALARM_LOOKS[severity]}>{texts.kinds[kind]}</State> },
          { name: texts.message, value: <span dir="auto">{message}</span> },
          { name: texts.since, value: since === null ? '–' : <Time instant={since} /> },
          { name: o().fields.account_id, value: <Value field="account_id" value={account} /> },
          { name: texts.alert, value: alert ?? '–' },
        ]}
      />
    </Panel>
  ))
}

/** Events of the newest operation: the list has none. */
function Newest({ resource }: { readonly resource: string }): ReactNode {
  const list = useList('list_operator_operations', { resource }, { isBusy: true })
  const [newest] = itemsOf(list.data)
  const { data } = useRead(
    'get_operator_operation',
    { path: { id: newest?.id ?? '' } },
    { isOn: newest !== undefined, isBusy: true },
  )
  return data === undefined ? null : <Events item={data.operation} />
}
