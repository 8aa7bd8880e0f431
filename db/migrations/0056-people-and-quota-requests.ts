/** What a person has set for the portal, the notices that they have dismissed, and requests for larger quotas. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // Text: it is given back as it was, with its order and its numbers.
  `create table user_preference (
     user_id uuid primary key references app_user (id) on delete cascade,
     preferences text not null,
     generation bigint not null,
     updated_at timestamptz not null
   )`,
  `create table notice_dismissal (
     user_id uuid not null references app_user (id) on delete cascade,
     account_id uuid not null,
     notice_id text not null,
     dismissed_at timestamptz not null,
     primary key (user_id, account_id, notice_id)
   )`,
  `create table quota_request (
     id uuid primary key,
     account_id uuid not null,
     state text not null check (state in ('open', 'in_review', 'granted', 'declined', 'withdrawn')),
     name text not null,
     "limit" bigint not null,
     reason text not null,
     granted_limit bigint,
     staff_reason text,
     requested_by_email text not null,
     created_at timestamptz not null,
     updated_at timestamptz not null,
     decided_at timestamptz,
     check ((decided_at is null) = (state in ('open', 'in_review'))),
     check ((granted_limit is not null) = (state = 'granted'))
   )`,
  // One at a time for each quota.
  `create unique index quota_request_open on quota_request (account_id, name) where state in ('open', 'in_review')`,
  `create index quota_request_account on quota_request (account_id, created_at desc, id desc)`,
  `create index quota_request_list on quota_request (created_at desc, id desc)`,
]
