/** Unique values that objects have, according to the objects themselves. They stay theirs when PostgreSQL has no claims
 *  for them. Each noun that has some says which; those of edges, databases and clusters belong to their servers and
 *  balancers. */
import type { Use } from '../../domain/claim/use.ts'

/** The value, if there is one. */
export const use = (kind: Use['kind'], scope: string, value: string | undefined): readonly Use[] =>
  value === undefined ? [] : [{ kind, scope, value }]
