/** `/billing` of staff: invoices of each month, what could not be made or charged, and what differs at the payment
 *  processor. */
import { type ReactNode, useState } from 'react'
import { itemsOf, readAgain, useList, useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import type { ItemOf } from '../../api/operations.ts'
import { asRefusal, type Refusal } from '../../api/refusal.ts'
import { Time, Value } from '../../nouns/value.tsx'
import { useSubmission } from '../../pages/submission.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Between, Loading, Page, Panel, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { notify } from '../../ui/toast.tsx'
import { o } from '../texts/index.ts'

type Run = ItemOf<'list_invoice_runs'>

export function BillingPage(): ReactNode {
  const [period, setPeriod] = useState<string>()
  return (
    <Page title={o().billing.title} note={o().billing.note}>
      <Runs onShow={setPeriod} />
      {period === undefined ? null : <FailedInvoices key={period} period={period} />}
      <FailedPayments />
      <Differences />
    </Page>
  )
}

interface SectionProps<Item extends { readonly id: string }> {
  readonly title: string
  /** Undefined while they are read. */
  readonly items: readonly Item[] | undefined
  readonly columns: readonly Column<Item>[]
  readonly none: string
  readonly refusal: Refusal | undefined
  readonly button?: ReactNode
}

function Section<Item extends { readonly id: string }>(props: SectionProps<Item>): ReactNode {
  const { title, items, columns, none, refusal, button } = props
  return (
    <Stack>
      <Between>
        <h2>{title}</h2>
        {items === undefined || items.length === 0 ? null : button}
      </Between>
      {items !== undefined && items.length > 0 ? (
        <Table label={title} items={items} columns={columns} />
      ) : refusal === undefined ? (
        <Panel>{items === undefined ? <Loading /> : <Soft>{none}</Soft>}</Panel>
      ) : (
        <ProblemView refusal={refusal} />
      )}
    </Stack>
  )
}

function Runs({ onShow }: { readonly onShow: (period: string) => void }): ReactNode {
  const texts = o().billing
  const { data, error } = useList('list_invoice_runs')
  const stateOf = ({ finished_at: at, failed_count: failed }: Run): ReactNode =>
    failed > 0 ? (
      <State look="bad">{texts.failed(number(failed))}</State>
    ) : at === null ? (
      <State look="busy">{texts.waiting}</State>
    ) : (
      <State look="good">{texts.done}</State>
    )
  return (
    <Section
      title={texts.runs}
      items={data === undefined ? undefined : itemsOf(data).map((run) => ({ ...run, id: run.period }))}
      none={texts.noRuns}
      refusal={error === null ? undefined : asRefusal('list_invoice_runs', error)}
      columns={[
        { id: 'period', name: texts.period, cell: ({ period }) => period },
        { id: 'state', name: t().fields.state, cell: stateOf },
        { id: 'accounts', name: texts.accounts, cell: ({ account_count: count }) => number(count), isEnd: true },
        { id: 'waiting', name: texts.waiting, cell: ({ waiting_count: count }) => number(count), isEnd: true },
        { id: 'started', name: texts.closed, cell: ({ started_at: at }) => <Time instant={at} /> },
        {
          id: 'show',
          name: t().list.actions,
          isEnd: true,
          cell: ({ period, failed_count: failed }) =>
            failed === 0 ? (
              '–'
            ) : (
              <Button kind="quiet" onPress={() => onShow(period)}>
                {texts.show}
              </Button>
            ),
        },
      ]}
    />
  )
}

interface RetryProps {
  readonly name: string
  readonly run: () => Promise<{ readonly retried_count: number }>
}

function Retry({ name, run }: RetryProps): ReactNode {
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const { retried_count: count } = await run()
    notify(o().billing.retried(number(count)))
    await readAgain('list_invoice_runs', 'list_failed_invoices', 'list_failed_payments')
  })
  return (
    <form onSubmit={onSubmit}>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Button type="submit" isBusy={isBusy}>
        {name}
      </Button>
    </form>
  )
}

const attemptColumns = (): readonly Column<{
  readonly id: string
  readonly account_id: string
  readonly attempts: number
  readonly next_attempt_at: string
  readonly error: string
}>[] => [
  {
    id: 'account',
    name: o().fields.account_id,
    cell: ({ account_id: id }) => <Value field="account_id" value={id} isShort />,
  },
  { id: 'error', name: o().fields.error, isText: true, cell: ({ error }) => <span dir="auto">{error}</span> },
  { id: 'attempts', name: o().billing.attempts, cell: ({ attempts }) => number(attempts), isEnd: true },
  { id: 'next', name: o().billing.next, cell: ({ next_attempt_at: at }) => <Time instant={at} /> },
]

function FailedInvoices({ period }: { readonly period: string }): ReactNode {
  const { data, error } = useRead('list_failed_invoices', { path: { period } })
  return (
    <Section
      title={o().billing.failedInvoices(period)}
      items={data?.items.map((item) => ({ ...item, id: item.account_id }))}
      none={o().billing.noFailures}
      refusal={error === null ? undefined : asRefusal('list_failed_invoices', error)}
      columns={attemptColumns()}
      button={
        <Retry name={o().billing.retryInvoices} run={() => call('retry_failed_invoices', { path: { period } })} />
      }
    />
  )
}

function FailedPayments(): ReactNode {
  const { data, error } = useRead('list_failed_payments')
  return (
    <Section
      title={o().billing.failedPayments}
      items={data?.items.map((item) => ({ ...item, id: item.invoice_id }))}
      none={o().billing.noFailures}
      refusal={error === null ? undefined : asRefusal('list_failed_payments', error)}
      columns={attemptColumns()}
      button={<Retry name={o().billing.retryPayments} run={() => call('retry_failed_payments', {})} />}
    />
  )
}

function Differences(): ReactNode {
  const texts = o().billing
  const { data, error } = useRead('list_payment_differences')
  return (
    <Section
      title={texts.differences}
      items={data?.items.map((item) => ({ ...item, id: `${item.subject} ${item.kind}` }))}
      none={texts.noDifferences}
      refusal={error === null ? undefined : asRefusal('list_payment_differences', error)}
      columns={[
        { id: 'subject', name: texts.subject, cell: ({ subject }) => <code>{subject}</code> },
        { id: 'kind', name: texts.kind, cell: ({ kind }) => kind.replaceAll('_', ' ') },
        { id: 'detail', name: texts.detail, isText: true, cell: ({ detail }) => <span dir="auto">{detail}</span> },
        { id: 'found', name: texts.found, cell: ({ found_at: at }) => <Time instant={at} /> },
      ]}
    />
  )
}
