/** Managed Kubernetes clusters of accounts: their names, the networks that they keep, the control planes that they
 *  have, the snapshots of those; and who signs the tokens of people. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // One for the deployment: whoever is first makes it.
  `create table kubernetes_issuer (
     id smallint primary key default 1 check (id = 1),
     public_key jsonb not null,
     sealed_key text not null
   )`,
  `create table kubernetes_cluster (
     account_id uuid not null references account (id) on delete cascade,
     id text not null,
     zone text not null,
     region text not null,
     name text not null,
     network_id text not null,
     control_plane_id uuid not null unique,
     replicas smallint not null,
     release text not null,
     pod_cidr text not null,
     service_cidr text not null,
     primary key (account_id, id),
     constraint kubernetes_cluster_name unique (account_id, name)
   )`,
  'create index kubernetes_cluster_network on kubernetes_cluster (account_id, network_id)',
  `create table kubernetes_snapshot (
     account_id uuid not null,
     cluster_id text not null,
     id uuid not null,
     kind text not null,
     release text not null,
     size_bytes bigint not null,
     created_at timestamptz not null,
     primary key (account_id, cluster_id, id),
     foreign key (account_id, cluster_id) references kubernetes_cluster (account_id, id) on delete cascade
   )`,
]
