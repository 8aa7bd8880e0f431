/** The people of an account, and what staff do for them. Reading them is audited: they are shown on a press. */
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { StaffAccount, StaffAccountMember } from '../../../../client/operator-schema.ts'
import { keyOf } from '../../../api/cache.ts'
import { call } from '../../../api/client.ts'
import { useMay } from '../../../api/session.ts'
import { type Question, useQuestion } from '../../../nouns/ask.tsx'
import { labelOf } from '../../../nouns/fields.tsx'
import { Time } from '../../../nouns/value.tsx'
import { t } from '../../../texts/index.ts'
import { Button } from '../../../ui/button.tsx'
import { Panel, Row, Soft, Stack } from '../../../ui/layout.tsx'
import { State } from '../../../ui/state.tsx'
import { Table } from '../../../ui/table.tsx'
import { Unread } from '../../../ui/unread.tsx'
import { o } from '../../texts/index.ts'

interface PeopleProps {
  readonly item: StaffAccount
}

export function AccountPeople({ item }: PeopleProps): ReactNode {
  const [isShown, setShown] = useState(false)
  const may = useMay()
  const texts = o().account
  if (isShown) return <People item={item} />
  return (
    <Panel>
      <Stack>
        <Soft>{texts.peopleNote}</Soft>
        <Row>
          <Button why={may('list_account_members') ? undefined : o().needsRole} onPress={() => setShown(true)}>
            {texts.showPeople}
          </Button>
        </Row>
      </Stack>
    </Panel>
  )
}

/** Read once, and again after a change: each read is an entry in the audit log of the account. */
function People({ item: { id } }: PeopleProps): ReactNode {
  const path = { account_id: id }
  const { data, error, refetch } = useQuery({
    queryKey: keyOf('list_account_members', { path }),
    queryFn: async ({ signal }) => (await call('list_account_members', { path, signal })).items,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
  })
  const [ask, dialog] = useQuestion(['list_account_members'])
  if (data === undefined)
    return (
      <Panel>
        <Unread error={error} retry={() => void refetch()} />
      </Panel>
    )
  const texts = o().account
  return (
    <>
      <Table
        label={texts.people}
        items={data.map((person) => ({ ...person, id: person.user_id }))}
        columns={[
          { id: 'email', name: t().sign.email, cell: ({ email }) => <span dir="auto">{email}</span> },
          { id: 'name', name: labelOf('name'), cell: ({ name }) => <span dir="auto">{name ?? '–'}</span> },
          { id: 'role', name: texts.role, cell: ({ role }) => texts.roles[role] },
          {
            id: 'factor',
            name: texts.secondFactor,
            cell: ({ second_factor_enabled: isOn }) => (isOn ? t().ui.yes : t().ui.no),
          },
          {
            id: 'active',
            name: texts.lastActive,
            cell: ({ last_active_at: at }) => (at === null ? '–' : <Time instant={at} />),
          },
          {
            id: 'state',
            name: labelOf('state'),
            cell: ({ disabled_at: at }) =>
              at === null ? <State look="good">{texts.mayEnter}</State> : <State look="bad">{texts.isDisabled}</State>,
          },
          {
            id: 'actions',
            name: t().list.actions,
            isEnd: true,
            cell: (person) => <Actions person={person} ask={ask} />,
          },
        ]}
      />
      {dialog}
    </>
  )
}

interface ActionsProps {
  readonly person: StaffAccountMember
  readonly ask: (question: Question) => void
}

function Actions({ person, ask }: ActionsProps): ReactNode {
  const may = useMay()
  const texts = o().account
  const { email, user_id: id, disabled_at: disabledAt, second_factor_enabled: hasFactor } = person
  const question = (operation: Question['operation'], button: string, goes: readonly string[]): Question => ({
    operation,
    path: { user_id: id },
    title: t().choices.confirm(button, email),
    button,
    fields: [{ name: 'reason' }],
    goes,
  })
  const why = (operation: Question['operation']): string | undefined => (may(operation) ? undefined : o().needsRole)
  return (
    <Row>
      {disabledAt === null ? (
        <Button
          kind="quiet"
          why={why('disable_user')}
          onPress={() => ask(question('disable_user', texts.disable, [texts.goesSessions]))}
        >
          {texts.disable}
        </Button>
      ) : (
        <Button kind="quiet" why={why('enable_user')} onPress={() => ask(question('enable_user', texts.enable, []))}>
          {texts.enable}
        </Button>
      )}
      <Button
        kind="quiet"
        why={why('reset_user_second_factor') ?? (hasFactor ? undefined : texts.noFactor)}
        onPress={() =>
          ask({
            ...question('reset_user_second_factor', texts.resetFactor, [texts.goesFactor, texts.goesSessions]),
            type: email,
          })
        }
      >
        {texts.resetFactor}
      </Button>
    </Row>
  )
}
