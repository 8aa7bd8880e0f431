/** Which accounts have their namespace in Kubernetes. Of those that are there nobody knows, so each is made sure of. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  'alter table account add column namespace_made_at timestamptz',
  'create index account_without_namespace on account (created_at) where namespace_made_at is null',
]
