/** Events of accounts that have webhooks, and the deliveries that they become. Whoever finds events locks the account's
 *  row first, so that every event becomes its deliveries in the transaction that notes that it was found: none is
 *  missed, and none found twice. */
import { sql, type Transaction } from 'kysely'
import type { AuditEntry } from '../../domain/audit/chain.ts'
import type { FinishedOperation } from '../../domain/operations.ts'
import { PENDING_MAXIMUM, selects, TEST_EVENT } from '../../domain/webhook/rules.ts'
import { exportAudit } from '../audit/index.ts'
import { chunksOf } from '../kit/chunks.ts'
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

export interface WebhookEvent {
  readonly id: string
  readonly type: string
  /** Undefined for an event that is about no resource, and waits for no other. */
  readonly resource?: { readonly type: string; readonly id: string } | undefined
  /** What is sent. */
  readonly body: string
}

/** Accounts with webhooks whose audit log or operations have something that was not read yet. */
export async function listAccountsWithNews(queries: Queries, limit: number): Promise<readonly string[]> {
  const { rows } = await sql<{ account_id: string }>`select account_id from webhook_account reader
    where exists (select 1 from audit_head head
        where head.account_id = reader.account_id and head.sequence > reader.audit_sequence)
      or exists (select 1 from webhook_ended_operation ended where ended.account_id = reader.account_id)
    limit ${limit}`.execute(queries)
  return rows.map(({ account_id }) => account_id)
}

/** Accounts that have a webhook. */
export async function listAccountsWithWebhooks(queries: Queries): Promise<readonly string[]> {
  const rows = await queries.selectFrom('webhook_account').select('account_id').execute()
  return rows.map(({ account_id }) => account_id)
}

/** How far an account was read. */
export interface EventReading {
  readonly auditSequence: number
  readonly standing: string | null
  /** Whether the states of its resources were noted before. */
  readonly hasStates: boolean
  /** When the account got its first webhook. */
  readonly createdAt: Date
}

/** Locks the account's reading until the transaction ends. Undefined when the account has no webhook. */
export async function lockEvents(tx: Transaction<Tables>, accountId: string): Promise<EventReading | undefined> {
  const row = await selectWhere(tx, 'webhook_account', { account_id: accountId })
    .select(['audit_sequence as auditSequence', 'standing', 'has_states as hasStates', 'created_at as createdAt'])
    .forUpdate()
    .executeTakeFirst()
  if (row === undefined) return undefined
  const webhook = await selectWhere(tx, 'webhook', { account_id: accountId }).select('id').limit(1).executeTakeFirst()
  if (webhook !== undefined) return row
  // The last one was deleted: nobody waits for events.
  await deleteWhere(tx, 'webhook_state', { account_id: accountId }).execute()
  await deleteWhere(tx, 'webhook_ended_operation', { account_id: accountId }).execute()
  await deleteWhere(tx, 'webhook_account', { account_id: accountId }).execute()
  return undefined
}

/** The audit entries after the sequence that were committed, oldest first, and the last of their sequences. Entries
 *  that were pruned are skipped. */
export async function takeAuditEntries(
  tx: Transaction<Tables>,
  accountId: string,
  after: number,
  limit: number,
): Promise<readonly AuditEntry[]> {
  const entries = await exportAudit(tx, accountId, { after, limit })
  const last = entries.at(-1)?.sequence
  const head = await selectWhere(tx, 'audit_head', { account_id: accountId })
    .select('pruned_through_sequence')
    .executeTakeFirst()
  const through = last ?? Math.max(after, head?.pruned_through_sequence ?? 0)
  await updateWhere(tx, 'webhook_account', { account_id: accountId }).set({ audit_sequence: through }).execute()
  return entries
}

/** Operations that have ended and were not read yet, in the order of their ends. */
export async function takeEndedOperations(
  tx: Transaction<Tables>,
  accountId: string,
  limit: number,
): Promise<readonly FinishedOperation[]> {
  const ended = await selectWhere(tx, 'webhook_ended_operation', { account_id: accountId })
    .select(['number', 'operation_id'])
    .orderBy('number')
    .limit(limit)
    .execute()
  if (ended.length === 0) return []
  const ids = ended.map(({ operation_id }) => operation_id)
  const rows = await tx.selectFrom('operation_history').select(['id', 'body']).where('id', 'in', ids).execute()
  const byId = new Map(rows.map(({ id, body }) => [id, body as FinishedOperation])) // written by recordOperation only
  await deleteWhere(tx, 'webhook_ended_operation', { account_id: accountId })
    // Those that were read: one with a lower number may have been committed since.
    .where(
      'number',
      'in',
      ended.map(({ number }) => number),
    )
    .execute()
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Notes the account's standing. */
export async function noteStanding(tx: Transaction<Tables>, accountId: string, standing: string): Promise<void> {
  await updateWhere(tx, 'webhook_account', { account_id: accountId }).set({ standing }).execute()
}

export interface ResourceState {
  readonly type: string
  readonly id: string
  readonly state: string
}

/** The states of the account's resources that were found last. */
export async function listStates(tx: Transaction<Tables>, accountId: string): Promise<readonly ResourceState[]> {
  return await selectWhere(tx, 'webhook_state', { account_id: accountId })
    .select(['resource_type as type', 'resource_id as id', 'state'])
    .execute()
}

/** Notes the states; those of resources that do not exist any longer are forgotten. */
export async function noteStates(
  tx: Transaction<Tables>,
  accountId: string,
  {
    set,
    deletions,
    isFirst,
  }: {
    readonly set: readonly ResourceState[]
    readonly deletions: readonly ResourceState[]
    readonly isFirst: boolean
  },
): Promise<void> {
  if (isFirst) await updateWhere(tx, 'webhook_account', { account_id: accountId }).set({ has_states: true }).execute()
  const rows = set.map(({ type, id, state }) => ({
    account_id: accountId,
    resource_type: type,
    resource_id: id,
    state,
  }))
  for (const part of chunksOf(rows))
    await tx
      .insertInto('webhook_state')
      .values(part)
      .onConflict((conflict) =>
        conflict
          .columns(['account_id', 'resource_type', 'resource_id'])
          .doUpdateSet(({ ref }) => ({ state: ref('excluded.state') })),
      )
      .execute()
  for (const { type, id } of deletions)
    await deleteWhere(tx, 'webhook_state', { account_id: accountId, resource_type: type, resource_id: id }).execute()
}

/** Stores the events and their deliveries to the webhooks that select them; what was stored before stays. The account's
 *  reading is locked. */
export async function addEvents(
  tx: Transaction<Tables>,
  accountId: string,
  events: readonly WebhookEvent[],
  now: Date,
): Promise<void> {
  const webhooks = await selectWhere(tx, 'webhook', { account_id: accountId, enabled: true })
    .select(['id', 'events'])
    .where('paused_at', 'is', null)
    // before its deliveries, as its removal locks them
    .forKeyShare()
    .execute()
  const counted = await selectWhere(tx, 'webhook_delivery', { account_id: accountId, state: 'pending' })
    .select((columns) => ['webhook_id', columns.fn.countAll<number>().as('count')])
    .groupBy('webhook_id')
    .execute()
  const pending = new Map(counted.map(({ webhook_id, count }) => [webhook_id, Number(count)]))
  const selected = events.filter(({ type }) =>
    webhooks.some(({ events: patterns }) => patterns.some((one) => selects(one, type))),
  )
  const numbers = await storeEvents(tx, accountId, selected)
  for (const { id: webhookId, events: patterns } of webhooks) {
    const room = PENDING_MAXIMUM - (pending.get(webhookId) ?? 0)
    const own = selected.filter(({ id, type }) => numbers.has(id) && patterns.some((one) => selects(one, type)))
    const ahead = await lockAhead(tx, { accountId, webhookId }, own.map(resourceOf))
    const rows = own.map((event, index) => {
      const resource = resourceOf(event)
      const isBehind = ahead.has(resource)
      if (resource !== '') ahead.add(resource)
      return {
        ...deliveryOf(accountId, webhookId, event, numbers.get(event.id) ?? 0, now),
        is_behind: isBehind,
        ...(index < room
          ? {}
          : {
              state: 'failed' as const,
              next_attempt_at: null,
              is_behind: false,
              ended_at: now,
              error: 'too many events wait',
            }),
      }
    })
    for (const part of chunksOf(rows)) await tx.insertInto('webhook_delivery').values(part).execute()
  }
}

/** Those of the resources of which a delivery waits. It cannot end before the transaction: then it finds what waits
 *  behind it. */
async function lockAhead(
  tx: Transaction<Tables>,
  { accountId, webhookId }: { readonly accountId: string; readonly webhookId: string },
  resources: readonly string[],
): Promise<Set<string>> {
  const waiting = { account_id: accountId, webhook_id: webhookId, state: 'pending' } as const
  const rows = await selectWhere(tx, 'webhook_delivery', waiting)
    .select('resource')
    .where('resource', '<>', '')
    .where(sql<boolean>`resource = any(${[...new Set(resources)]}::text[])`)
    .where('next_attempt_at', 'is not', null)
    .where('is_behind', '=', false)
    .forShare()
    .execute()
  return new Set(rows.map(({ resource }) => resource))
}

/** Stores an event for one webhook, whatever it selects: a test. */
export async function addEventFor(
  tx: Transaction<Tables>,
  { accountId, webhookId }: { readonly accountId: string; readonly webhookId: string },
  event: WebhookEvent,
  now: Date,
): Promise<void> {
  const number = (await storeEvents(tx, accountId, [event])).get(event.id)
  if (number === undefined) return
  await tx
    .insertInto('webhook_delivery')
    .values(deliveryOf(accountId, webhookId, event, number, now))
    .execute()
}

/** Stores them in their order. Answers the numbers of those that were not stored before, by id. */
async function storeEvents(
  tx: Transaction<Tables>,
  accountId: string,
  events: readonly WebhookEvent[],
): Promise<ReadonlyMap<string, number>> {
  const numbers = new Map<string, number>()
  const rows = events.map(({ id, type, resource, body }) => ({
    account_id: accountId,
    id,
    type,
    resource_type: resource?.type ?? null,
    resource_id: resource?.id ?? null,
    body,
  }))
  for (const part of chunksOf(rows)) {
    const stored = await tx
      .insertInto('webhook_event')
      .values(part)
      .onConflict((conflict) => conflict.doNothing())
      .returning(['id', 'number'])
      .execute()
    for (const { id, number } of stored) numbers.set(id, number)
  }
  return numbers
}

const resourceOf = ({ resource }: WebhookEvent): string =>
  resource === undefined ? '' : `${resource.type}/${resource.id}`

const deliveryOf = (accountId: string, webhookId: string, event: WebhookEvent, number: number, at: Date) => ({
  account_id: accountId,
  webhook_id: webhookId,
  event_id: event.id,
  number,
  resource: resourceOf(event),
  state: 'pending' as const,
  created_at: at,
  next_attempt_at: at,
  is_test: event.type === TEST_EVENT,
  response_status: null,
  error: null,
})
