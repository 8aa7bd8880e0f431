/** What was ordered to go, before it goes; and what is missing although nobody ordered that. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  // The namespace is empty for what is in none, the uid for what had no object when it was decided upon.
  await sql`create table removal (
     id uuid primary key,
     kind text not null,
     namespace text not null,
     name text not null,
     uid text not null,
     reason text not null check (reason in ('deleted', 'operator')),
     ordered_at timestamptz not null,
     confirmed_at timestamptz,
     constraint removal_once unique (kind, namespace, name, uid)
   )`.execute(db)
  await sql`create index removal_open on removal (kind) where confirmed_at is null`.execute(db)
  await sql`create index removal_uid on removal (uid)`.execute(db)
  await sql`create index removal_confirmed on removal (confirmed_at) where confirmed_at is not null`.execute(db)
  await sql`create table absence (
     kind text not null,
     namespace text not null,
     name text not null,
     found_at timestamptz not null,
     stops_sweeps boolean not null,
     primary key (kind, namespace, name)
   )`.execute(db)
}
