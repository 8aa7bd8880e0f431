/** What a webhook has sent: attempts, answers, and sending again by hand. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { Webhook, WebhookDelivery } from '../../../client/schema.ts'
import { printable } from '../../../domain/printable.ts'
import { itemsOf, keyOf, readAgain } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { asRefusal, type Refusal } from '../../api/refusal.ts'
import { useMay } from '../../api/session.ts'
import { LoadMore } from '../../pages/more.tsx'
import { uuid } from '../../system.ts'
import { number } from '../../texts/format.ts'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Between, Panel, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { type Look, State } from '../../ui/state.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { notify } from '../../ui/toast.tsx'
import { Unread } from '../../ui/unread.tsx'
import { Time } from '../value.tsx'

const PAGE_ITEMS = 100
const LOOKS: Readonly<Record<WebhookDelivery['state'], Look>> = { pending: 'busy', delivered: 'good', failed: 'bad' }

export function Deliveries({ item }: { readonly item: Webhook }): ReactNode {
  const list = useDeliveries(item.id)
  const { refusal, resend } = useResend(item.id)
  const texts = t().webhook
  if (list.data === undefined)
    return (
      <Panel>
        <Unread error={list.error} retry={() => void list.refetch()} />
      </Panel>
    )
  const items = itemsOf(list.data)
  return (
    <Stack>
      <Between>
        <p className="soft">{texts.deliveriesNote}</p>
        <Button isBusy={list.isRefetching} onPress={() => void list.refetch()}>
          {texts.readAgain}
        </Button>
      </Between>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      {items.length === 0 ? (
        <Panel>
          <Soft>{texts.noDeliveries}</Soft>
        </Panel>
      ) : (
        <Table
          label={texts.deliveries}
          items={items}
          columns={[
            ...columnsOfDeliveries(),
            {
              id: 'again',
              name: t().list.actions,
              isEnd: true,
              cell: (delivery) => <Resend delivery={delivery} resend={resend} />,
            },
          ]}
          foot={list.hasNextPage ? <LoadMore list={list} operation="list_webhook_deliveries" /> : undefined}
        />
      )}
    </Stack>
  )
}

interface Resending {
  /** Of the last attempt. */
  readonly refusal: Refusal | undefined
  readonly resend: (delivery: WebhookDelivery) => Promise<void>
}

function useResend(webhook: string): Resending {
  const [refusal, setRefusal] = useState<Refusal>()
  const resend = async ({ id }: WebhookDelivery): Promise<void> => {
    try {
      setRefusal(undefined)
      await call('resend_webhook_delivery', { path: { id: webhook, delivery_id: id }, idempotencyKey: uuid() })
      notify(t().webhook.resent)
      await readAgain('list_webhook_deliveries', 'get_webhook')
    } catch (error) {
      setRefusal(asRefusal('resend_webhook_delivery', error))
    }
  }
  return { refusal, resend }
}

interface ResendProps {
  readonly delivery: WebhookDelivery
  readonly resend: Resending['resend']
}

function Resend({ delivery, resend }: ResendProps): ReactNode {
  const may = useMay()
  if (!may('resend_webhook_delivery')) return '–'
  return (
    <Button
      kind="quiet"
      why={delivery.state === 'pending' ? t().webhook.isPending : undefined}
      onPress={() => void resend(delivery)}
    >
      {t().webhook.resend}
    </Button>
  )
}

const columnsOfDeliveries = (): readonly Column<WebhookDelivery>[] => [
  { id: 'type', name: t().webhook.event, cell: ({ event_type: type }) => <code>{type}</code> },
  {
    id: 'state',
    name: t().fields.state,
    cell: ({ state }) => <State look={LOOKS[state]}>{t().webhook.states[state]}</State>,
  },
  { id: 'answer', name: t().webhook.answer, cell: answerOf },
  { id: 'attempts', name: t().webhook.attempts, cell: ({ attempts }) => number(attempts), isEnd: true },
  {
    id: 'next',
    name: t().webhook.next,
    cell: ({ next_attempt_at: at }) => (at === null ? '–' : <Time instant={at} />),
  },
  { id: 'at', name: t().fields.created_at, cell: ({ created_at: at }) => <Time instant={at} /> },
]

/** The status of the answer, or why there was none. Errors are words of the receiver: hostile text. */
const answerOf = ({ response_status: status, error }: WebhookDelivery): ReactNode => (
  <span dir="auto">{printable([status ?? '', error ?? ''].filter((each) => each !== '').join(' ')) || '–'}</span>
)

/** Page by page: a log keeps weeks of deliveries. The stream of changes has none of them. */
const useDeliveries = (id: string) =>
  useInfiniteQuery({
    queryKey: keyOf('list_webhook_deliveries', { path: { id } }),
    queryFn: ({ pageParam, signal }) =>
      call('list_webhook_deliveries', {
        path: { id },
        query: { limit: PAGE_ITEMS, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: cursor }) => cursor ?? undefined,
    staleTime: 0,
  })
