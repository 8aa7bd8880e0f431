/** The month so far, what it is made of, invoices, and coupons. */
import { type ReactNode, useState } from 'react'
import { readAgain, useRead } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { day, money, number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { typeText } from '../../texts/service.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Grid, Loading, Panel, Soft, Stack, Tile } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Table } from '../../ui/table.tsx'
import { notify } from '../../ui/toast.tsx'
import { useSubmission } from '../submission.ts'
import { wordOf } from '../../nouns/value.tsx'
import { Credits, Log, Methods, Transfer } from './payments.tsx'
import { Rows } from './rows.tsx'

export function Billing(): ReactNode {
  const may = useMay()
  const isAllowed = may('get_usage_summary')
  const { data, error } = useRead('get_usage_summary', {}, { isOn: isAllowed, isAlwaysStale: true })
  const { data: payment } = useRead('get_payment_configuration', {}, { isOn: isAllowed })
  if (!isAllowed) return <Soft>{t().problem.askOwner}</Soft>
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const texts = settingsTexts().billing
  return (
    <Stack gap="loose">
      <Grid>
        <Tile
          name={t().dashboard.month}
          value={money(data.month_to_date_cents)}
          note={t().dashboard.estimate(money(data.estimated_month_cents))}
        />
        <Tile
          name={t().dashboard.credit}
          value={money(data.credit_balance_cents)}
          note={data.credit_next_expiry === null ? undefined : t().dashboard.creditUntil(day(data.credit_next_expiry))}
        />
      </Grid>
      {payment === undefined || payment.standing.can_create_resources ? null : (
        <Panel title={texts.standing}>
          <p>{texts.reasons[payment.standing.reason ?? ''] ?? payment.standing.reason}</p>
          {may('create_payment_setup_session') ? <AddMethod /> : null}
        </Panel>
      )}
      <Usage resources={data.resources} />
      <Stack>
        <h2>{texts.invoices}</h2>
        <Invoices />
      </Stack>
      {may('list_payment_methods') ? <Methods /> : null}
      <Credits />
      <Transfer />
      <Log />
      {may('redeem_coupon') ? <Coupon /> : null}
    </Stack>
  )
}

interface UsageProps {
  readonly resources: readonly {
    readonly resource_type: string
    readonly resource_id: string
    readonly name: string
    readonly plan: string
    readonly hours: number
    readonly amount_cents: number
  }[]
}

function Usage({ resources }: UsageProps): ReactNode {
  const texts = settingsTexts().billing
  if (resources.length === 0)
    return (
      <Panel>
        <Soft>{texts.noUsage}</Soft>
      </Panel>
    )
  return (
    <Table
      label={texts.usage}
      items={resources.map((each) => ({ ...each, id: `${each.resource_type} ${each.resource_id} ${each.plan}` }))}
      columns={[
        {
          id: 'name',
          name: t().fields.name,
          cell: ({ name, resource_id: id }) => <span dir="auto">{name || id}</span>,
        },
        { id: 'type', name: t().fields.kind, cell: ({ resource_type: type }) => typeText(type) },
        { id: 'plan', name: t().fields.plan, cell: ({ plan }) => plan || '–' },
        { id: 'hours', name: texts.hours, cell: ({ hours }) => number(hours, 1), isEnd: true },
        { id: 'amount', name: texts.amount, cell: ({ amount_cents: cents }) => money(cents), isEnd: true },
      ]}
    />
  )
}

const Invoices = (): ReactNode => (
  <Rows
    list="list_invoices"
    label={settingsTexts().billing.invoices}
    idOf={({ id }) => id}
    nameOf={({ period }) => period}
    none={settingsTexts().billing.noInvoices}
    columns={[
      { id: 'period', name: settingsTexts().billing.period, cell: ({ period }) => period },
      {
        id: 'total',
        name: settingsTexts().billing.amount,
        cell: ({ total_cents: cents }) => money(cents),
        isEnd: true,
      },
      {
        id: 'state',
        name: t().fields.state,
        cell: ({ payment_status: state }) => (state === null ? '–' : wordOf(state)),
      },
      {
        id: 'link',
        name: t().page.open,
        cell: ({ hosted_invoice_url: url }) =>
          url?.startsWith('https:') === true ? (
            <a href={url} target="_blank" rel="noopener noreferrer">
              {t().page.open}
            </a>
          ) : (
            '–'
          ),
      },
    ]}
  />
)

/** The processor's page is a navigation: cards are never typed here. */
function AddMethod(): ReactNode {
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const { url } = await call('create_payment_setup_session')
    location.assign(url)
  })
  return (
    <form className="form" onSubmit={onSubmit}>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <div>
        <Button kind="primary" type="submit" isBusy={isBusy}>
          {settingsTexts().billing.addMethod}
        </Button>
      </div>
    </form>
  )
}

function Coupon(): ReactNode {
  const [code, setCode] = useState('')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    await call('redeem_coupon', { body: { code } })
    setCode('')
    notify(settingsTexts().billing.redeemed)
    await readAgain('get_usage_summary')
  })
  return (
    <Panel title={settingsTexts().billing.coupon}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField label={t().signUp.coupon} value={code} onChange={setCode} wrong={refusal?.fields['code']} />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div>
          <Button type="submit" isBusy={isBusy}>
            {settingsTexts().billing.redeem}
          </Button>
        </div>
      </form>
    </Panel>
  )
}
