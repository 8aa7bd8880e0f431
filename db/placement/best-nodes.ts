/** The best nodes for a demand, chosen by PostgreSQL: only these few rows come over the wire, however many nodes a zone
 *  has. What is best
 *  is defined in `domain/placement.ts`; a test holds this query against it. */
import { type Expression, type Selectable, type SqlBool, sql } from 'kysely'
import type { Candidate, Demand, Place, Spread } from '../../domain/placement.ts'
import type { Queries } from '../open.ts'
import type { Tables } from '../tables.ts'

/** Others may take the room on the first ones in the meantime. */
const BEST_NODES_MAXIMUM = 16

/** In the order of `rankNodes`, whose first nodes these are. */
export async function listBestNodes(
  db: Queries,
  demand: Demand,
  limit = BEST_NODES_MAXIMUM,
): Promise<readonly Candidate[]> {
  const { accountId, zone, cpuPool, excludedNodes = [], apartness } = demand
  // Places in other zones share nothing with nodes of this one.
  const members = (apartness?.members ?? []).filter((member) => member.zone === zone)
  const shared = (spread: Spread) => countOf(spread, members)
  const domain = apartness === undefined ? sql<number>`0` : shared(apartness.spread)
  const rows = await db
    .selectFrom('node_capacity')
    .selectAll()
    .where('zone', '=', zone)
    .where('is_schedulable', '=', true)
    .$if(cpuPool !== undefined, (query) => query.where('cpu_pool', '=', cpuPool ?? ''))
    .where((row) => row.or([row('dedicated_account_id', 'is', null), sameAccount(accountId)]))
    .$if(excludedNodes.length > 0, (query) => query.where('node', 'not in', excludedNodes))
    .$if(apartness?.isStrict === true, (query) => query.where(domain, '=', 0))
    .where((row) => row(row('cores_used', '+', demand.cores), '<=', row.ref('cores')))
    .where((row) => row(row('memory_mebibytes_used', '+', demand.memoryMebibytes), '<=', row.ref('memory_mebibytes')))
    .where((row) =>
      row(row('storage_gibibytes_used', '+', demand.storageGibibytes), '<=', row.ref('storage_gibibytes')),
    )
    .orderBy(sql`case when ${sameAccount(accountId)} then 0 else 1 end`)
    .$if(members.length > 0, (query) => query.orderBy(domain).orderBy(shared('host')).orderBy(shared('rack')))
    .orderBy(
      sql`${free('cores', demand.cores)}
        + ${free('memory_mebibytes', demand.memoryMebibytes)}
        + ${free('storage_gibibytes', demand.storageGibibytes)}`,
    )
    .orderBy(sql`node collate "C"`)
    .limit(limit)
    .execute()
  return rows.map(toCandidate)
}

/** Compared as text: the caller's id may be no UUID. */
const sameAccount = (accountId: string): Expression<SqlBool> =>
  sql<SqlBool>`dedicated_account_id::text is not distinct from ${accountId}`

const countOf = (spread: Spread, members: readonly Place[]): Expression<number> =>
  spread === 'zone'
    ? sql<number>`${members.length}::integer`
    : spread === 'rack'
      ? sql<number>`cardinality(array_positions(${members.map(({ rack }) => rack)}::text[], rack))`
      : sql<number>`cardinality(array_positions(${members.map(({ node }) => node)}::text[], node))`

/** The fraction of the node that would stay free. */
const free = (resource: 'cores' | 'memory_mebibytes' | 'storage_gibibytes', amount: number): Expression<number> => {
  const [total, used] = [sql.ref<number>(resource), sql.ref<number>(`${resource}_used`)]
  const share = sql`(${used} + ${amount}::bigint)::float8 / ${total}::float8`
  return sql<number>`case when ${total} = 0 then 0 else 1 - ${share} end`
}

/** Of a whole row of `node_capacity`. */
export const toCandidate = (row: Selectable<Tables['node_capacity']>): Candidate => ({
  node: row.node,
  zone: row.zone,
  rack: row.rack,
  cpuPool: row.cpu_pool,
  dedicatedAccountId: row.dedicated_account_id,
  isSchedulable: row.is_schedulable,
  total: { cores: row.cores, memoryMebibytes: row.memory_mebibytes, storageGibibytes: row.storage_gibibytes },
  used: {
    cores: row.cores_used,
    memoryMebibytes: row.memory_mebibytes_used,
    storageGibibytes: row.storage_gibibytes_used,
  },
})
