/** Accounts for tests that need one and no sign-up. */
import { openQuotas } from '../db/account/index.ts'
import type { Database } from '../db/open.ts'
import { newUuid, systemRandom } from '../kit/sys/random.ts'

export async function createAccount(db: Database): Promise<string> {
  const id = newUuid(systemRandom)
  await db.transaction().execute(async (tx) => {
    await tx
      .insertInto('account')
      .values({ id, name: 'Test', created_at: new Date('2026-01-01T00:00:00Z') })
      .execute()
    await openQuotas(tx, id)
  })
  return id
}
