/** Everything that PostgreSQL and Kubernetes keep, to see that something changes nothing. */
import { sql } from 'kysely'
import type { Database } from '../../db/kit/open.ts'
import { Namespace, ResourceQuota, Secret } from '../../kit/kube/object.ts'
import type { Store } from '../../kit/kube/store.ts'
import { RESOURCES } from '../../resources/index.ts'

/** What authentication and budgets write for every request, dry or not. */
const OF_EVERY_REQUEST = ['rate_limit', 'session', 'api_token', 'membership']

/** A line for each row and object. */
type Dump = ReadonlySet<string>

export async function dumpOf({ db, admin }: { readonly db: Database; readonly admin: Store }): Promise<Dump> {
  const { rows: tables } = await sql<{ name: string }>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' order by table_name`.execute(db)
  const selections = tables
    .filter(({ name }) => !OF_EVERY_REQUEST.includes(name))
    .map(({ name }) => sql`select ${name} || ' ' || t::text as line from ${sql.table(name)} t`)
  const { rows } = await sql<{ line: string }>`${sql.join(selections, sql` union all `)}`.execute(db)
  const lists = await Promise.all(
    [...RESOURCES, Namespace, ResourceQuota, Secret].map(async (type) => (await admin.list(type)).items),
  )
  return new Set([...rows.map(({ line }) => line), ...lists.flat().map((object) => JSON.stringify(object))])
}

/** What is in one of the dumps only. */
export const differenceOf = (one: Dump, other: Dump): readonly string[] => [
  ...[...one].filter((line) => !other.has(line)),
  ...[...other].filter((line) => !one.has(line)),
]
