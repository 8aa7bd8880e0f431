/** What a mail is about, beside its English text: it is written when it is sent, in the language of whoever gets it.
 *  Mails without a name have only the text. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw('alter table email_outbox add column name text, add column fields text, add column language text')
    .execute(db)
}
