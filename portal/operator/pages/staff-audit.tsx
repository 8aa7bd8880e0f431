/** What staff, operators and the system did, and whether the chain of it is whole. */
import { type ReactNode, useState } from 'react'
import { itemsOf, useList } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import type { Answer } from '../../api/operations.ts'
import { asRefusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { Time } from '../../nouns/value.tsx'
import { atEndOf, LoadMore } from '../../pages/more.tsx'
import { useSubmission } from '../../pages/submission.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { typeText } from '../../texts/service.ts'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { Loading, Page, Panel, Soft, Toolbar } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { State } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import { o } from '../texts/index.ts'

export function StaffAuditPage(): ReactNode {
  const [typed, setTyped] = useState('')
  const [action, setAction] = useState('')
  return (
    <Page title={o().audit.title} note={o().audit.note}>
      <Chain />
      <form
        onSubmit={(event) => {
          event.preventDefault()
          setAction(typed.trim())
        }}
      >
        <Toolbar>
          <TextField
            label={o().audit.filter}
            placeholder={o().audit.filter}
            type="search"
            value={typed}
            onChange={setTyped}
            isLabelHidden
          />
          <Button type="submit">{t().list.filter}</Button>
        </Toolbar>
      </form>
      <Entries action={action} />
    </Page>
  )
}

/** An id of which the beginning is enough to tell items apart. */
const UUID = /^([0-9a-f]{8})-[0-9a-f-]{27}$/

/** The service filters: entries of years are more than a page. */
function Entries({ action }: { readonly action: string }): ReactNode {
  const list = useList('list_staff_audit_entries', action === '' ? {} : { action })
  const entries = itemsOf(list.data)
  if (list.isPending)
    return (
      <Panel>
        <Loading lines={5} />
      </Panel>
    )
  if (list.error !== null && entries.length === 0)
    return <ProblemView refusal={asRefusal('list_staff_audit_entries', list.error)} retry={() => void list.refetch()} />
  if (entries.length === 0)
    return (
      <Panel>
        <Soft>{t().list.noneFound}</Soft>
      </Panel>
    )
  return (
    <Table
      label={o().audit.title}
      items={entries}
      columns={[
        { id: 'action', name: t().audit.action, cell: (entry) => entry.action },
        { id: 'at', name: t().audit.at, cell: ({ at }) => <Time instant={at} /> },
        { id: 'by', name: t().operations.by, cell: (entry) => <span dir="auto">{entry.actor_email}</span> },
        {
          id: 'resource',
          name: t().audit.resource,
          cell: ({ resource_type: type, resource_id: id }) => `${typeText(type)} ${id.replace(UUID, '$1')}`,
        },
        { id: 'account', name: o().fields.account_id, cell: ({ account_id: id }) => id?.slice(0, 8) ?? '–' },
        { id: 'ip', name: t().fields.address, cell: ({ source_ip: address }) => address },
      ]}
      onEnd={atEndOf(list)}
      foot={list.hasNextPage ? <LoadMore list={list} operation="list_staff_audit_entries" /> : undefined}
    />
  )
}

const LOOKS = { verified: 'good', unverified: 'busy', broken: 'bad' } as const

/** On a click: it reads the whole chain of the staff. */
function Chain(): ReactNode {
  const [found, setFound] = useState<Answer<'verify_audit_chain'>>()
  const may = useMay()
  const { isBusy, refusal, onSubmit } = useSubmission(async () =>
    setFound(await call('verify_audit_chain', { body: {} })),
  )
  return (
    <Panel>
      {found === undefined ? null : (
        <State look={LOOKS[found.status]}>
          {found.break === null
            ? t().audit.verified(number(found.verified_through_sequence), number(found.head_sequence))
            : `${t().audit.broken} ${found.break.reason}`}
        </State>
      )}
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <form onSubmit={onSubmit}>
        <Button type="submit" isBusy={isBusy} why={may('verify_audit_chain') ? undefined : o().needsRole}>
          {o().audit.verify}
        </Button>
      </form>
    </Panel>
  )
}
