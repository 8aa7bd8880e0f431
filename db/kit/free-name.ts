/** Names that are unique within an account, or within a zone or a cluster of it. */
import type { Transaction } from 'kysely'
import { nameTaken } from '../../domain/problem.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from './where.ts'

/** Tables whose rows have a name and a type of resource that is called like the table. */
type NamedTable =
  | 'database'
  | 'dev_cluster'
  | 'kubernetes_cluster'
  | 'load_balancer'
  | 'network'
  | 'node_pool'
  | 'router'
  | 'server_group'

interface Name {
  readonly account_id: string
  readonly name: string
  readonly zone?: string
  readonly cluster_id?: string
}

/** Throws the Problem `name_taken` (409) when another row than `id` has the name. The caller holds the lock that
 *  serializes names. */
export async function requireFreeName(
  tx: Transaction<Tables>,
  type: NamedTable,
  { id: own, ...within }: Name & { readonly id: string },
): Promise<void> {
  // Whichever it is has these columns.
  const holder = await selectWhere(tx, type as 'network', within)
    .select('id')
    .where('id', '<>', own)
    .executeTakeFirst()
  if (holder === undefined) return
  const title = type.replaceAll('_', ' ').replace('kubernetes', 'Kubernetes')
  const owner = within.cluster_id === undefined ? 'account' : 'cluster'
  const place = within.zone === undefined ? '' : ` in zone ${within.zone}`
  throw nameTaken(`The ${owner} has a ${title} of this name${place}.`, { type, id: holder.id })
}
