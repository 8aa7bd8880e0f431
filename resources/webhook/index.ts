/** Webhooks: addresses of customers to which events are sent. Stored shape, public shapes and routes. */
import { z } from 'zod'
import {
  EVENT_PATTERN,
  EVENT_PATTERN_LENGTH_MAXIMUM,
  EVENT_PATTERNS_MAXIMUM,
  URL_LENGTH_MAXIMUM,
} from '../../domain/webhook/rules.ts'
import { resource } from '../kit/define.ts'
import { ById, DateTime, Id, pageOf, PageQuery, PrintableName } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'
import { AGE, READY, TITLE } from '../kit/columns.ts'
import { OBSERVED } from '../kit/fields.ts'

const Url = z
  .string()
  .min(1)
  .max(URL_LENGTH_MAXIMUM)
  .describe('Where events are sent: https, at a public address, without credentials.')
const Events = z
  .array(z.string().min(1).max(EVENT_PATTERN_LENGTH_MAXIMUM).regex(EVENT_PATTERN))
  .min(1)
  .max(EVENT_PATTERNS_MAXIMUM)
  .describe(
    'Types of events that are sent; * is any: server.state, server.*, *.deleted, operation.finished. Events of ' +
      'billing must be named.',
  )

export const Webhook = resource({
  kind: 'Webhook',
  plural: 'webhooks',
  shortNames: ['hook'],
  scope: 'Namespaced',
  customers: 'write',
  description: 'Sends signed events of the account to an address on the Internet.',
  spec: z
    .strictObject({
      name: z.string().min(1).max(100).describe('Display name.'),
      url: Url,
      events: Events,
      enabled: z.boolean().default(true).describe('Whether events are sent.'),
    })
    .describe('The desired state of the webhook.'),
  status: z
    .strictObject({
      ...OBSERVED,
      deliveryState: z
        .enum(['active', 'disabled', 'no_secret', 'paused'])
        .optional()
        .describe('Whether events are sent now.'),
      deliveredAt: z
        .string()
        .max(64)
        .meta({ format: 'date-time' })
        .optional()
        .describe('Time of the newest event that was delivered.'),
    })
    .describe('Observed state of the webhook. Written by its controller.'),
  columns: [
    TITLE,
    { name: 'URL', type: 'string', jsonPath: '.spec.url' },
    { name: 'State', type: 'string', jsonPath: '.status.deliveryState' },
    { name: 'Delivered', type: 'date', jsonPath: '.status.deliveredAt' },
    READY,
    AGE,
  ],
})
export type WebhookSpec = z.infer<typeof Webhook.spec>
export type WebhookStatus = z.infer<typeof Webhook.status>

export const WebhookView = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    url: z.string().describe('Where events are sent.'),
    events: z.array(z.string()).describe('Types of events that are sent; * is any.'),
    enabled: z.boolean().describe('Whether events are to be sent.'),
    state: z
      .enum(['active', 'disabled', 'no_secret', 'paused'])
      .describe(
        'Whether events are sent now. A webhook is paused when every delivery has failed for three days. One without ' +
          'a secret sends nothing until its secret is rotated.',
      ),
    pause_reason: z.string().nullable().describe('Why it is paused; null otherwise.'),
    failing_since: DateTime.nullable().describe(
      'First of the failures after the newest delivery; null when nothing waits that has failed.',
    ),
    last_delivered_at: DateTime.nullable().describe('Time of the newest event that was delivered; null before.'),
    pending_deliveries: z.int().min(0).describe('Events that wait to be sent, or to be sent again.'),
    created_at: DateTime,
  })
  .meta({ id: 'Webhook' })
export type WebhookView = z.infer<typeof WebhookView>

export const WebhookDeliveryView = z
  .strictObject({
    id: z.string().describe('Id of the event: the header webhook-id of every attempt.'),
    event_type: z.string().describe('Type of the event.'),
    resource_type: z.string().nullable().describe('Type of the resource that the event is about; null without one.'),
    resource_id: z.string().nullable().describe('Id of the resource that the event is about; null without one.'),
    state: z.enum(['pending', 'delivered', 'failed']).describe('Failed: it is not attempted again by itself.'),
    attempts: z.int().min(0).describe('Number of attempts.'),
    created_at: DateTime,
    last_attempt_at: DateTime.nullable().describe('Time of the newest attempt; null before the first one.'),
    next_attempt_at: DateTime.nullable().describe('Time of the next attempt; null when there is none.'),
    response_status: z.int().nullable().describe('HTTP status of the newest answer; null without one.'),
    error: z.string().nullable().describe('Why the newest attempt failed; null when it did not.'),
  })
  .meta({ id: 'WebhookDelivery' })
export type WebhookDeliveryView = z.infer<typeof WebhookDeliveryView>

const SecretText = z.string().describe('Secret that signs the events; only this answer contains it.')
const verbs = verbsOf({ path: '/v1/account/webhooks', noun: 'webhook', view: WebhookView })

export const listWebhooks = verbs.list('list_webhooks', { summary: 'List webhooks', description: 'Newest first.' })

export const createWebhook = verbs.create('create_webhook', {
  summary: 'Create a webhook',
  isRefusedToSupport: true,
  description:
    'Events are signed as Standard Webhooks describes. Only this answer contains the secret. Events of billing need ' +
    'the permission billing.read.',
  body: z.strictObject({
    name: PrintableName.optional().describe('Display name; the host of the address when it is left out.'),
    url: Url,
    events: Events,
    enabled: z.boolean().default(true).describe('Whether events are sent.'),
  }),
  example: { name: 'deployments', url: 'https://hooks.example.com/cloud', events: ['operation.finished', 'server.*'] },
  secretFields: ['secret'],
  answers: { 201: z.strictObject({ webhook: WebhookView, secret: SecretText }) },
  refuses: [400, 409, 422, 503],
})

export const getWebhook = verbs.read('get_webhook', { summary: 'Get a webhook' })

export const updateWebhook = verbs.change('update_webhook', {
  summary: 'Change a webhook',
  isRefusedToSupport: true,
  description: 'A change also resumes a paused webhook. With If-Match only that version is changed.',
  body: z.strictObject({
    name: PrintableName.optional(),
    url: Url.optional(),
    events: Events.optional(),
    enabled: z.boolean().optional().describe('Whether events are sent.'),
  }),
  example: { enabled: false },
})

export const deleteWebhook = verbs.remove('delete_webhook', {
  summary: 'Delete a webhook',
  description: 'Its log is deleted with it, and what was not delivered is not sent.',
})

export const rotateWebhookSecret = verbs.post('rotate_webhook_secret', '/{id}/rotate-secret', {
  summary: 'Replace the secret of a webhook',
  isRefusedToSupport: true,
  description: 'For a day, events are signed with both secrets. Only this answer contains the new one.',
  audit: 'webhook.rotate_secret',
  secretFields: ['secret'],
  answers: {
    200: z.strictObject({
      secret: SecretText,
      previous_valid_until: DateTime.nullable().describe('Until when the previous secret signs too.'),
    }),
  },
  refuses: [404, 503],
})

export const probeWebhook = verbs.post('probe_webhook', '/{id}/probe', {
  summary: 'Send a test event to a webhook',
  isRefusedToSupport: true,
  description:
    'An event of the type webhook.test, also while the webhook is disabled or paused. A paused webhook whose test ' +
    'event is delivered is resumed.',
  audit: 'webhook.probe',
  answers: { 202: z.strictObject({ delivery: WebhookDeliveryView }) },
  refuses: [404, 409],
})

export const listWebhookDeliveries = verbs.get('list_webhook_deliveries', '/{id}/deliveries', {
  summary: 'List the deliveries of a webhook',
  description: 'Newest first. Deliveries that have ended are listed for 14 days, and at most the newest 1000 of them.',
  query: PageQuery,
  answers: { 200: pageOf(WebhookDeliveryView) },
})

export const resendWebhookDelivery = verbs.post('resend_webhook_delivery', '/{id}/deliveries/{delivery_id}/resend', {
  summary: 'Send an event again',
  isRefusedToSupport: true,
  description:
    'With the same id and the same body, if the webhook selects it. Nothing changes when it is waiting already.',
  params: ById.extend({ delivery_id: Id }),
  audit: 'webhook.resend',
  answers: { 202: z.strictObject({ delivery: WebhookDeliveryView }) },
  refuses: [404, 409],
})

export const WEBHOOK_ROUTES = [
  listWebhooks,
  createWebhook,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  probeWebhook,
  listWebhookDeliveries,
  resendWebhookDelivery,
] as const

export const managedWebhook = managed({
  noun: 'webhook',
  view: WebhookView,
  routes: { list: listWebhooks, create: createWebhook, read: getWebhook, remove: deleteWebhook },
  names: ['name'],
  changes: [{ by: updateWebhook, sets: ['name', 'url', 'events', 'enabled'] }],
  fields: { events: { isSet: true } },
  facts: ['id', 'created_at'],
  moments: ['state', 'pause_reason', 'failing_since', 'last_delivered_at', 'pending_deliveries'],
})
