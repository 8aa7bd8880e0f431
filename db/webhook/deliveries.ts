/** Deliveries of events to webhooks: which are due, what came of each, and the log. A delivery in progress is leased:
 *  when its process is killed, another one sends it after the lease, with the same id. One that waits behind another of
 *  its resource says so until that one has ended. */
import { type RawBuilder, type Selectable, sql, type Transaction } from 'kysely'
import {
  ACCOUNT_DELIVERIES_AT_ONCE_MAXIMUM,
  DELIVERIES_AT_ONCE_MAXIMUM,
  LOG_DELIVERIES_MAXIMUM,
  LOG_MILLISECONDS,
  TEST_EVENT,
} from '../../domain/webhook/rules.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

interface OfWebhook {
  readonly accountId: string
  readonly webhookId: string
}

export interface DueDelivery extends OfWebhook {
  readonly eventId: string
  /** Of the event. */
  readonly type: string
  /** What it waits behind; empty for nothing. */
  readonly resource: string
  readonly url: string
  /** Which events the webhook selects now. */
  readonly patterns: readonly string[]
  readonly body: string
  /** Failures so far. */
  readonly failures: number
  /** Of this attempt: whoever has another one no longer sends it. */
  readonly leasedUntil: Date
}

/** A condition of `delivery` in a query that knows `waiting`: nobody sends it, and nothing of its resource is before
 *  it. Processes of the release before do not say what waits behind another one. */
const isNext = (now: Date) => sql`delivery.account_id = waiting.account_id and delivery.webhook_id = waiting.webhook_id
  and delivery.state = 'pending' and delivery.next_attempt_at <= ${now}
  and (delivery.leased_until is null or delivery.leased_until <= ${now})
  and (delivery.resource = '' or not exists (
    select 1 from webhook_delivery earlier
    where earlier.account_id = delivery.account_id and earlier.webhook_id = delivery.webhook_id
      and earlier.state = 'pending' and earlier.resource = delivery.resource
      and earlier.number < delivery.number))`

/** The start of a query whose `chosen` are due: of each webhook and of each account at most a few at once, and of each
 *  resource the oldest only. Accounts with fewer in progress come first. */
const chosenDeliveries = (now: Date, limit: number) => sql`with recursive waiting as (
      -- The webhooks for which something waits: one entry of the index for each, however much waits.
      (select account_id, webhook_id from webhook_delivery where state = 'pending'
        order by account_id, webhook_id limit 1)
      union all
      select following.account_id, following.webhook_id from waiting cross join lateral (
        select account_id, webhook_id from webhook_delivery
        where state = 'pending' and (account_id, webhook_id) > (waiting.account_id, waiting.webhook_id)
        order by account_id, webhook_id limit 1) following
    ), busy as (
      select account_id, webhook_id, count(*) as count from webhook_delivery
      where state = 'pending' and leased_until is not null and leased_until > ${now} group by account_id, webhook_id
    ), due as (
      select waiting.account_id, waiting.webhook_id, head.event_id, head.next_attempt_at, head.number,
        coalesce(busy.count, 0)
          + row_number() over (
              partition by waiting.account_id, waiting.webhook_id order by head.next_attempt_at, head.number) as place
      from waiting
      join webhook on webhook.account_id = waiting.account_id and webhook.id = waiting.webhook_id
      left join busy on busy.account_id = waiting.account_id and busy.webhook_id = waiting.webhook_id
      cross join lateral (
        (select delivery.event_id, delivery.next_attempt_at, delivery.number from webhook_delivery delivery
          where webhook.enabled and webhook.paused_at is null and not delivery.is_behind
            and ${isNext(now)} order by delivery.next_attempt_at, delivery.number limit ${DELIVERIES_AT_ONCE_MAXIMUM})
        union all
        (select delivery.event_id, delivery.next_attempt_at, delivery.number from webhook_delivery delivery
          where not (webhook.enabled and webhook.paused_at is null) and delivery.is_test
            and ${isNext(now)} order by delivery.next_attempt_at, delivery.number limit ${DELIVERIES_AT_ONCE_MAXIMUM})
      ) head
      where webhook.sealed_secret is not null and webhook.removed_at is null
    ), shared as (
      select due.*, row_number() over (partition by account_id order by place, next_attempt_at, number)
          + (select coalesce(sum(busy.count), 0) from busy where busy.account_id = due.account_id) as account_place
      from due where place <= ${DELIVERIES_AT_ONCE_MAXIMUM}
    ), chosen as (
      select account_id, webhook_id, event_id from shared
      where account_place <= ${ACCOUNT_DELIVERIES_AT_ONCE_MAXIMUM}
      order by account_place, next_attempt_at limit ${limit}
    )`

/** Leases deliveries that are due. Test events are sent to webhooks that are disabled or paused, too. */
export async function claimDeliveries(
  queries: Queries,
  { now, leasedUntil, limit }: { readonly now: Date; readonly leasedUntil: Date; readonly limit: number },
): Promise<readonly DueDelivery[]> {
  const { rows } = await sql<Omit<DueDelivery, 'leasedUntil'>>`${chosenDeliveries(now, limit)}, locked as (
      select delivery.account_id, delivery.webhook_id, delivery.event_id from webhook_delivery delivery
      join chosen on chosen.account_id = delivery.account_id and chosen.webhook_id = delivery.webhook_id
        and chosen.event_id = delivery.event_id
      where delivery.state = 'pending' and (delivery.leased_until is null or delivery.leased_until <= ${now})
      for update of delivery skip locked
    ) update webhook_delivery delivery
    set leased_until = ${leasedUntil}, attempts = attempts + 1, attempted_at = ${now}
    from locked, webhook, webhook_event event
    where delivery.account_id = locked.account_id and delivery.webhook_id = locked.webhook_id
      and delivery.event_id = locked.event_id
      and webhook.account_id = locked.account_id and webhook.id = locked.webhook_id
      and event.account_id = locked.account_id and event.id = locked.event_id
    returning delivery.account_id as "accountId", delivery.webhook_id as "webhookId", delivery.event_id as "eventId",
      event.type, delivery.resource, webhook.url, webhook.events as patterns, event.body,
      delivery.failures`.execute(queries)
  return rows.map((row) => ({ ...row, leasedUntil }))
}

export interface Attempt {
  readonly now: Date
  /** Null when there was no answer. */
  readonly status: number | null
  /** Null when it was delivered. */
  readonly error: string | null
  /** When it is attempted again; undefined when it was delivered or is given up. */
  readonly nextAttemptAt?: Date | undefined
}

const ERROR_CHARACTERS_MAXIMUM = 500

const leased = (tx: Transaction<Tables>, { accountId, webhookId, eventId, leasedUntil }: DueDelivery) =>
  updateWhere(tx, 'webhook_delivery', {
    account_id: accountId,
    webhook_id: webhookId,
    event_id: eventId,
    state: 'pending',
    leased_until: leasedUntil,
  })

/** Records what came of the attempt. Answers since when all deliveries of the webhook have failed, null after a
 *  delivery; undefined when the lease was lost: then somebody else sends it, and nothing is recorded. */
export async function recordAttempt(
  tx: Transaction<Tables>,
  delivery: DueDelivery,
  { now, status, error, nextAttemptAt }: Attempt,
): Promise<Date | null | undefined> {
  const { accountId, webhookId, failures } = delivery
  const isDelivered = error === null
  const recorded = await leased(tx, delivery)
    .set({
      state: isDelivered ? 'delivered' : nextAttemptAt === undefined ? 'failed' : 'pending',
      failures: isDelivered ? failures : failures + 1,
      leased_until: null,
      next_attempt_at: nextAttemptAt ?? null,
      ended_at: nextAttemptAt === undefined ? now : null,
      response_status: status,
      error: error?.slice(0, ERROR_CHARACTERS_MAXIMUM) ?? null,
    })
    .executeTakeFirst()
  if (recorded.numUpdatedRows === 0n) return undefined
  if (nextAttemptAt === undefined) await wakeNext(tx, delivery, now)
  const key = { account_id: accountId, id: webhookId }
  if (isDelivered) {
    await updateWhere(tx, 'webhook', key)
      .set({ failing_since: null, delivered_at: now, paused_at: null, pause_reason: null })
      .execute()
    return null
  }
  const { failing_since: since } = await updateWhere(tx, 'webhook', key)
    .set({ failing_since: sql<Date>`coalesce(failing_since, ${now})` })
    .returning('failing_since')
    .executeTakeFirstOrThrow()
  if (nextAttemptAt === undefined) await forgetFailures(tx, delivery)
  return since
}

/** Ends a delivery that was not attempted. */
export async function endDelivery(
  tx: Transaction<Tables>,
  delivery: DueDelivery,
  { now, error }: { readonly now: Date; readonly error: string },
): Promise<void> {
  const ended = await leased(tx, delivery)
    .set((columns) => ({
      state: 'failed',
      attempts: columns('attempts', '-', 1),
      leased_until: null,
      next_attempt_at: null,
      ended_at: now,
      error,
    }))
    .executeTakeFirst()
  if (ended.numUpdatedRows > 0n) await wakeNext(tx, delivery, now)
}

/** The next delivery of the resource is due from now on, and not late: the one before has ended. */
async function wakeNext(
  tx: Transaction<Tables>,
  { accountId, webhookId, resource }: DueDelivery,
  now: Date,
): Promise<void> {
  if (resource === '') return
  const waiting = { account_id: accountId, webhook_id: webhookId, resource, state: 'pending' } as const
  const { number } = await selectWhere(tx, 'webhook_delivery', waiting)
    .select(({ fn }) => fn.min('number').as('number'))
    .executeTakeFirstOrThrow()
  if (number === null) return
  await updateWhere(tx, 'webhook_delivery', { ...waiting, number })
    .set({ next_attempt_at: now, is_behind: false })
    .where((where) => where.or([where('is_behind', '=', true), where('next_attempt_at', 'is', null)]))
    .execute()
}

/** Of all accounts, whatever has ended meanwhile: the first of each resource is due. Only the first ones are read, by
 *  the index of what waits. */
async function wakeAll(queries: Queries, now: Date): Promise<void> {
  await sql`with recursive first as (
      (select account_id, webhook_id, resource, event_id from webhook_delivery where state = 'pending'
        order by account_id, webhook_id, resource, number limit 1)
      union all
      select following.account_id, following.webhook_id, following.resource, following.event_id
      from first cross join lateral (
        select account_id, webhook_id, resource, event_id from webhook_delivery
        where state = 'pending'
          and (account_id, webhook_id, resource) > (first.account_id, first.webhook_id, first.resource)
        order by account_id, webhook_id, resource, number limit 1) following
    ), free as (
      select delivery.account_id, delivery.webhook_id, delivery.event_id from webhook_delivery delivery
      join first on first.account_id = delivery.account_id and first.webhook_id = delivery.webhook_id
        and first.event_id = delivery.event_id
      where delivery.state = 'pending' and (delivery.is_behind or delivery.next_attempt_at is null)
      for update of delivery skip locked
    ) update webhook_delivery delivery
    set next_attempt_at = ${now}, is_behind = false from free
    where delivery.account_id = free.account_id and delivery.webhook_id = free.webhook_id
      and delivery.event_id = free.event_id`.execute(queries)
  // Of processes of the release before.
  await sql`update webhook_delivery delivery set is_test = true from webhook_event event
    where event.type = ${sql.lit(TEST_EVENT)}
      and delivery.account_id = event.account_id and delivery.event_id = event.id
      and delivery.state = 'pending' and not delivery.is_test`.execute(queries)
}

/** Failures of deliveries that have ended are in the log: once none that failed waits, the next failure is the first.
 *  The webhook is locked. */
async function forgetFailures(tx: Transaction<Tables>, { accountId, webhookId }: OfWebhook): Promise<void> {
  await updateWhere(tx, 'webhook', { account_id: accountId, id: webhookId })
    .set({ failing_since: null })
    .where(({ not, exists }) =>
      not(
        exists(
          selectWhere(tx, 'webhook_delivery', { account_id: accountId, webhook_id: webhookId, state: 'pending' })
            .select('event_id')
            .where('failures', '>', 0),
        ),
      ),
    )
    .execute()
}

/** Pauses the webhook. Answers its name and address; undefined when it was paused before. */
export async function pauseWebhook(
  tx: Transaction<Tables>,
  { accountId, webhookId }: OfWebhook,
  { now, reason }: { readonly now: Date; readonly reason: string },
): Promise<{ readonly name: string; readonly url: string } | undefined> {
  return await updateWhere(tx, 'webhook', { account_id: accountId, id: webhookId })
    .set({ paused_at: now, pause_reason: reason })
    .where('paused_at', 'is', null)
    .returning(['name', 'url'])
    .executeTakeFirst()
}

export interface WebhookDelivery {
  readonly id: string
  /** Its place in the list. */
  readonly number: number
  readonly type: string
  readonly resourceType: string | null
  readonly resourceId: string | null
  readonly state: Selectable<Tables['webhook_delivery']>['state']
  readonly attempts: number
  readonly createdAt: Date
  readonly attemptedAt: Date | null
  readonly nextAttemptAt: Date | null
  readonly responseStatus: number | null
  readonly error: string | null
}

const deliveries = (queries: Queries, { accountId, webhookId }: OfWebhook) =>
  queries
    .selectFrom('webhook_delivery as delivery')
    .innerJoin('webhook_event as event', (join) =>
      join.onRef('event.account_id', '=', 'delivery.account_id').onRef('event.id', '=', 'delivery.event_id'),
    )
    .select([
      'event.id',
      'delivery.number',
      'event.type',
      'event.resource_type as resourceType',
      'event.resource_id as resourceId',
      'delivery.state',
      'delivery.attempts',
      'delivery.created_at as createdAt',
      'delivery.attempted_at as attemptedAt',
      sql<Date | null>`case when delivery.is_behind then null else delivery.next_attempt_at end`.as('nextAttemptAt'),
      'delivery.response_status as responseStatus',
      'delivery.error',
    ])
    .where('delivery.account_id', '=', accountId)
    .where('delivery.webhook_id', '=', webhookId)

/** Newest first, below the number when it is given. */
export const listDeliveries = (
  queries: Queries,
  webhook: OfWebhook,
  page: { readonly before?: number | undefined; readonly limit: number },
): Promise<readonly WebhookDelivery[]> =>
  deliveries(queries, webhook)
    .$if(page.before !== undefined, (query) => query.where('delivery.number', '<', page.before ?? 0))
    .orderBy('delivery.number', 'desc')
    .limit(page.limit)
    .execute()

export const findDelivery = (
  queries: Queries,
  webhook: OfWebhook,
  eventId: string,
): Promise<WebhookDelivery | undefined> =>
  deliveries(queries, webhook).where('delivery.event_id', '=', eventId).executeTakeFirst()

/** Events of the type that wait for the webhook. */
export async function countWaitingOf(queries: Queries, webhook: OfWebhook, type: string): Promise<number> {
  const waiting = deliveries(queries, webhook).where('event.type', '=', type).where('delivery.state', '=', 'pending')
  return (await waiting.execute()).length
}

/** Queues a delivery that has ended again; one that waits is attempted at once. */
export async function queueAgain(
  tx: Transaction<Tables>,
  { accountId, webhookId }: OfWebhook,
  eventId: string,
  now: Date,
): Promise<void> {
  const delivery = { account_id: accountId, webhook_id: webhookId, event_id: eventId }
  await updateWhere(tx, 'webhook_delivery', delivery)
    .set({ state: 'pending', failures: 0, next_attempt_at: now, is_behind: false, ended_at: null })
    .where((where) => where.or([where('leased_until', 'is', null), where('leased_until', '<=', now)]))
    .execute()
}

/** By the id of the webhook; those for which nothing waits are not in it. */
export async function countPending(queries: Queries, accountId: string): Promise<ReadonlyMap<string, number>> {
  const rows = await selectWhere(queries, 'webhook_delivery', { account_id: accountId, state: 'pending' })
    .select((columns) => ['webhook_id', columns.fn.countAll<number>().as('count')])
    .groupBy('webhook_id')
    .execute()
  return new Map(rows.map(({ webhook_id, count }) => [webhook_id, Number(count)]))
}

/** Removes deliveries that have ended and are old, or more than the log has room for, with events that none needs. What
 *  waits for a webhook that nothing was sent to for that long is given up, and what waited behind it is due. Reads what
 *  has ended since the time only: all that there is without one. */
export async function pruneDeliveries(
  queries: Queries,
  { now, since = new Date(0) }: { readonly now: Date; readonly since?: Date | undefined },
): Promise<void> {
  const old = new Date(now.getTime() - LOG_MILLISECONDS)
  await sql`update webhook_delivery delivery
    set state = 'failed', next_attempt_at = null, is_behind = false, ended_at = ${now},
      error = case when webhook.sealed_secret is null
        then 'the webhook has no secret' else 'the webhook was disabled or paused' end
    from webhook where webhook.account_id = delivery.account_id and webhook.id = delivery.webhook_id
      and (webhook.sealed_secret is null or not webhook.enabled or webhook.paused_at is not null)
      and delivery.state = 'pending'
      and delivery.created_at < ${old} and (delivery.leased_until is null or delivery.leased_until <= ${now})`.execute(
    queries,
  )
  await wakeAll(queries, now)
  await forgetEnded(
    queries,
    sql`delete from webhook_delivery old where old.state <> 'pending' and old.ended_at < ${old}`,
  )
  await forgetEnded(
    queries,
    sql`delete from webhook_delivery old using (
        select distinct account_id, webhook_id from webhook_delivery where state <> 'pending' and ended_at > ${since}
      ) fresh cross join lateral (
        select account_id, webhook_id, event_id from webhook_delivery ended
        where ended.account_id = fresh.account_id and ended.webhook_id = fresh.webhook_id and ended.state <> 'pending'
        order by ended.ended_at desc, ended.number desc offset ${LOG_DELIVERIES_MAXIMUM}) surplus
      where old.account_id = surplus.account_id and old.webhook_id = surplus.webhook_id
        and old.event_id = surplus.event_id and old.state <> 'pending'`,
  )
}

/** Removes deliveries, and their events where those were the last ones: the statement's own snapshot still has them. */
async function forgetEnded(queries: Queries, deletion: RawBuilder<unknown>): Promise<void> {
  await sql`with forgotten as (${deletion} returning old.account_id, old.webhook_id, old.event_id)
    delete from webhook_event event using forgotten
    where event.account_id = forgotten.account_id and event.id = forgotten.event_id and not exists (
      select 1 from webhook_delivery other where other.account_id = event.account_id and other.event_id = event.id
        and not exists (select 1 from forgotten own where own.account_id = other.account_id
          and own.webhook_id = other.webhook_id and own.event_id = other.event_id))`.execute(queries)
}

/** Removes events that no delivery needs: those of removed webhooks. Reads all of the account, or of all accounts. */
export async function pruneEvents(queries: Queries, accountId?: string): Promise<void> {
  const account = accountId === undefined ? sql`` : sql`event.account_id = ${accountId} and`
  await sql`delete from webhook_event event where ${account} not exists (select 1 from webhook_delivery delivery
    where delivery.account_id = event.account_id and delivery.event_id = event.id)`.execute(queries)
}

export interface DeliveryCounts {
  readonly pending: number
  /** Of the delivery that has been due for the longest time. */
  readonly lateSeconds: number
  readonly paused: number
}

/** Over all accounts, for metrics. Deliveries to webhooks that nothing is sent to now are not late. */
export async function countDeliveries(queries: Queries, now: Date): Promise<DeliveryCounts> {
  const { rows } = await sql<{ pending: number; oldest: Date | null; paused: number }>`select
      (select count(*)::int from webhook_delivery where state = 'pending') as pending,
      (select min(delivery.next_attempt_at) from webhook_delivery delivery
        join webhook on webhook.account_id = delivery.account_id and webhook.id = delivery.webhook_id
        where delivery.state = 'pending' and webhook.enabled and webhook.paused_at is null
          and webhook.sealed_secret is not null and not delivery.is_behind
          and delivery.failures = 0 and delivery.attempts = 0 and delivery.next_attempt_at <= ${now}) as oldest,
      (select count(*)::int from webhook where paused_at is not null) as paused`.execute(queries)
  const [{ pending, oldest, paused } = { pending: 0, oldest: null, paused: 0 }] = rows
  return { pending, lateSeconds: oldest === null ? 0 : (now.getTime() - oldest.getTime()) / 1_000, paused }
}
