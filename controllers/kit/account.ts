/** The account that owns a namespace. */
import type { Queries } from '../../db/kit/open.ts'
import { accountExists } from '../../db/server/index.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { orUnavailable } from './outage.ts'

/** The account of the namespace; undefined for namespaces of no account, and when it is deleted. Throws Unavailable. */
export async function findAccountOf(db: Queries, namespace: string): Promise<string | undefined> {
  const accountId = accountOfNamespace(namespace)
  return accountId !== undefined && (await orUnavailable(accountExists(db, accountId))) ? accountId : undefined
}
