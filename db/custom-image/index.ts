/** What custom images hold of the quota of their account. */
import { sql, type Transaction } from 'kysely'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../open.ts'
import type { Tables } from '../tables.ts'

export interface CustomImageId {
  readonly accountId: string
  readonly imageId: string
}

const holderOf = (imageId: string): string => `custom_image/${imageId}`

/** Idempotent. Throws the Problem `quota_exceeded` (422). */
export const claimCustomImage = (tx: Transaction<Tables>, { accountId, imageId }: CustomImageId): Promise<void> =>
  takeQuotas(tx, { accountId, holder: holderOf(imageId), amounts: { custom_images: 1 } })

/** Idempotent. */
export const releaseCustomImage = (tx: Transaction<Tables>, { accountId, imageId }: CustomImageId): Promise<void> =>
  releaseQuotas(tx, { accountId, holder: holderOf(imageId) })

export async function hasCustomImageClaim(db: Queries, { accountId, imageId }: CustomImageId): Promise<boolean> {
  const row = await db
    .selectFrom('quota_holding')
    .select('amount')
    .where('account_id', '=', accountId)
    .where('holder', '=', holderOf(imageId))
    .executeTakeFirst()
  return row !== undefined
}

/** Custom images that hold a part of a quota, but for those that are just being asked for: their claim is older than
 *  their object, and no older than the intent of it. */
export async function listCustomImagesWithClaims(db: Queries): Promise<readonly CustomImageId[]> {
  const prefix = holderOf('')
  const imageId = sql<string>`substr(holder, ${prefix.length + 1})`
  const rows = await db
    .selectFrom('quota_holding')
    .select(['account_id', imageId.as('image_id')])
    .where(sql<boolean>`starts_with(holder, ${prefix})`)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('change_intent')
            .select('operation_id')
            .whereRef('change_intent.account_id', '=', 'quota_holding.account_id')
            .where('resource_id', '=', imageId),
        ),
      ),
    )
    .execute()
  return rows.map((row) => ({ accountId: row.account_id, imageId: row.image_id }))
}
