/** The room that is held where a server is on its way to is of its own size: a server may become larger on the way. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  'alter table placement_target add column cores bigint, add column memory_mebibytes bigint, add column ' +
    'storage_gibibytes bigint',
  `update placement_target set cores = placement.cores, memory_mebibytes = placement.memory_mebibytes,
       storage_gibibytes = placement.storage_gibibytes
     from placement
     where placement.account_id = placement_target.account_id and placement.server_id = placement_target.server_id`,
  'alter table placement_target alter column cores set not null, alter column memory_mebibytes set not null, ' +
    'alter column storage_gibibytes set not null',
]
