/** What people have set for the portal, as the text of a JSON object. */
import type { Transaction } from 'kysely'
import type { Queries } from '../kit/open.ts'
import { selectWhere } from '../kit/where.ts'
import type { Tables } from '../tables.ts'

export interface StoredPreferences {
  /** A JSON object. */
  readonly preferences: string
  /** Increases with every change, from 1. */
  readonly generation: number
  readonly updatedAt: Date
}

/** Undefined before the first change. */
export async function findPreferences(queries: Queries, userId: string): Promise<StoredPreferences | undefined> {
  const row = await selectWhere(queries, 'user_preference', { user_id: userId }).selectAll().executeTakeFirst()
  return row && { preferences: row.preferences, generation: row.generation, updatedAt: row.updated_at }
}

/** The person's row of users, locked until the transaction ends: their changes come one after the other. */
export const lockPreferences = async (tx: Transaction<Tables>, userId: string): Promise<void> =>
  void (await selectWhere(tx, 'app_user', { id: userId }).select('id').forNoKeyUpdate().execute())

export async function writePreferences(
  tx: Transaction<Tables>,
  userId: string,
  { preferences, generation, updatedAt: updated_at }: StoredPreferences,
): Promise<void> {
  const values = { preferences, generation, updated_at }
  await tx
    .insertInto('user_preference')
    .values({ user_id: userId, ...values })
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(values))
    .execute()
}
