/** The nodes as placement sees them: a mirror of the Node objects. Claims are never changed here. */
import type { Transaction } from 'kysely'
import type { Candidate, GuestOnNode, Room } from '../../domain/node/placement.ts'
import { findForgottenRoom, writeForgottenRoom } from '../look/index.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { roomOf, wholeRoomOf } from './placement.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export type MirroredNode = Omit<Candidate, 'used' | 'forgotten'>

/** Updates the mirror. A node that became smaller keeps its claims and accepts nothing new. One that was dedicated here
 *  stays so until its object says the same. The guests without claims that are on it count as used; without the list,
 *  that count stays as it is. */
export async function mirrorNode(db: Database, node: MirroredNode, guests?: readonly GuestOnNode[]): Promise<void> {
  await db.transaction().execute(async (tx) => {
    // A transaction that dedicates it holds this lock until that is visible.
    await selectWhere(tx, 'node_capacity', { node: node.node }).select('node').forUpdate().execute()
    await tx
      .deleteFrom('node_dedication')
      .where('node', '=', node.node)
      .where('account_id', '=', node.dedicatedAccountId)
      .execute()
    const ahead = await findDedication(tx, node.node)
    await writeMirror(tx, ahead === undefined ? node : { ...node, dedicatedAccountId: ahead })
    if (guests !== undefined) await writeForgottenRoom(tx, node.node, await findForgottenRoom(tx, node.node, guests))
  })
}

/** The account that the node was assigned to, while its object does not show it yet. */
export async function findDedication(db: Queries, node: string): Promise<string | undefined> {
  const row = await selectWhere(db, 'node_dedication', { node }).select('account_id').executeTakeFirst()
  return row?.account_id
}

async function writeMirror(tx: Transaction<Tables>, node: MirroredNode): Promise<void> {
  const row = {
    zone: node.zone,
    rack: node.rack,
    cpu_pool: node.cpuPool,
    dedicated_account_id: node.dedicatedAccountId,
    is_schedulable: node.isSchedulable,
    has_backups: node.hasBackups === true,
    cores: node.total.cores,
    memory_mebibytes: node.total.memoryMebibytes,
    storage_gibibytes: node.total.storageGibibytes,
  }
  await tx
    .insertInto('node_capacity')
    .values({ node: node.node, ...row })
    .onConflict((conflict) => conflict.column('node').doUpdateSet(row))
    .execute()
}

/** Deletes a node without claims; closes one that still has guests. Returns true when it was deleted. */
export async function forgetNode(db: Queries, node: string): Promise<boolean> {
  await updateWhere(db, 'node_capacity', { node }).set({ is_schedulable: false }).execute()
  await deleteWhere(db, 'node_dedication', { node }).execute()
  await deleteWhere(db, 'node_capacity', { node })
    .where((row) =>
      row.not(
        row.exists(
          row.selectFrom('placement').select('placement.node').whereRef('placement.node', '=', 'node_capacity.node'),
        ),
      ),
    )
    .where((row) =>
      row.not(
        row.exists(
          row
            .selectFrom('storage_claim')
            .select('node')
            .where((claim) =>
              claim.or([
                claim('storage_claim.node', '=', claim.ref('node_capacity.node')),
                claim('storage_claim.target_node', '=', claim.ref('node_capacity.node')),
              ]),
            ),
        ),
      ),
    )
    .execute()
  return (await selectWhere(db, 'node_capacity', { node }).select('node').executeTakeFirst()) === undefined
}

/** A server with room on a node: it runs there, or the room is held for it while it runs elsewhere. */
export interface Tenant extends Room {
  readonly accountId: string
  readonly serverId: string
  readonly isArriving: boolean
}

/** The servers with room on the node, by account and id. */
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
      'placement.attached_gibibytes',
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
    const room = isArriving ? roomOf(arriving) : wholeRoomOf(row)
    return { accountId: row.account_id, serverId: row.server_id, ...room, isArriving }
  })
}

/** How many servers run on each node. */
export async function countTenants(db: Queries): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('placement')
    .select(({ fn }) => ['node', fn.countAll<number>().as('count')])
    .groupBy('node')
    .execute()
  return new Map(rows.map(({ node, count }) => [node, Number(count)]))
}
