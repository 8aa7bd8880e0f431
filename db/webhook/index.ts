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
import { pruneEvents } from './deliveries.ts'
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
  /** Without one nothing is sent. */
  readonly hasSecret: boolean
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
  hasSecret: row.sealed_secret !== null,
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

/** Sets the fields. If one of them changes, the webhook is resumed, and what waits is attempted anew and at once. Does
 *  nothing when it does not exist. */
export async function changeWebhook(tx: Transaction<Tables>, id: WebhookId, fields: WebhookFields): Promise<void> {
  const { name, url, events, enabled } = fields
  const changed = await updateWhere(tx, 'webhook', keyOf(id))
    .set({ name, url, events, enabled, paused_at: null, pause_reason: null, failing_since: null })
    .where((where) =>
      where.or([
        where('name', '<>', name),
        where('url', '<>', url),
        sql<boolean>`events <> ${[...events]}::text[]`,
        where('enabled', '<>', enabled),
      ]),
    )
    .executeTakeFirst()
  if (changed.numUpdatedRows === 0n) return
  // What is being claimed or recorded is skipped: who does that may wait for the row of the webhook.
  await sql`with waiting as (
      select account_id, webhook_id, event_id from webhook_delivery
      where account_id = ${id.accountId} and webhook_id = ${id.webhookId} and state = 'pending'
        and next_attempt_at is not null and not is_behind for update skip locked
    ) update webhook_delivery delivery set failures = 0, next_attempt_at = delivery.created_at from waiting
    where delivery.account_id = waiting.account_id and delivery.webhook_id = waiting.webhook_id
      and delivery.event_id = waiting.event_id`.execute(tx)
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
  await pruneEvents(tx, accountId)
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

/** The text that was sealed; undefined when this deployment cannot open it. */
function opened(sealing: Sealing, sealed: string, id: WebhookId): string | undefined {
  try {
    return sealing.open(sealed, ownerOf(id))
  } catch {
    return undefined // the key is missing, or the row was restored without it
  }
}

/** Replaces the secret; the previous one stays valid beside it for a while, and the one before ends at once. Answers
 *  until when the previous one is valid, null where there was none that can be opened; undefined when there is no such
 *  webhook. */
export async function rotateSecret(
  tx: Transaction<Tables>,
  sealing: Sealing,
  id: WebhookId,
  { secret, now }: { readonly secret: string; readonly now: Date },
): Promise<Date | null | undefined> {
  const before = await selectWhere(tx, 'webhook', keyOf(id)).select('sealed_secret').forUpdate().executeTakeFirst()
  if (before === undefined) return undefined
  const previous = before.sealed_secret
  const isValid = previous !== null && opened(sealing, previous, id) !== undefined
  const until = isValid ? new Date(now.getTime() + SECRET_OVERLAP_MILLISECONDS) : null
  await updateWhere(tx, 'webhook', keyOf(id))
    .set({
      sealed_secret: sealing.seal(secret, ownerOf(id)),
      sealed_previous_secret: isValid ? previous : null,
      previous_secret_until: until,
    })
    .execute()
  return until
}

/** The secrets that are valid at the instant, the newest first; none for a webhook that has none. Undefined when the
 *  newest cannot be opened; another one that cannot is left out. */
export async function readSecrets(
  queries: Queries,
  sealing: Sealing,
  id: WebhookId,
  now: Date,
): Promise<readonly string[] | undefined> {
  const row = await selectWhere(queries, 'webhook', keyOf(id))
    .select(['sealed_secret', 'sealed_previous_secret', 'previous_secret_until'])
    .executeTakeFirst()
  if (row?.sealed_secret == null) return []
  const secret = opened(sealing, row.sealed_secret, id)
  if (secret === undefined) return undefined
  const { sealed_previous_secret: sealedPrevious, previous_secret_until: until } = row
  const previous =
    sealedPrevious !== null && until !== null && until > now ? opened(sealing, sealedPrevious, id) : undefined
  return previous === undefined ? [secret] : [secret, previous]
}
