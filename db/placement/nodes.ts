/** The nodes as placement sees them: a mirror of the Node objects. What is claimed on a node is never touched here. */
import type { Candidate, Room } from '../../domain/placement.ts'
import type { Queries } from '../open.ts'
import { roomOf } from './placement.ts'

/** Brings the mirror up to date; a smaller node keeps its claims and takes nothing new. */
export async function mirrorNode(db: Queries, node: Omit<Candidate, 'used'>): Promise<void> {
  const row = {
    zone: node.zone,
    rack: node.rack,
    cpu_pool: node.cpuPool,
    dedicated_account_id: node.dedicatedAccountId,
    is_schedulable: node.isSchedulable,
    cores: node.total.cores,
    memory_mebibytes: node.total.memoryMebibytes,
    storage_gibibytes: node.total.storageGibibytes,
  }
  await db
    .insertInto('node_capacity')
    .values({ node: node.node, ...row })
    .onConflict((conflict) => conflict.column('node').doUpdateSet(row))
    .execute()
}

/** Removes a node that holds nothing; one that still holds guests stays, closed. True when it is gone. */
export async function forgetNode(db: Queries, node: string): Promise<boolean> {
  await db.updateTable('node_capacity').set({ is_schedulable: false }).where('node', '=', node).execute()
  await db
    .deleteFrom('node_capacity')
    .where('node', '=', node)
    .where((row) =>
      row.not(
        row.exists(
          row.selectFrom('placement').select('placement.node').whereRef('placement.node', '=', 'node_capacity.node'),
        ),
      ),
    )
    .execute()
  return (await db.selectFrom('node_capacity').select('node').where('node', '=', node).executeTakeFirst()) === undefined
}

/** A server with room on a node: it lives there, or the room is held for it while it lives elsewhere. */
export interface Tenant extends Room {
  readonly accountId: string
  readonly serverId: string
  readonly isArriving: boolean
}

/** Who has room on the node, by account and id. */
export async function listTenants(db: Queries, node: string): Promise<readonly Tenant[]> {
  const rows = await db
    .selectFrom('placement as placement')
    .leftJoin('placement_target as target', (join) =>
      join
        .onRef('target.account_id', '=', 'placement.account_id')
        .onRef('target.server_id', '=', 'placement.server_id'),
    )
    .select([
      'placement.account_id',
      'placement.server_id',
      'placement.node',
      'placement.cores',
      'placement.memory_mebibytes',
      'placement.storage_gibibytes',
    ])
    .select([
      'target.cores as target_cores',
      'target.memory_mebibytes as target_memory_mebibytes',
      'target.storage_gibibytes as target_storage_gibibytes',
    ])
    .where((where) => where.or([where('placement.node', '=', node), where('target.node', '=', node)]))
    .orderBy('placement.account_id')
    .orderBy('placement.server_id')
    .execute()
  return rows.map((row) => {
    const isArriving = row.node !== node
    const arriving = {
      cores: row.target_cores ?? 0,
      memory_mebibytes: row.target_memory_mebibytes ?? 0,
      storage_gibibytes: row.target_storage_gibibytes ?? 0,
    }
    return { accountId: row.account_id, serverId: row.server_id, ...roomOf(isArriving ? arriving : row), isArriving }
  })
}

/** How many servers live on each node. */
export async function countTenants(db: Queries): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('placement')
    .select(({ fn }) => ['node', fn.countAll<number>().as('count')])
    .groupBy('node')
    .execute()
  return new Map(rows.map(({ node, count }) => [node, Number(count)]))
}
