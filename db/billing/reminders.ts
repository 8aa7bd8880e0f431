/** Payment methods and credits that expire soon. */
import type { Queries } from '../kit/open.ts'

interface Window {
  readonly after: Date
  readonly before: Date
}

/** Which of the mails are queued or were sent. */
export async function findQueued(queries: Queries, ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const rows = await queries.selectFrom('email_outbox').select('id').where('id', 'in', ids).execute()
  return new Set(rows.map(({ id }) => id))
}

/** Default payment methods that expire within the window, by account. */
export async function listEndingMethods(
  queries: Queries,
  { after, before }: Window,
  place: string | undefined,
  limit: number,
): Promise<readonly { readonly accountId: string; readonly methodId: string; readonly expiresAt: Date }[]> {
  const rows = await queries
    .selectFrom('payment_customer')
    .select(['account_id', 'default_method_id', 'default_method_expires_at'])
    .where('default_method_expires_at', '>', after)
    .where('default_method_expires_at', '<=', before)
    .$if(place !== undefined, (query) => query.where('account_id', '>', place ?? ''))
    .orderBy('account_id')
    .limit(limit)
    .execute()
  return rows.flatMap((row) =>
    row.default_method_id === null || row.default_method_expires_at === null
      ? []
      : [
          {
            accountId: row.account_id,
            methodId: row.default_method_id,
            expiresAt: row.default_method_expires_at,
          },
        ],
  )
}

/** Live credits that expire within the window, by id. */
export async function listEndingCredits(
  queries: Queries,
  { after, before }: Window,
  place: string | undefined,
  limit: number,
): Promise<
  readonly {
    readonly id: string
    readonly accountId: string
    readonly label: string
    readonly leftCents: number
    readonly expiresAt: Date
  }[]
> {
  const rows = await queries
    .selectFrom('credit')
    .select(['id', 'account_id', 'label', 'amount_cents', 'spent_cents', 'expires_at'])
    .where('revoked_at', 'is', null)
    .whereRef('spent_cents', '<', 'amount_cents')
    .where('expires_at', '>', after)
    .where('expires_at', '<=', before)
    .$if(place !== undefined, (query) => query.where('id', '>', place ?? ''))
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.flatMap((row) =>
    row.expires_at === null
      ? []
      : [
          {
            id: row.id,
            accountId: row.account_id,
            label: row.label,
            leftCents: row.amount_cents - row.spent_cents,
            expiresAt: row.expires_at,
          },
        ],
  )
}
