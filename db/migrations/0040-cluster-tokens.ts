/** Tokens of Kubernetes clusters: what their add-ons call the platform with. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table kubernetes_token (
     id uuid primary key,
     account_id uuid not null,
     cluster_id text not null,
     program text not null,
     secret_hash bytea not null unique,
     scopes jsonb not null,
     created_at timestamptz not null,
     expires_at timestamptz not null,
     foreign key (account_id, cluster_id) references kubernetes_cluster (account_id, id) on delete cascade
   )`,
  'create index kubernetes_token_cluster on kubernetes_token (account_id, cluster_id)',
]
