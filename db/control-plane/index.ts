/** The state of PostgreSQL: the primary and its followers. */
import { sql } from 'kysely'
import type { Queries } from '../kit/open.ts'

export interface Replication {
  /** Address of the answering server, which accepts writes. */
  readonly primary: string
  /** In the order of their names. */
  readonly replicas: readonly string[]
  /** Of the follower that is furthest behind; null when there is none. */
  readonly lagSeconds: number | null
}

export async function readReplication(queries: Queries): Promise<Replication> {
  const { rows } = await sql<Replication>`
    select coalesce(host(inet_server_addr()), 'local') as primary,
      coalesce(array_agg(application_name order by application_name) filter (where pid is not null), '{}') as replicas,
      case when count(pid) = 0 then null
        else extract(epoch from coalesce(max(replay_lag), interval '0'))::float8 end as "lagSeconds"
    from (select 1) as here left join pg_stat_replication on true`.execute(queries)
  const [row] = rows
  if (row === undefined) throw new Error('an aggregate has one row')
  return row
}
