/** What custom images hold of the quota of their account. */
import type { Transaction } from 'kysely'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../open.ts'
import type { Tables } from '../tables.ts'

export interface CustomImageId {
  readonly accountId: string
  readonly imageId: string
}

const holderOf = (imageId: string): `custom_image/${string}` => `custom_image/${imageId}`

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
