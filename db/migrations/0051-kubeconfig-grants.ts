/** Credentials in kubeconfigs, one for each person or token and control plane: what they hang on, and how far their end
 *  has come. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table kubeconfig_grant (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     resource_type text not null,
     resource_id text not null,
     region text not null,
     control_plane_id uuid not null,
     holder uuid not null,
     user_id uuid not null,
     token_id uuid,
     support_session_id uuid,
     cluster_role text not null,
     account_roles text[] not null,
     created_at timestamptz not null,
     expires_at timestamptz not null,
     ended_at timestamptz,
     removed_at timestamptz
   )`,
  `create unique index kubeconfig_grant_live on kubeconfig_grant (control_plane_id, holder, cluster_role)
     where ended_at is null`,
  'create index kubeconfig_grant_expires_at on kubeconfig_grant (expires_at)',
  'create index kubeconfig_grant_of_account on kubeconfig_grant (account_id, user_id)',
]
