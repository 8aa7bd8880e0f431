/** Keys that the deployment generates once and all replicas share. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere } from '../kit/where.ts'

/** The secret of that name, generated when it does not exist yet. */
export async function deploymentSecret(
  queries: Queries,
  name: string,
  byteCount: number,
  by: { readonly clock: Clock; readonly random: Random },
): Promise<Buffer> {
  await queries
    .insertInto('deployment_secret')
    .values({ name, value: by.random.bytes(byteCount), created_at: by.clock.now() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute()
  return (await selectWhere(queries, 'deployment_secret', { name }).select('value').executeTakeFirstOrThrow()).value
}
