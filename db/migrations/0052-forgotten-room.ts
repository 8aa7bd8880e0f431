/** Room on a node that a guest takes whose server has no claims there: a store was put back to an older state. It
 *  counts as used, so what is free is what both leave. */
import { type Kysely, sql } from 'kysely'

const RESOURCES = ['cores', 'memory_mebibytes', 'storage_gibibytes'] as const
const share = (resource: string) =>
  `case when ${resource} = 0 then 0
     else 1 - (${resource}_used + ${resource}_forgotten)::float8 / ${resource}::float8 end`

export async function up(db: Kysely<unknown>): Promise<void> {
  const each = (column: (resource: string) => string) => RESOURCES.map(column).join(', ')
  for (const statement of [
    'drop index node_capacity_fullest',
    `alter table node_capacity drop column free_share, ${each((resource) => `drop column ${resource}_free`)}`,
    `alter table node_capacity ${each(
      (resource) => `add column ${resource}_forgotten bigint not null default 0 check (${resource}_forgotten >= 0)`,
    )}`,
    `alter table node_capacity
       ${each(
         (resource) => `add column ${resource}_free bigint
           generated always as (${resource} - ${resource}_used - ${resource}_forgotten) stored`,
       )},
       add column free_share float8 generated always as (${RESOURCES.map(share).join(' + ')}) stored`,
    `create index node_capacity_fullest on node_capacity
       (zone, free_share, cores, memory_mebibytes, node collate "C",
        cores_free, memory_mebibytes_free, storage_gibibytes_free)
       where is_schedulable and dedicated_account_id is null`,
  ])
    await sql.raw(statement).execute(db)
}
