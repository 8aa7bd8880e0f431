/** Identities at external providers. */
import type { Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'
import { camelRow } from '../kit/row.ts'

export interface LinkedIdentityRow {
  readonly id: string
  readonly userId: string
  readonly issuer: string
  readonly subject: string
  /** The name under which the deployment configures the provider. */
  readonly provider: string
  readonly linkedAt: Date
  readonly lastLoginAt: Date | null
}

/** The user of the identity; undefined when there is none. */
export async function findIdentity(
  queries: Queries,
  issuer: string,
  subject: string,
): Promise<LinkedIdentityRow | undefined> {
  const row = await selectWhere(queries, 'linked_identity', { issuer, subject }).selectAll().executeTakeFirst()
  return row && camelRow(row)
}

/** False when the identity was linked meanwhile. */
export async function linkIdentity(
  queries: Queries,
  link: {
    readonly id: string
    readonly userId: string
    readonly issuer: string
    readonly subject: string
    readonly provider: string
    readonly now: Date
  },
): Promise<boolean> {
  const added = await queries
    .insertInto('linked_identity')
    .values({
      id: link.id,
      user_id: link.userId,
      issuer: link.issuer,
      subject: link.subject,
      provider: link.provider,
      linked_at: link.now,
      last_login_at: link.now,
    })
    .onConflict((conflict) => conflict.columns(['issuer', 'subject']).doNothing())
    .executeTakeFirst()
  return added.numInsertedOrUpdatedRows === 1n
}

/** Records the time of the last sign-in. */
export async function markIdentityUsed(queries: Queries, id: string, now: Date): Promise<void> {
  await updateWhere(queries, 'linked_identity', { id }).set({ last_login_at: now }).execute()
}

/** Oldest link first. */
export async function listIdentities(queries: Queries, userId: string): Promise<LinkedIdentityRow[]> {
  const rows = await selectWhere(queries, 'linked_identity', { user_id: userId })
    .selectAll()
    .orderBy('linked_at')
    .orderBy('id')
    .execute()
  return rows.map(camelRow)
}

/** False when the person has no such identity. */
export async function unlinkIdentity(queries: Queries, userId: string, id: string): Promise<boolean> {
  return (
    (await deleteWhere(queries, 'linked_identity', { user_id: userId, id }).executeTakeFirst()).numDeletedRows === 1n
  )
}
