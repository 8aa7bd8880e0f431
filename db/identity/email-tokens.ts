/** Single-use secrets that were sent by mail: stored as SHA-256, for one purpose and one address. */
import type { Queries } from '../kit/open.ts'
import { hashSecret } from './sessions.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export type EmailTokenPurpose = 'verify_email' | 'reset_password'

export interface NewEmailToken {
  readonly secret: string
  readonly userId: string
  readonly purpose: EmailTokenPurpose
  readonly email: string
  readonly now: Date
  readonly expiresAt: Date
}

/** The secret itself is not stored. */
export async function createEmailToken(queries: Queries, token: NewEmailToken): Promise<void> {
  await queries
    .insertInto('email_token')
    .values({
      secret_hash: hashSecret(token.secret),
      user_id: token.userId,
      purpose: token.purpose,
      email: token.email,
      created_at: token.now,
      expires_at: token.expiresAt,
    })
    .execute()
}

/** The user and address of a valid token, without using it up. */
export async function findEmailToken(
  queries: Queries,
  secret: string,
  purpose: EmailTokenPurpose,
  now: Date,
): Promise<{ userId: string; email: string } | undefined> {
  const row = await selectWhere(queries, 'email_token', { secret_hash: hashSecret(secret), purpose })
    .select(['user_id', 'email'])
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return row && { userId: row.user_id, email: row.email }
}

/** Uses the token up. Returns its user and address, undefined when it is unknown, used or expired. At most one caller
 *  succeeds. */
export async function spendEmailToken(
  queries: Queries,
  secret: string,
  purpose: EmailTokenPurpose,
  now: Date,
): Promise<{ userId: string; email: string } | undefined> {
  const spent = await updateWhere(queries, 'email_token', { secret_hash: hashSecret(secret), purpose })
    .set({ used_at: now })
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returning(['user_id', 'email'])
    .executeTakeFirst()
  return spent && { userId: spent.user_id, email: spent.email }
}

/** Invalidates the user's other tokens of that purpose. */
export async function dropEmailTokens(queries: Queries, userId: string, purpose: EmailTokenPurpose): Promise<void> {
  await deleteWhere(queries, 'email_token', { user_id: userId, purpose }).execute()
}

/** Deletes expired ones, used or not. */
export async function forgetOldEmailTokens(queries: Queries, now: Date): Promise<void> {
  await queries.deleteFrom('email_token').where('expires_at', '<', now).execute()
}
