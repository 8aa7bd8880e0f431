/** What queries read of a table, as PostgreSQL says: how many rows, and whether an index found them. */
import { CompiledQuery, type KyselyPlugin } from 'kysely'
import type { Database } from '../db/kit/open.ts'

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

/** Carries the work out, then all of its queries again under EXPLAIN. Throws for a scan of the whole table. */
export async function rowsRead(
  db: Database,
  table: string,
  work: (queries: Database) => Promise<unknown>,
): Promise<number> {
  const nodes: Parameters<KyselyPlugin['transformQuery']>[0]['node'][] = []
  const listening: KyselyPlugin = {
    transformQuery: ({ node }) => (nodes.push(node), node),
    transformResult: async ({ result }) => result,
  }
  await work(db.withPlugin(listening))
  if (nodes.length === 0) throw new Error('the work asks nothing')
  let rows = 0
  const count = (plan: PlanNode): void => {
    if (plan['Relation Name'] === table) {
      if (plan['Node Type'] === 'Seq Scan') throw new Error(`all of ${table} is read`)
      rows += (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
    }
    for (const part of plan.Plans ?? []) count(part)
  }
  for (const node of nodes) {
    const { sql, parameters } = db.getExecutor().compileQuery(node, { queryId: 'explained' })
    const explained = CompiledQuery.raw(`explain (analyze, format json) ${sql}`, [...parameters])
    const answer = await db.executeQuery<{ readonly 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(explained)
    for (const { 'QUERY PLAN': plans } of answer.rows) for (const { Plan } of plans) count(Plan)
  }
  return rows
}
