/** How much of each quota is used, and asking for more. */
import { type ReactNode, useState } from 'react'
import { itemsOf, readAgain, useList } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import type { BodyOf, ItemOf } from '../../api/operations.ts'
import { Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { type Question, useQuestion } from '../../nouns/ask.tsx'
import { useRequestKeys } from '../../nouns/request-key.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { quotaText } from '../../texts/service.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { TextField } from '../../ui/field.tsx'
import { Loading, Row, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { Bar, Tag } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { notify } from '../../ui/toast.tsx'
import { useSubmission } from '../submission.ts'

type QuotaRequest = ItemOf<'list_quota_requests'>

const NEAR = 0.8

export function Quotas(): ReactNode {
  const { data, error } = useList('list_account_quotas')
  const requests = itemsOf(useList('list_quota_requests').data)
  const [asked, setAsked] = useState<string>()
  const [question, dialog] = useQuestion(['list_quota_requests'])
  const may = useMay()
  if (data === undefined && error instanceof Refusal) return <ProblemView refusal={error} />
  if (data === undefined) return <Loading />
  const open = new Set(
    requests.filter(({ state }) => state === 'open' || state === 'in_review').map(({ name }) => name),
  )
  const texts = t().quotas
  return (
    <Stack>
      <p className="soft">{texts.note}</p>
      <Table
        label={t().account.quotas}
        items={itemsOf(data).map((quota) => ({ ...quota, id: quota.name }))}
        columns={[
          { id: 'name', name: t().fields.name, cell: ({ name }) => quotaText(name) },
          {
            id: 'bar',
            name: texts.used,
            cell: ({ name, used, limit }) => (
              <Bar
                part={limit === 0 ? 1 : used / limit}
                label={quotaText(name)}
                isBad={limit > 0 && used / limit >= NEAR}
              />
            ),
          },
          { id: 'used', name: texts.of, cell: ({ used, limit }) => `${number(used)} / ${number(limit)}`, isEnd: true },
          {
            id: 'ask',
            name: t().list.actions,
            isEnd: true,
            cell: ({ name }) =>
              open.has(name) ? (
                <Row>
                  <Tag>{texts.asked}</Tag>
                  <Withdraw name={name} requests={requests} ask={question} />
                </Row>
              ) : may('create_quota_request') ? (
                <Button kind="quiet" onPress={() => setAsked(name)}>
                  {texts.ask}
                </Button>
              ) : (
                '–'
              ),
          },
        ]}
      />
      {dialog}
      {asked === undefined ? null : <Ask name={asked} close={() => setAsked(undefined)} />}
    </Stack>
  )
}

interface WithdrawProps {
  readonly name: string
  readonly requests: readonly QuotaRequest[]
  readonly ask: (question: Question) => void
}

/** Only an open request can be withdrawn. */
function Withdraw({ name, requests, ask }: WithdrawProps): ReactNode {
  const may = useMay()
  const request = requests.find((each) => each.name === name && each.state === 'open')
  if (request === undefined || !may('withdraw_quota_request')) return null
  return (
    <Button
      kind="quiet"
      onPress={() =>
        ask({
          operation: 'withdraw_quota_request',
          path: { id: request.id },
          title: t().choices.confirm(settingsTexts().privateCloud.withdraw, quotaText(name)),
          button: settingsTexts().privateCloud.withdraw,
        })
      }
    >
      {settingsTexts().privateCloud.withdraw}
    </Button>
  )
}

function Ask({ name, close }: { readonly name: string; readonly close: () => void }): ReactNode {
  const [limit, setLimit] = useState('')
  const [reason, setReason] = useState('')
  const keys = useRequestKeys()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    // the names are those of the quotas
    const body = { name, limit: Number(limit), reason } as BodyOf<'create_quota_request'>
    await call('create_quota_request', { body, idempotencyKey: keys.of(body) })
    await readAgain('list_quota_requests')
    notify(t().quotas.sent)
    close()
  })
  return (
    <Dialog title={t().quotas.askFor(quotaText(name))} onClose={close}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField
          label={t().quotas.limit}
          value={limit}
          onChange={setLimit}
          inputMode="numeric"
          wrong={refusal?.fields['limit']}
          autoFocus
        />
        <TextField
          label={t().quotas.reason}
          value={reason}
          onChange={setReason}
          isLong
          wrong={refusal?.fields['reason']}
        />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="dialog-end">
          <Button onPress={close}>{t().ui.cancel}</Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {t().quotas.ask}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
