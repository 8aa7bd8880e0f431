/** What only an account has: its quotas, and the way into it. */
import { type ReactNode, useState } from 'react'
import type { StaffAccount } from '../../../../client/operator-schema.ts'
import { DEFAULT_QUOTAS } from '../../../../domain/account/quota.ts'
import { readAgain } from '../../../api/cache.ts'
import { call } from '../../../api/client.ts'
import type { Answer } from '../../../api/operations.ts'
import { useMay } from '../../../api/session.ts'
import { useRequestKeys } from '../../../nouns/request-key.ts'
import { useSubmission } from '../../../pages/submission.ts'
import { t } from '../../../texts/index.ts'
import { quotaText } from '../../../texts/service.ts'
import { number } from '../../../texts/format.ts'
import { Button } from '../../../ui/button.tsx'
import { SelectField, TextField } from '../../../ui/field.tsx'
import { Panel, Soft } from '../../../ui/layout.tsx'
import { ProblemView } from '../../../ui/problem.tsx'
import { Note } from '../../../ui/state.tsx'
import { notify } from '../../../ui/toast.tsx'
import { o } from '../../texts/index.ts'

interface AccountProps {
  readonly item: StaffAccount
}

const quotas = () => Object.keys(DEFAULT_QUOTAS).map((id) => ({ id, name: quotaText(id) }))

export function AccountQuotas({ item }: AccountProps): ReactNode {
  const [name, setName] = useState<string>('servers')
  const [limit, setLimit] = useState('')
  const may = useMay()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const path = { account_id: item.id, name }
    const set = await call('set_account_quota', { path, body: { limit: Number(limit) } })
    notify(o().account.quotaSet(quotaText(set.name), number(set.limit)))
    setLimit('')
  })
  return (
    <Panel>
      <form className="form" onSubmit={onSubmit} noValidate>
        <SelectField
          label={o().account.quotaName}
          options={quotas()}
          value={name}
          onChange={(id) => setName(id ?? 'servers')}
        />
        <TextField
          label={t().quotas.limit}
          value={limit}
          onChange={(text) => setLimit(text.replace(/\D/g, ''))}
          inputMode="numeric"
        />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="form-end">
          <Button
            type="submit"
            kind="primary"
            isBusy={isBusy}
            why={may('set_account_quota') ? (limit === '' ? t().problem.field.missing : undefined) : o().needsRole}
          >
            {o().account.setQuota}
          </Button>
        </div>
      </form>
    </Panel>
  )
}

type Mode = 'read_only' | 'elevated'
const asMode = (id: string | undefined): Mode => (id === 'elevated' ? 'elevated' : 'read_only')

/** The customers' portal is another origin: a code in the address opens the session there, once. */
export function AccountSupport({ item }: AccountProps): ReactNode {
  const [mode, setMode] = useState<Mode>('read_only')
  const [reason, setReason] = useState('')
  const [ticket, setTicket] = useState('')
  const [opened, setOpened] = useState<Answer<'create_support_session'>>()
  const may = useMay()
  const keys = useRequestKeys()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const body = { mode, reason, ...(ticket === '' ? {} : { ticket }) }
    const path = { account_id: item.id }
    const answer = await call('create_support_session', { path, body, idempotencyKey: keys.of(body) })
    keys.renew()
    setOpened(answer)
    await readAgain('list_support_sessions')
  })
  if (opened !== undefined)
    return (
      <Panel>
        {opened.handoff_url === undefined ? (
          <>
            <Note look="busy">{o().account.lost}</Note>
            <Button onPress={() => setOpened(undefined)}>{o().account.support}</Button>
          </>
        ) : (
          <>
            <p>{o().account.opened}</p>
            <Button kind="primary" onPress={() => enter(opened.handoff_url ?? '', () => setOpened(undefined))}>
              {o().account.enter}
            </Button>
          </>
        )}
      </Panel>
    )
  const { words } = t().choices
  return (
    <Panel>
      <Soft>{o().account.supportNote}</Soft>
      <form className="form" onSubmit={onSubmit} noValidate>
        <SelectField
          label={o().fields.mode}
          options={(['read_only', 'elevated'] as const).map((id) => ({ id, name: words[id] ?? id }))}
          value={mode}
          onChange={(id) => setMode(asMode(id))}
        />
        <TextField label={o().fields.reason} value={reason} onChange={setReason} wrong={refusal?.fields['reason']} />
        <TextField label={o().fields.ticket} value={ticket} onChange={setTicket} isRequired={false} />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="form-end">
          <Button
            type="submit"
            kind="primary"
            isBusy={isBusy}
            why={
              may('create_support_session')
                ? reason.trim() === ''
                  ? t().problem.field.missing
                  : undefined
                : o().needsRole
            }
          >
            {o().account.support}
          </Button>
        </div>
      </form>
    </Panel>
  )
}

/** The code works once: it is forgotten here as soon as it was used. */
function enter(url: string, forget: () => void): void {
  if (!/^https?:/.test(url)) return
  window.open(url, '_blank', 'noopener,noreferrer')
  forget()
}
