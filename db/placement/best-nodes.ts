/** The best nodes for a demand, chosen by PostgreSQL: it returns only these few rows, regardless of how many nodes a
 *  zone has. `domain/node/placement.ts` defines what is best; a test compares this query with it. */
import { type Expression, type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import type { Candidate, Demand, Place, Spread } from '../../domain/node/placement.ts'
import type { Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from '../kit/where.ts'

/** More than one, because other transactions may take the room on the first meanwhile. */
const BEST_NODES_MAXIMUM = 16

/** In the order of `rankNodes`, whose first nodes these are. For a server without a group, they come from an index in
 *  that order. */
export async function listBestNodes(
  db: Queries,
  demand: Demand,
  limit = BEST_NODES_MAXIMUM,
): Promise<readonly Candidate[]> {
  const ranking = rankingOf(demand)
  const best = withRoom(db, demand).orderBy(ranking).limit(limit)
  const own = best.where(sql<SqlBool>`dedicated_account_id::text = ${demand.accountId}`)
  const shared = best.where('dedicated_account_id', 'is', null)
  const rows = await db
    .selectFrom(
      db
        .selectFrom(own.as('own'))
        .selectAll()
        .unionAll(db.selectFrom(shared.as('shared')).selectAll())
        .as('best'),
    )
    .selectAll()
    .orderBy(sql`dedicated_account_id is null`)
    .orderBy(ranking)
    .limit(limit)
    .execute()
  return rows.map(toCandidate)
}

/** The nodes that may accept the demand, for any account. */
function withRoom(db: Queries, demand: Demand) {
  const { zone, cpuPool, excludedNodes = [], apartness } = demand
  return selectWhere(db, 'node_capacity', { zone })
    .selectAll()
    .where(sql<SqlBool>`is_schedulable`)
    .where('cores_free', '>=', demand.cores)
    .where('memory_mebibytes_free', '>=', demand.memoryMebibytes)
    .where('storage_gibibytes_free', '>=', demand.storageGibibytes)
    .$if(cpuPool !== undefined, (query) => query.where('cpu_pool', '=', cpuPool ?? ''))
    .$if(excludedNodes.length > 0, (query) => query.where('node', 'not in', excludedNodes))
    .$if(apartness?.isStrict === true, (query) =>
      query.where(countOf(apartness?.spread ?? 'host', membersIn(demand)), '=', 0),
    )
}

/** As terms of an order, after the account's own nodes. */
function rankingOf(demand: Demand): RawBuilder<unknown> {
  const members = membersIn(demand)
  const { spread = 'host' } = demand.apartness ?? {}
  const apart =
    members.length === 0 ? [] : [countOf(spread, members), countOf('host', members), countOf('rack', members)]
  return sql.join([...apart, sql`free_share, cores, memory_mebibytes, node collate "C"`])
}

/** Places in other zones share nothing with nodes of this one. */
const membersIn = ({ zone, apartness }: Demand): readonly Place[] =>
  (apartness?.members ?? []).filter((member) => member.zone === zone)

const countOf = (spread: Spread, members: readonly Place[]): Expression<number> =>
  spread === 'zone'
    ? sql<number>`${members.length}::integer`
    : spread === 'rack'
      ? sql<number>`cardinality(array_positions(${members.map(({ rack }) => rack)}::text[], rack))`
      : sql<number>`cardinality(array_positions(${members.map(({ node }) => node)}::text[], node))`

/** Converts a complete row of `node_capacity`. */
export const toCandidate = (row: Selectable<Tables['node_capacity']>): Candidate => ({
  node: row.node,
  zone: row.zone,
  rack: row.rack,
  cpuPool: row.cpu_pool,
  dedicatedAccountId: row.dedicated_account_id,
  isSchedulable: row.is_schedulable,
  ...(row.has_backups ? { hasBackups: true } : {}),
  total: { cores: row.cores, memoryMebibytes: row.memory_mebibytes, storageGibibytes: row.storage_gibibytes },
  used: {
    cores: row.cores_used + row.cores_forgotten,
    memoryMebibytes: row.memory_mebibytes_used + row.memory_mebibytes_forgotten,
    storageGibibytes: row.storage_gibibytes_used + row.storage_gibibytes_forgotten,
  },
  forgotten: {
    cores: row.cores_forgotten,
    memoryMebibytes: row.memory_mebibytes_forgotten,
    storageGibibytes: row.storage_gibibytes_forgotten,
  },
})
