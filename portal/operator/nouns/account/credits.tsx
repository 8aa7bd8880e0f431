/** The credits of an account, which staff grant and revoke. */
import { useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { StaffAccount } from '../../../../client/operator-schema.ts'
import { itemsOf, keyOf } from '../../../api/cache.ts'
import { call } from '../../../api/client.ts'
import { useMay } from '../../../api/session.ts'
import { useQuestion } from '../../../nouns/ask.tsx'
import { labelOf } from '../../../nouns/fields.tsx'
import { Time } from '../../../nouns/value.tsx'
import { LoadMore } from '../../../pages/more.tsx'
import { money } from '../../../texts/format.ts'
import { t } from '../../../texts/index.ts'
import { Button } from '../../../ui/button.tsx'
import { Panel, Soft } from '../../../ui/layout.tsx'
import { Table } from '../../../ui/table.tsx'
import { Unread } from '../../../ui/unread.tsx'
import { o } from '../../texts/index.ts'

const PAGE_ITEMS = 100

export function AccountCredits({ item: { id: account } }: { readonly item: StaffAccount }): ReactNode {
  const list = useCredits(account)
  const [ask, dialog] = useQuestion(['list_account_credits', 'list_accounts_as_staff', 'get_account_as_staff'])
  const may = useMay()
  const texts = o().account
  if (list.data === undefined)
    return (
      <Panel>
        <Unread error={list.error} retry={() => void list.refetch()} />
      </Panel>
    )
  const items = itemsOf(list.data)
  if (items.length === 0)
    return (
      <Panel>
        <Soft>{texts.noCredits}</Soft>
      </Panel>
    )
  return (
    <>
      <Table
        label={texts.credits}
        items={items}
        columns={[
          { id: 'label', name: labelOf('label'), cell: ({ label }) => <span dir="auto">{label}</span> },
          { id: 'source', name: texts.source, cell: ({ source }) => texts.sources[source] },
          {
            id: 'left',
            name: texts.left,
            cell: ({ remaining_cents: cents }) => money(cents),
            isEnd: true,
          },
          { id: 'amount', name: labelOf('amount_cents'), cell: ({ amount_cents: cents }) => money(cents), isEnd: true },
          {
            id: 'until',
            name: labelOf('expires_at'),
            cell: ({ expires_at: at }) => (at === null ? '–' : <Time instant={at} />),
          },
          { id: 'state', name: labelOf('state'), cell: ({ state }) => texts.creditStates[state] },
          {
            id: 'actions',
            name: t().list.actions,
            isEnd: true,
            cell: ({ id, label, state, remaining_cents: cents }) => (
              <Button
                kind="quiet"
                why={may('revoke_credit') ? (state === 'revoked' ? texts.isRevoked : undefined) : o().needsRole}
                onPress={() =>
                  ask({
                    operation: 'revoke_credit',
                    path: { account_id: account, id },
                    title: t().choices.confirm(texts.revoke, label),
                    button: texts.revoke,
                    goes: [texts.goesCredit(money(cents))],
                  })
                }
              >
                {texts.revoke}
              </Button>
            ),
          },
        ]}
        foot={list.hasNextPage ? <LoadMore list={list} operation="list_account_credits" /> : undefined}
      />
      {dialog}
    </>
  )
}

const useCredits = (account: string) =>
  useInfiniteQuery({
    queryKey: keyOf('list_account_credits', { path: { account_id: account } }),
    queryFn: ({ pageParam, signal }) =>
      call('list_account_credits', {
        path: { account_id: account },
        query: { limit: PAGE_ITEMS, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: cursor }) => cursor ?? undefined,
  })
