/** Deliveries of a webhook: their log, sending one again by hand, and test events. */
import { appendAudit } from '../../../db/audit/index.ts'
import {
  addEventFor,
  countWaitingOf,
  findDelivery,
  findListedWebhook,
  listDeliveries,
  queueAgain,
  type WebhookDelivery,
  type WebhookRow,
} from '../../../db/webhook/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { conflict, forbidden, notFound } from '../../../domain/problem.ts'
import { selectsBilling, sendsEvent, TEST_EVENT } from '../../../domain/webhook/rules.ts'
import type { Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import {
  listWebhookDeliveries,
  probeWebhook,
  resendWebhookDelivery,
  type WebhookDeliveryView,
} from '../../../resources/webhook/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { readPage } from '../../kit/list/page.ts'
import type { Parts } from '../../kit/parts.ts'

/** Test events of a webhook that may wait. */
const TESTS_MAXIMUM = 10

/** Throws 403 when the caller may not read the events of billing that one of these selects: whoever may change the
 *  address of a webhook can read what is sent to it. */
export function requireReader({ permissions }: Customer, ...patterns: readonly (readonly string[])[]): void {
  if (patterns.some(selectsBilling) && !permissions.includes('billing.read'))
    throw forbidden('Webhooks with events of billing need the permission billing.read.')
}

/** Throws 404. */
export async function requireRow({ db }: Pick<Parts, 'db'>, accountId: string, webhookId: string): Promise<WebhookRow> {
  const row = await findListedWebhook(db, { accountId, webhookId })
  if (row === undefined) throw notFound('webhook')
  return row
}

/** Throws 404. */
async function requireDelivery(
  db: Queries,
  id: { readonly accountId: string; readonly webhookId: string },
  eventId: string,
): Promise<WebhookDeliveryView> {
  const delivery = await findDelivery(db, id, eventId)
  if (delivery === undefined) throw notFound('delivery')
  return deliveryViewOf(delivery)
}

const deliveryViewOf = (delivery: WebhookDelivery): WebhookDeliveryView => ({
  id: delivery.id,
  event_type: delivery.type,
  resource_type: delivery.resourceType,
  resource_id: delivery.resourceId,
  state: delivery.state,
  attempts: delivery.attempts,
  created_at: delivery.createdAt.toISOString(),
  last_attempt_at: delivery.attemptedAt?.toISOString() ?? null,
  next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
  response_status: delivery.responseStatus,
  error: delivery.error,
})

export function deliveryEndpoints(parts: Parts): readonly Endpoint[] {
  const { clock, db, random } = parts
  return [
    customerEndpoint(probeWebhook, async (call) => {
      const { accountId } = call.caller
      const id = { accountId, webhookId: (await requireRow(parts, accountId, call.params.id)).id }
      const eventId = `evt-${newUuid(random).replaceAll('-', '')}`
      const at = call.now.toISOString()
      const data = { webhook_id: id.webhookId }
      const content = { id: eventId, type: TEST_EVENT, timestamp: at, account_id: accountId, resource: null, data }
      const delivery = await db.transaction().execute(async (tx) => {
        if ((await countWaitingOf(tx, id, TEST_EVENT)) >= TESTS_MAXIMUM)
          throw conflict('state_not_allowed', 'Test events wait already. Try again when they have been sent.')
        await addEventFor(tx, id, { id: eventId, type: TEST_EVENT, body: JSON.stringify(content) }, call.now)
        const added = await requireDelivery(tx, id, eventId)
        await appendAudit(tx, auditEntryOf(call, { resourceId: id.webhookId }), { clock, random })
        return added
      })
      return { status: 202, body: { delivery } }
    }),
    customerEndpoint(listWebhookDeliveries, async (call) => {
      const { accountId } = call.caller
      const id = { accountId, webhookId: (await requireRow(parts, accountId, call.params.id)).id }
      const { items, nextCursor } = await readPage(
        parts.cursors,
        call,
        (after, limit) => listDeliveries(db, id, { before: after && Number(after.sortKey), limit }),
        (delivery) => ({ sortKey: String(delivery.number), id: id.webhookId }),
        { viewsOf: (some) => some.map(deliveryViewOf) },
      )
      return { status: 200, body: { items, next_cursor: nextCursor } }
    }),
    customerEndpoint(resendWebhookDelivery, async (call) => {
      const { accountId } = call.caller
      const { id: webhookId, events } = await requireRow(parts, accountId, call.params.id)
      const id = { accountId, webhookId }
      const { delivery_id: eventId } = call.params
      const { event_type: type } = await requireDelivery(db, id, eventId)
      requireReader(call.caller, [type])
      if (!sendsEvent(events, type))
        throw conflict('state_not_allowed', `The webhook does not select events of the type ${type}.`)
      const delivery = await db.transaction().execute(async (tx) => {
        await queueAgain(tx, id, eventId, call.now)
        const queued = await requireDelivery(tx, id, eventId)
        await appendAudit(tx, auditEntryOf(call, { resourceId: id.webhookId, detail: { event_id: eventId } }), {
          clock,
          random,
        })
        return queued
      })
      return { status: 202, body: { delivery } }
    }),
  ]
}
