/** Operators send Idempotency-Keys too: a key belongs to an account or to an operator. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `alter table idempotency_key
     drop constraint idempotency_key_pkey,
     alter column account_id drop not null,
     add column operator text,
     add constraint idempotency_key_of_account unique (account_id, key),
     add constraint idempotency_key_of_operator unique (operator, key),
     add constraint idempotency_key_has_holder check ((account_id is null) <> (operator is null))`,
]
