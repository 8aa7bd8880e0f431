/** The nodes of a zone in the order in which placement prefers them. The first that has room is found in the index,
 *  whatever their number: those without room are passed over there. */
import { type Kysely, sql } from 'kysely'

const share = (resource: string) =>
  `case when ${resource} = 0 then 0 else 1 - ${resource}_used::float8 / ${resource}::float8 end`

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `alter table node_capacity
         add column cores_free bigint generated always as (cores - cores_used) stored,
         add column memory_mebibytes_free bigint
           generated always as (memory_mebibytes - memory_mebibytes_used) stored,
         add column storage_gibibytes_free bigint
           generated always as (storage_gibibytes - storage_gibibytes_used) stored,
         add column free_share float8
           generated always as (${['cores', 'memory_mebibytes', 'storage_gibibytes'].map(share).join(' + ')}) stored`,
    )
    .execute(db)
  await sql
    .raw(
      `create index node_capacity_fullest on node_capacity
         (zone, free_share, cores, memory_mebibytes, node collate "C",
          cores_free, memory_mebibytes_free, storage_gibibytes_free)
         where is_schedulable and dedicated_account_id is null`,
    )
    .execute(db)
  await sql
    .raw(
      `create index node_capacity_dedicated on node_capacity (zone, (dedicated_account_id::text))
         where dedicated_account_id is not null`,
    )
    .execute(db)
}
