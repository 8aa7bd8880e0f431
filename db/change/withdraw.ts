/** Giving back what a change has claimed and did not write. What Kubernetes desires by now decides what is given back;
 *  it is read before the transaction, so that none waits for Kubernetes. */
import type { Transaction } from 'kysely'
import { Unavailable } from '../../domain/problem.ts'
import type { Database, Queries } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { selectWhere } from '../kit/where.ts'

const ATTEMPTS_MAXIMUM = 5

class Overtaken extends Error {}

/** Reads by `look`, then does `work` in a transaction. A change that the account has completed in between may not show
 *  in what was read: then both are done anew. Every completed change has an entry in the account's audit chain, so its
 *  length tells. `work` must not add to it; what does comes in `end`. Throws Unavailable when the account changes all
 *  the time. */
export async function withdrawing<Seen>(
  db: Database,
  accountId: string,
  {
    look,
    work,
    end,
  }: {
    readonly look: () => Promise<Seen>
    readonly work: (tx: Transaction<Tables>, seen: Seen) => Promise<void>
    readonly end?: (tx: Transaction<Tables>) => Promise<void>
  },
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAXIMUM; attempt++) {
    const before = await chainLength(db, accountId)
    const seen = await look()
    try {
      return await db.transaction().execute(async (tx) => {
        await work(tx, seen)
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
