/** Orders: what was deleted, noted before it goes. That a record is missing is no order; whoever gives back or takes
 *  away what belongs to something that is gone asks here first. */
import { forgettableBefore } from '../../domain/store-age.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

export {
  type Absence,
  acceptAbsences,
  areSweepsStopped,
  forgetAbsence,
  listAbsences,
  noteAbsences,
} from './absences.ts'

export interface Removed {
  /** Of the object, as Kubernetes names it. */
  readonly kind: string
  /** Empty for what is in none. */
  readonly namespace: string
  readonly name: string
  /** Empty for what an operator decided about when it had no object. */
  readonly uid: string
}

/** Notes that it is to go. Writes nothing when that is noted already. */
export async function orderRemoval(
  db: Queries,
  removed: Removed,
  {
    reason,
    clock,
    random,
  }: { readonly reason: 'deleted' | 'operator'; readonly clock: Clock; readonly random: Random },
): Promise<void> {
  if ((await rowOf(db, removed).select('id').executeTakeFirst()) !== undefined) return
  await db
    .insertInto('removal')
    .values({ id: newUuid(random), ...removed, reason, ordered_at: clock.now() })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Notes that nothing is left of it: the name may be another's from now on. Writes nothing when nothing was ordered, or
 *  that is noted already. */
export async function confirmRemoval(db: Queries, removed: Removed, now: Date): Promise<void> {
  const order = await rowOf(db, removed).select('id').where('confirmed_at', 'is', null).executeTakeFirst()
  if (order !== undefined) await updateWhere(db, 'removal', { id: order.id }).set({ confirmed_at: now }).execute()
}

const rowOf = (db: Queries, { kind, namespace, name, uid }: Removed) =>
  selectWhere(db, 'removal', { kind, namespace, name, uid })

/** Of the kind, not carried out yet. */
export const listOpenRemovals = async (db: Queries, kind: string): Promise<readonly Removed[]> =>
  await selectWhere(db, 'removal', { kind })
    .select(['kind', 'namespace', 'name', 'uid'])
    .where('confirmed_at', 'is', null)
    .execute()

/** Whether the object of this uid was ordered to go, be it gone or not. */
export const wasRemovalOrdered = async (db: Queries, uid: string): Promise<boolean> =>
  uid !== '' && (await selectWhere(db, 'removal', { uid }).select('id').limit(1).executeTakeFirst()) !== undefined

/** Forgets what was carried out so long ago that no store which is put back may have it. */
export async function pruneRemovals(db: Queries, now: Date): Promise<void> {
  await db.deleteFrom('removal').where('confirmed_at', '<', forgettableBefore(now)).execute()
}
