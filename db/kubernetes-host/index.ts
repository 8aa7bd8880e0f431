/** Hosts of control planes: one in each region, with an id from the time when the platform first learns of it. */
import type { Queries } from '../kit/open.ts'

export * from './made.ts'

export interface KubernetesHostRow {
  readonly id: string
  readonly region: string
  readonly createdAt: Date
}

/** Those of the regions, in their order; the first caller creates their rows. */
export async function ensureKubernetesHosts(
  db: Queries,
  regions: readonly string[],
  { now, newId }: { readonly now: Date; readonly newId: () => string },
): Promise<readonly KubernetesHostRow[]> {
  if (regions.length === 0) return []
  await db
    .insertInto('kubernetes_host')
    .values(regions.map((region) => ({ region, id: newId(), created_at: now })))
    .onConflict((clash) => clash.doNothing())
    .execute()
  const rows = await db
    .selectFrom('kubernetes_host')
    .selectAll()
    .where('region', 'in', [...regions])
    .orderBy('region')
    .execute()
  return rows.map(({ id, region, created_at: createdAt }) => ({ id, region, createdAt }))
}

/** How many clusters have their control planes in each of the regions; regions without any are missing. */
export async function countClustersOf(db: Queries, regions: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (regions.length === 0) return new Map()
  const rows = await db
    .selectFrom('kubernetes_cluster')
    .select(['region', ({ fn }) => fn.countAll<number>().as('count')])
    .where('region', 'in', [...regions])
    .groupBy('region')
    .execute()
  return new Map(rows.map(({ region, count }) => [region, Number(count)]))
}
