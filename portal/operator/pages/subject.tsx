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
import { typeText } from '../../texts/service.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Copy } from '../../ui/copy.tsx'
import { Facts, Loading, Page, Panel } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { Unread } from '../../ui/unread.tsx'
import { Events } from '../nouns/operation/head.tsx'
import { o } from '../texts/index.ts'
import { ALARM_LOOKS } from './alarms.tsx'

export function SubjectPage(): ReactNode {
  const { type = '', id = '' }: { readonly type?: string; readonly id?: string } = useParams({ strict: false })
  const list = useList('list_alarms', undefined, { isBusy: true })
  const all = itemsOf(list.data)
  const alarms = all.filter(({ resource }) => resource?.type === type && resource.id === id)
  // they may be about anything; logs of accounts have no page here
  const hasOthers = all.some(({ resource, kind }) => resource === null && kind !== 'audit_broken')
  const name = alarms[0]?.resource?.name ?? id.slice(0, 8)
  const noun = nounNamed(type)
  return (
    <Page
      title={`${typeText(type)} ${name}`}
      crumbs={[{ name: o().alarms.title, href: '/alarms' }]}
      buttons={
        noun === undefined ? undefined : <ButtonLink href={hrefOf(noun, { id })}>{t().page.overview}</ButtonLink>
      }
    >
      {list.data !== undefined ? (
        <Conditions alarms={alarms} hasOthers={hasOthers} />
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

interface ConditionsProps {
  readonly alarms: readonly Alarm[]
  /** Some alarms do not say of what they are. */
  readonly hasOthers: boolean
}

export function Conditions({ alarms, hasOthers }: ConditionsProps): ReactNode {
  const texts = o().alarms
  if (alarms.length === 0)
    return (
      <Panel>{hasOthers ? <State look="off">{texts.notListed}</State> : <State look="good">{texts.fine}</State>}</Panel>
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
export function Newest({ resource }: { readonly resource: string }): ReactNode {
  const list = useList('list_operator_operations', { resource }, { isBusy: true })
  const [newest] = itemsOf(list.data)
  const { data, error, refetch } = useRead(
    'get_operator_operation',
    { path: { id: newest?.id ?? '' } },
    { isOn: newest !== undefined, isBusy: true },
  )
  if (data !== undefined) return <Events item={data.operation} />
  if (list.error !== null || list.isPending) return <Unread error={list.error} retry={() => void list.refetch()} />
  return newest === undefined ? null : <Unread error={error} retry={() => void refetch()} />
}
