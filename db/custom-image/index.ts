/** The quota of the account that custom images hold. */
import type { Transaction } from 'kysely'
import { customImageQuota } from '../../domain/account/quota.ts'
import { changeQuotas, recordQuotas, releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from '../kit/where.ts'

export interface CustomImageId {
  readonly accountId: string
  readonly imageId: string
}

const holderOf = (imageId: string): `custom_image/${string}` => `custom_image/${imageId}`

export interface CustomImageClaim extends CustomImageId {
  /** Of the disk, as far as it is known. */
  readonly sizeGibibytes: number
}

/** Idempotent; another size replaces the previous one. Throws the Problem `quota_exceeded` (422); the transaction must
 *  then be rolled back. */
export async function claimCustomImage(
  tx: Transaction<Tables>,
  { accountId, imageId, sizeGibibytes }: CustomImageClaim,
): Promise<void> {
  const held = { accountId, holder: holderOf(imageId), amounts: customImageQuota(sizeGibibytes) }
  await takeQuotas(tx, held)
  await changeQuotas(tx, held)
}

/** Sets the claim of an image to its actual size, regardless of the limit. */
export const recordCustomImageSize = (
  tx: Transaction<Tables>,
  { accountId, imageId, sizeGibibytes }: CustomImageClaim,
): Promise<void> =>
  recordQuotas(tx, {
    accountId,
    holder: holderOf(imageId),
    amounts: { custom_image_gibibytes: sizeGibibytes } satisfies Partial<ReturnType<typeof customImageQuota>>,
  })

/** Idempotent. */
export const releaseCustomImage = (tx: Transaction<Tables>, { accountId, imageId }: CustomImageId): Promise<void> =>
  releaseQuotas(tx, { accountId, holder: holderOf(imageId) })

/** The GiB that the image holds; undefined when it holds nothing. */
export async function findCustomImageClaim(
  db: Queries,
  { accountId, imageId }: CustomImageId,
): Promise<{ readonly sizeGibibytes: number } | undefined> {
  const rows = await selectWhere(db, 'quota_holding', { account_id: accountId, holder: holderOf(imageId) })
    .select(['name', 'amount'])
    .execute()
  if (rows.length === 0) return undefined
  return { sizeGibibytes: rows.find(({ name }) => name === 'custom_image_gibibytes')?.amount ?? 0 }
}
