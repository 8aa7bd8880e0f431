/** Of which start of PostgreSQL it is known what objects use without a claim; by which transaction that was written. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table look (
     id boolean primary key check (id),
     database text not null,
     writer text not null,
     at timestamptz not null
   )`.execute(db)
}
