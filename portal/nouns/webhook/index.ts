/** Webhooks: events sent to an address, signed. */
import { Webhook as WebhookIcon } from 'lucide-react'
import { lazy } from 'react'
import type { Webhook } from '../../../client/schema.ts'
import { t } from '../../texts/index.ts'
import { type FormField, noun } from '../noun.ts'

const settings = [
  { name: 'url' },
  { name: 'events', note: () => t().webhook.eventsNote },
  { name: 'name' },
  { name: 'enabled', note: () => t().webhook.enabledNote },
] as const satisfies readonly FormField[]

const isDisabled = ({ state }: Pick<Webhook, 'state'>): string | undefined =>
  state === 'disabled' ? t().webhook.isDisabled : undefined

export const webhook = noun({
  name: 'webhook',
  area: 'account',
  icon: WebhookIcon,
  path: '/webhooks',
  list: 'list_webhooks',
  read: 'get_webhook',
  create: 'create_webhook',
  update: 'update_webhook',
  member: 'webhook',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { active: 'good', disabled: 'off', paused: 'bad', no_secret: 'bad' },
  columns: ['url', 'events', 'pending_deliveries', 'last_delivered_at', 'created_at'],
  facts: ['url', 'events', 'pause_reason', 'failing_since', 'pending_deliveries', 'last_delivered_at', 'created_at'],
  form: settings,
  edit: settings,
  initial: { events: ['*'] },
  actions: [
    { operation: 'probe_webhook', why: isDisabled, isFirst: true },
    { operation: 'rotate_webhook_secret', confirm: { stays: () => [t().webhook.staysSecret] } },
    {
      operation: 'delete_webhook',
      confirm: {
        goes: ({ pending_deliveries: count }) => (count === 0 ? [] : [t().webhook.goesPending(count)]),
      },
    },
  ],
  rotate: 'rotate_webhook_secret',
  reads: ['list_webhook_deliveries'],
  tabs: [
    {
      id: 'deliveries',
      name: () => t().webhook.deliveries,
      view: lazy(async () => ({ default: (await import('./deliveries.tsx')).Deliveries })),
    },
  ],
})
