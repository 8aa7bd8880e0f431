/** Credit, cards, transfer of the month, and the log of what was billed. */
import type { ReactNode } from 'react'
import { itemsOf, useList, useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { useMay } from '../../api/session.ts'
import { useQuestion } from '../../nouns/ask.tsx'
import { Time } from '../../nouns/value.tsx'
import { bytes, day, money, number, smallMoney } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { typeText } from '../../texts/service.ts'
import { Button } from '../../ui/button.tsx'
import { Panel, Soft, Stack } from '../../ui/layout.tsx'
import { Tag } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { Unread } from '../../ui/unread.tsx'
import { LoadMore } from '../more.tsx'
import { Rows } from './rows.tsx'

export const Credits = (): ReactNode => (
  <Stack>
    <h2>{t().dashboard.credit}</h2>
    <Rows
      list="list_credits"
      label={t().dashboard.credit}
      idOf={({ id }) => id}
      nameOf={({ label }) => label}
      none={settingsTexts().payments.noCredits}
      columns={[
        { id: 'label', name: t().fields.name, cell: ({ label }) => <span dir="auto">{label}</span> },
        {
          id: 'left',
          name: settingsTexts().payments.left,
          cell: ({ remaining_cents: cents }) => money(cents),
          isEnd: true,
        },
        {
          id: 'amount',
          name: settingsTexts().billing.amount,
          cell: ({ amount_cents: cents }) => money(cents),
          isEnd: true,
        },
        {
          id: 'until',
          name: t().fields.expires_at,
          cell: ({ expires_at: at }) => (at === null ? '–' : <Time instant={at} />),
        },
        { id: 'state', name: t().fields.state, cell: ({ state }) => settingsTexts().payments.creditStates[state] },
      ]}
    />
  </Stack>
)

export function Methods(): ReactNode {
  const may = useMay()
  const [ask, dialog] = useQuestion(['list_payment_methods', 'get_payment_configuration'])
  const texts = settingsTexts().payments
  return (
    <Stack>
      <h2>{texts.methods}</h2>
      <Rows<'list_payment_methods'>
        list="list_payment_methods"
        label={texts.methods}
        idOf={({ id }) => id}
        nameOf={({ brand, last4 }) => `${brand} ${last4}`}
        none={texts.noMethods}
        columns={[
          { id: 'card', name: t().fields.name, cell: ({ brand, last4 }) => `${brand} •••• ${last4}` },
          {
            id: 'until',
            name: texts.until,
            cell: (each) => `${String(each.exp_month).padStart(2, '0')}/${String(each.exp_year)}`,
          },
          {
            id: 'default',
            name: texts.default,
            cell: ({ id, brand, last4, is_default: isDefault }) =>
              isDefault ? (
                <Tag>{t().ui.yes}</Tag>
              ) : may('set_default_payment_method') ? (
                <Button
                  kind="quiet"
                  onPress={() =>
                    ask({
                      operation: 'set_default_payment_method',
                      path: { id },
                      title: t().choices.confirm(texts.makeDefault, `${brand} ${last4}`),
                      button: texts.makeDefault,
                    })
                  }
                >
                  {texts.makeDefault}
                </Button>
              ) : (
                '–'
              ),
          },
        ]}
        {...(may('remove_payment_method')
          ? {
              remove: {
                name: t().ui.remove,
                why: () => undefined,
                run: ({ id }) => call('remove_payment_method', { path: { id } }),
              },
            }
          : {})}
      />
      {dialog}
    </Stack>
  )
}

export function Transfer(): ReactNode {
  const { data, error, refetch } = useRead('get_network_transfer', {}, { isAlwaysStale: true })
  const texts = settingsTexts().payments
  if (data === undefined)
    return (
      <Panel title={texts.transfer}>
        <Unread error={error} retry={() => void refetch()} />
      </Panel>
    )
  return (
    <Panel title={texts.transfer}>
      <Stack>
        <Soft>
          {texts.transferNote(bytes(data.allowance_bytes_per_server), smallMoney(data.price_per_gibibyte_millicents))}
        </Soft>
        {data.items.length === 0 ? null : (
          <Table
            label={texts.transfer}
            items={data.items.map((each) => ({ ...each, id: each.server_id }))}
            columns={[
              {
                id: 'server',
                name: t().fields.server_id,
                cell: ({ server_name: name }) => <span dir="auto">{name}</span>,
              },
              { id: 'in', name: t().metrics.received, cell: (each) => bytes(each.received_bytes), isEnd: true },
              { id: 'out', name: t().metrics.transmitted, cell: (each) => bytes(each.transmitted_bytes), isEnd: true },
              {
                id: 'amount',
                name: settingsTexts().billing.amount,
                cell: (each) => money(each.amount_cents),
                isEnd: true,
              },
            ]}
          />
        )}
      </Stack>
    </Panel>
  )
}

export function Log(): ReactNode {
  const list = useList('list_billing_log')
  const texts = settingsTexts().payments
  const items = itemsOf(list.data)
  if (list.data === undefined)
    return (
      <Panel title={texts.log}>
        <Unread error={list.error} retry={() => void list.refetch()} />
      </Panel>
    )
  if (items.length === 0) return null
  return (
    <Stack>
      <h2>{texts.log}</h2>
      <Table
        label={texts.log}
        items={items.map((each) => ({
          ...each,
          id: `${each.date} ${each.resource_type} ${each.resource_id} ${each.plan}`,
        }))}
        columns={[
          {
            id: 'name',
            name: t().fields.name,
            cell: ({ name, resource_id: id }) => <span dir="auto">{name || id}</span>,
          },
          { id: 'date', name: t().audit.at, cell: ({ date }) => day(date) },
          { id: 'type', name: t().fields.kind, cell: ({ resource_type: type }) => typeText(type) },
          { id: 'plan', name: t().fields.plan, cell: ({ plan }) => plan || '–' },
          { id: 'hours', name: settingsTexts().billing.hours, cell: ({ hours }) => number(hours, 1), isEnd: true },
          {
            id: 'amount',
            name: settingsTexts().billing.amount,
            cell: ({ amount_cents: cents }) => money(cents),
            isEnd: true,
          },
        ]}
        foot={list.hasNextPage ? <LoadMore list={list} operation="list_billing_log" /> : undefined}
      />
    </Stack>
  )
}
