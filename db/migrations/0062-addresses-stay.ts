/** The email address of a person never changes: history names people by it (decision 173). */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create function refuse_another_email() returns trigger language plpgsql as $$
     begin
       raise exception 'the email address of a person does not change (decision 173)';
     end $$`,
  `create trigger app_user_email_stays before update on app_user
     for each row when (old.email is distinct from new.email) execute function refuse_another_email()`,
]
