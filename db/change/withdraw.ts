/** Releasing what a change has claimed and did not write. What Kubernetes desires by then decides what is released; it
 *  is read before the transaction, so that no transaction waits for Kubernetes. */
import type { Transaction } from 'kysely'
import { Unavailable } from '../../domain/problem.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from '../kit/where.ts'

const ATTEMPTS_MAXIMUM = 5

class Overtaken extends Error {}

/** Reads with `look`, then does `work` in a transaction. What was read may not show a change that the account has
 *  completed in between: then both are repeated. Every completed change has an entry in the account's audit chain, so
 *  the length of the chain shows it. `work` must not append to it; use `end` for that. Throws Unavailable when the
 *  account changes all the time. */
export async function withdrawing<State>(
  db: Database,
  accountId: string,
  {
    look,
    work,
    end,
  }: {
    readonly look: () => Promise<State>
    readonly work: (tx: Transaction<Tables>, state: State) => Promise<void>
    readonly end?: (tx: Transaction<Tables>) => Promise<void>
  },
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAXIMUM; attempt++) {
    const before = await chainLength(db, accountId)
    const state = await look()
    try {
      return await db.transaction().execute(async (tx) => {
        await work(tx, state)
        if ((await chainLength(tx, accountId)) !== before) throw new Overtaken()
        await end?.(tx)
      })
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error
    }
  }
  throw new Unavailable('the database')
}

async function chainLength(db: Queries, accountId: string): Promise<number> {
  const head = await selectWhere(db, 'audit_head', { account_id: accountId }).select('sequence').executeTakeFirst()
  return head?.sequence ?? 0
}
