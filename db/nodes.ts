/** The nodes as placement sees them: a mirror of the Node objects. What is claimed on a node is never touched here. */
import type { Candidate } from '../domain/placement.ts'
import type { Queries } from './open.ts'

/** Brings the mirror up to date; a smaller node keeps its claims and takes nothing new. */
export async function mirrorNode(db: Queries, node: Omit<Candidate, 'used'>): Promise<void> {
  const row = {
    zone: node.zone, rack: node.rack, cpu_pool: node.cpuPool, dedicated_account_id: node.dedicatedAccountId, is_schedulable: node.isSchedulable,
    cores: node.total.cores, memory_mebibytes: node.total.memoryMebibytes, storage_gibibytes: node.total.storageGibibytes,
  }
  await db.insertInto('node_capacity').values({ node: node.node, ...row }).onConflict((conflict) => conflict.column('node').doUpdateSet(row)).execute()
}

/** Removes a node that holds nothing; one that still holds guests stays, closed. True when it is gone. */
export async function forgetNode(db: Queries, node: string): Promise<boolean> {
  await db.updateTable('node_capacity').set({ is_schedulable: false }).where('node', '=', node).execute()
  await db.deleteFrom('node_capacity').where('node', '=', node)
    .where((row) => row.not(row.exists(row.selectFrom('placement').select('placement.node').whereRef('placement.node', '=', 'node_capacity.node')))).execute()
  return (await db.selectFrom('node_capacity').select('node').where('node', '=', node).executeTakeFirst()) === undefined
}
