/** Accounts for tests that need one and no sign-up. */
import { openQuotas } from '../db/account/index.ts'
import type { Kysely } from 'kysely'
import type { Database } from '../db/kit/open.ts'
import type { Tables } from '../db/tables.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'

export async function createAccount(db: Database): Promise<string> {
  const id = newUuid(systemRandom)
  await db.transaction().execute(async (tx) => {
    await tx
      .insertInto('account')
      .values({ id, name: 'Test', created_at: new Date('2026-01-01T00:00:00Z') })
      .execute()
    await openQuotas(tx, id)
  })
  return id
}

/** Sets the limit of the quotas: of one account or of all, of the named quota or of all. */
export async function setQuotas(
  db: Kysely<Tables>,
  limit: number,
  of: { readonly accountId?: string; readonly name?: string } = {},
): Promise<void> {
  let change = db.updateTable('account_quota').set({ limit })
  if (of.accountId !== undefined) change = change.where('account_id', '=', of.accountId)
  if (of.name !== undefined) change = change.where('name', '=', of.name)
  await change.execute()
}

/** A verified owner and a credit: the account may make what costs. */
export async function giveStanding(db: Database, accountId: string): Promise<void> {
  const userId = newUuid(systemRandom)
  const at = new Date('2026-01-01T00:00:00Z')
  await db
    .insertInto('app_user')
    .values({
      id: userId,
      email: `${userId}@example.com`,
      name: null,
      password_hash: null,
      email_verified_at: at,
      own_account_id: accountId,
      active_account_id: accountId,
      created_at: at,
    })
    .execute()
  await db
    .insertInto('membership')
    .values({ account_id: accountId, user_id: userId, role: 'owner', joined_at: at })
    .execute()
  const credit = { label: 'Welcome', source: 'staff', amount_cents: 1_000, created_at: at } as const
  await db
    .insertInto('credit')
    .values({ id: newUuid(systemRandom), account_id: accountId, ...credit })
    .execute()
}
