/** Dev clusters of accounts: their names. The lock of the account's quota serializes them. */
import type { Transaction } from 'kysely'
import { releaseQuotas, takeQuotas } from '../account/index.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere } from '../kit/where.ts'
import { requireFreeName } from '../kit/free-name.ts'

export interface DevClusterId {
  readonly accountId: string
  readonly devClusterId: string
}

interface DevClusterDemand extends DevClusterId {
  readonly name: string
}

const holdingOf = ({ accountId, devClusterId }: DevClusterId) => ({
  accountId,
  holder: `dev_cluster/${devClusterId}` as const,
})

/** Does nothing when it is claimed already. Throws the Problems `quota_exceeded` (422) and `name_taken` (409). */
export async function claimDevCluster(tx: Transaction<Tables>, demand: DevClusterDemand): Promise<void> {
  const { accountId, devClusterId: id, name } = demand
  if (await isDevClusterClaimed(tx, demand)) return
  await takeQuotas(tx, { ...holdingOf(demand), amounts: { dev_clusters: 1 } })
  await requireFreeName(tx, 'dev_cluster', { account_id: accountId, id, name })
  await tx.insertInto('dev_cluster').values({ account_id: accountId, id, name }).execute()
}

export const isDevClusterClaimed = async (db: Queries, { accountId, devClusterId }: DevClusterId): Promise<boolean> =>
  (await selectWhere(db, 'dev_cluster', { account_id: accountId, id: devClusterId })
    .select('id')
    .executeTakeFirst()) !== undefined

/** Idempotent. */
export async function releaseDevCluster(tx: Transaction<Tables>, id: DevClusterId): Promise<void> {
  await releaseQuotas(tx, holdingOf(id))
  await deleteWhere(tx, 'dev_cluster', { account_id: id.accountId, id: id.devClusterId }).execute()
}
