/** Webhooks of accounts: their rows and secrets. Events and deliveries are in the files beside it. An account with a
 *  webhook has a row in `webhook_account`: only then its events are looked for. */
import { type Selectable, sql, type Transaction } from 'kysely'
import { SECRET_OVERLAP_MILLISECONDS } from '../../domain/webhook/signature.ts'
import type { Sealing } from '../../kit/sys/sealing.ts'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import { openChain } from '../audit/index.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

export * from './deliveries.ts'
export * from './events.ts'

export interface WebhookId {
  readonly accountId: string
  readonly webhookId: string
}

export interface WebhookFields {
  readonly name: string
  readonly url: string
  readonly events: readonly string[]
  readonly enabled: boolean
}

export interface WebhookRow extends WebhookFields {
  readonly id: string
  readonly createdAt: Date
  readonly failingSince: Date | null
  readonly pausedAt: Date | null
  readonly pauseReason: string | null
  readonly deliveredAt: Date | null
  readonly removedAt: Date | null
}

const holderOf = (webhookId: string): `webhook/${string}` => `webhook/${webhookId}`
const keyOf = ({ accountId, webhookId }: WebhookId) => ({ account_id: accountId, id: webhookId })

const toWebhook = (row: Selectable<Tables['webhook']>): WebhookRow => ({
  id: row.id,
  name: row.name,
  url: row.url,
  events: row.events,
  enabled: row.enabled,
  createdAt: row.created_at,
  failingSince: row.failing_since,
  pausedAt: row.paused_at,
  pauseReason: row.pause_reason,
  deliveredAt: row.delivered_at,
  removedAt: row.removed_at,
})

/** Creates the webhook, once: an existing one stays as it is. Its events are those from now on. Throws the Problem
 *  `quota_exceeded` (422). */
export async function addWebhook(
  tx: Transaction<Tables>,
  id: WebhookId,
  { name, url, events, enabled, createdAt }: WebhookFields & { readonly createdAt: Date },
): Promise<void> {
  const { accountId, webhookId } = id
  await takeQuotas(tx, { accountId, holder: holderOf(webhookId), amounts: { webhooks: 1 } })
  await openChain(tx, accountId)
  // The lock of the chain's head comes after that of the quota, as everywhere.
  const { sequence } = await selectWhere(tx, 'audit_head', { account_id: accountId })
    .select('sequence')
    .executeTakeFirstOrThrow()
  await tx
    .insertInto('webhook_account')
    .values({ account_id: accountId, audit_sequence: sequence, standing: null, created_at: createdAt })
    // It stays as it is, and locked: whoever removes it with the last webhook has seen this one, or has finished.
    .onConflict((conflict) =>
      conflict.column('account_id').doUpdateSet(({ ref }) => ({ standing: ref('webhook_account.standing') })),
    )
    .execute()
  await tx
    .insertInto('webhook')
    .values({
      ...keyOf(id),
      name,
      url,
      events,
      enabled,
      created_at: createdAt,
      sealed_secret: null,
      sealed_previous_secret: null,
      pause_reason: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Sets the fields, and resumes the webhook if one of them changes. Does nothing when it does not exist. */
export async function changeWebhook(tx: Transaction<Tables>, id: WebhookId, fields: WebhookFields): Promise<void> {
  const { name, url, events, enabled } = fields
  await updateWhere(tx, 'webhook', keyOf(id))
    .set({ name, url, events, enabled, paused_at: null, pause_reason: null, failing_since: null })
    .where((where) =>
      where.or([
        where('name', '<>', name),
        where('url', '<>', url),
        sql<boolean>`events <> ${[...events]}::text[]`,
        where('enabled', '<>', enabled),
      ]),
    )
    .execute()
}

/** Ends deliveries and takes the webhook out of lists, until `showWebhook`. Does nothing when it does not exist. */
export async function hideWebhook(tx: Transaction<Tables>, id: WebhookId, now: Date): Promise<void> {
  await updateWhere(tx, 'webhook', keyOf(id)).set({ removed_at: now }).execute()
}

export async function showWebhook(tx: Transaction<Tables>, id: WebhookId): Promise<void> {
  await updateWhere(tx, 'webhook', keyOf(id)).set({ removed_at: null }).execute()
}

/** Deletes the webhook with its deliveries. Does nothing when it does not exist. */
export async function removeWebhook(tx: Transaction<Tables>, id: WebhookId): Promise<void> {
  const { accountId, webhookId } = id
  await releaseQuotas(tx, { accountId, holder: holderOf(webhookId) })
  await deleteWhere(tx, 'webhook', keyOf(id)).execute()
}

/** Undefined for unknown ids and those of another account. */
export async function findWebhook(queries: Queries, id: WebhookId): Promise<WebhookRow | undefined> {
  const row = await selectWhere(queries, 'webhook', keyOf(id)).selectAll().executeTakeFirst()
  return row && toWebhook(row)
}

/** As `findWebhook`, without one whose deletion was accepted. */
export async function findListedWebhook(queries: Queries, id: WebhookId): Promise<WebhookRow | undefined> {
  const webhook = await findWebhook(queries, id)
  return webhook?.removedAt === null ? webhook : undefined
}

/** Newest first, after the given position. */
export async function listWebhookRows(
  queries: Queries,
  accountId: string,
  after: ListPlace | undefined,
  limit: number,
): Promise<readonly WebhookRow[]> {
  const rows = selectWhere(queries, 'webhook', { account_id: accountId }).selectAll().where('removed_at', 'is', null)
  return (await newestFirst(rows, after, limit).execute()).map(toWebhook)
}

/** Text to which a sealed secret is bound. */
const ownerOf = ({ accountId, webhookId }: WebhookId): string => `webhook/${accountId}/${webhookId}`

/** Gives a webhook that has no secret the given one. Answers whether it is the webhook's now. */
export async function giveSecret(queries: Queries, sealing: Sealing, id: WebhookId, secret: string): Promise<boolean> {
  const result = await updateWhere(queries, 'webhook', keyOf(id))
    .set({ sealed_secret: sealing.seal(secret, ownerOf(id)) })
    .where('sealed_secret', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Webhooks of all accounts without a secret. */
export async function listWithoutSecret(queries: Queries, limit: number): Promise<readonly WebhookId[]> {
  const rows = await queries
    .selectFrom('webhook')
    .select(['account_id as accountId', 'id as webhookId'])
    .where('sealed_secret', 'is', null)
    .limit(limit)
    .execute()
  return rows
}

/** Replaces the secret; the previous one stays valid beside it for a while, and the one before ends at once. Answers
 *  until when the previous one is valid, null where there was none; undefined when there is no such webhook. */
export async function rotateSecret(
  tx: Transaction<Tables>,
  sealing: Sealing,
  id: WebhookId,
  { secret, now }: { readonly secret: string; readonly now: Date },
): Promise<Date | null | undefined> {
  const before = await selectWhere(tx, 'webhook', keyOf(id)).select('sealed_secret').forUpdate().executeTakeFirst()
  if (before === undefined) return undefined
  const until = before.sealed_secret === null ? null : new Date(now.getTime() + SECRET_OVERLAP_MILLISECONDS)
  await updateWhere(tx, 'webhook', keyOf(id))
    .set({
      sealed_secret: sealing.seal(secret, ownerOf(id)),
      sealed_previous_secret: before.sealed_secret,
      previous_secret_until: until,
    })
    .execute()
  return until
}

/** The secrets that are valid at the instant, the newest first. */
export async function readSecrets(
  queries: Queries,
  sealing: Sealing,
  id: WebhookId,
  now: Date,
): Promise<readonly string[]> {
  const row = await selectWhere(queries, 'webhook', keyOf(id))
    .select(['sealed_secret', 'sealed_previous_secret', 'previous_secret_until'])
    .executeTakeFirst()
  const previous = (row?.previous_secret_until ?? now) > now ? row?.sealed_previous_secret : null
  return [row?.sealed_secret, previous].flatMap((sealed) => (sealed == null ? [] : [sealing.open(sealed, ownerOf(id))]))
}
