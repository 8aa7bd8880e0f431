/** Authenticators and recovery codes. A code is accepted once, by a conditional update. */
import type { Transaction } from 'kysely'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface SecondFactor {
  readonly sealedSecret: string
  /** Null until the first code. */
  readonly enabledAt: Date | null
  readonly expiresAt: Date | null
  readonly lastStep: number | null
}

/** The person's authenticator; undefined without one, and for a setup that expired. */
export async function findSecondFactor(queries: Queries, userId: string, now: Date): Promise<SecondFactor | undefined> {
  const row = await selectWhere(queries, 'second_factor', { user_id: userId }).selectAll().executeTakeFirst()
  if (row === undefined || (row.enabled_at === null && row.expires_at !== null && row.expires_at <= now))
    return undefined
  return {
    sealedSecret: row.sealed_secret,
    enabledAt: row.enabled_at,
    expiresAt: row.expires_at,
    lastStep: row.last_step,
  }
}

/** Starts a setup in place of an earlier unconfirmed one. False when an authenticator is enabled. */
export async function startSetup(
  queries: Queries,
  setup: { readonly userId: string; readonly sealedSecret: string; readonly now: Date; readonly expiresAt: Date },
): Promise<boolean> {
  const values = {
    sealed_secret: setup.sealedSecret,
    created_at: setup.now,
    expires_at: setup.expiresAt,
    last_step: null,
  }
  const written = await queries
    .insertInto('second_factor')
    .values({ user_id: setup.userId, ...values })
    .onConflict((conflict) =>
      conflict.column('user_id').doUpdateSet(values).where('second_factor.enabled_at', 'is', null),
    )
    .executeTakeFirst()
  return written.numInsertedOrUpdatedRows === 1n
}

/** Confirms the pending setup with the time step of its first code. False when another request did, or replaced the
 *  secret. */
export async function enableSecondFactor(
  queries: Queries,
  enabling: { readonly userId: string; readonly sealedSecret: string; readonly step: number; readonly now: Date },
): Promise<boolean> {
  const updated = await updateWhere(queries, 'second_factor', {
    user_id: enabling.userId,
    sealed_secret: enabling.sealedSecret,
  })
    .set({ enabled_at: enabling.now, expires_at: null, last_step: enabling.step })
    .where('enabled_at', 'is', null)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** Uses a time step up. Returns false when it or a later one was used before. */
export async function spendStep(queries: Queries, userId: string, step: number): Promise<boolean> {
  const updated = await updateWhere(queries, 'second_factor', { user_id: userId })
    .set({ last_step: step })
    .where('enabled_at', 'is not', null)
    .where((where) => where.or([where('last_step', 'is', null), where('last_step', '<', step)]))
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** Encrypts the secret with another key, unless it was replaced meanwhile. */
export async function resealSecret(queries: Queries, userId: string, before: string, after: string): Promise<void> {
  await updateWhere(queries, 'second_factor', { user_id: userId, sealed_secret: before })
    .set({ sealed_secret: after })
    .execute()
}

/** Removes the authenticator and every recovery code. */
export async function removeSecondFactor(tx: Transaction<Tables>, userId: string): Promise<void> {
  await deleteWhere(tx, 'second_factor', { user_id: userId }).execute()
  await deleteWhere(tx, 'recovery_code', { user_id: userId }).execute()
  await updateWhere(tx, 'session', { user_id: userId }).set({ has_second_factor: false }).execute()
}

/** Replaces every recovery code of the person. */
export async function replaceRecoveryCodes(
  tx: Transaction<Tables>,
  userId: string,
  hashes: readonly Buffer[],
): Promise<void> {
  await deleteWhere(tx, 'recovery_code', { user_id: userId }).execute()
  await tx
    .insertInto('recovery_code')
    .values(hashes.map((code_hash) => ({ user_id: userId, code_hash })))
    .execute()
}

/** Uses a recovery code up. Returns true for a valid one. */
export async function spendRecoveryCode(queries: Queries, userId: string, hash: Buffer, now: Date): Promise<boolean> {
  const updated = await updateWhere(queries, 'recovery_code', { user_id: userId, code_hash: hash })
    .set({ used_at: now })
    .where('used_at', 'is', null)
    .executeTakeFirst()
  return updated.numUpdatedRows === 1n
}

/** How many are left to use. */
export async function countRecoveryCodes(queries: Queries, userId: string): Promise<number> {
  const counted = await selectWhere(queries, 'recovery_code', { user_id: userId })
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('used_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(counted.count)
}

/** Whether an account that the person belongs to requires a second factor of every member. */
export async function isSecondFactorRequired(queries: Queries, userId: string): Promise<boolean> {
  const row = await queries
    .selectFrom('membership')
    .innerJoin('account', 'account.id', 'membership.account_id')
    .select('account.id')
    .where('membership.user_id', '=', userId)
    .where('account.requires_second_factor', '=', true)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
