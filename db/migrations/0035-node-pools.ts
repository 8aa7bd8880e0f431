/** Node pools of managed Kubernetes clusters: their names. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table node_pool (
     account_id uuid not null,
     id text not null,
     cluster_id text not null,
     name text not null,
     primary key (account_id, id),
     constraint node_pool_name unique (account_id, cluster_id, name),
     foreign key (account_id, cluster_id) references kubernetes_cluster (account_id, id) on delete cascade
   )`.execute(db)
}
