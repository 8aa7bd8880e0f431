/** Orders: deletions, recorded before they happen. A missing record is no order. Code that releases or removes what
 *  belongs to a deleted object checks here first. */
import { forgettableBefore } from '../../domain/store-age.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

export {
  type Absence,
  acceptAbsences,
  areSweepsStopped,
  countAbsences,
  forgetAbsence,
  listAbsences,
  noteAbsences,
} from './absences.ts'

export interface RemovedObject {
  /** Kind of the object, by its name in Kubernetes. */
  readonly kind: string
  /** Empty for objects in no namespace. */
  readonly namespace: string
  readonly name: string
  /** Empty for decisions of an operator about something that had no object. */
  readonly uid: string
}

/** Records that it must be deleted. Writes nothing when that is recorded already; but what an operator gave up, and
 *  what was made again under its name since, can be given up again. */
export async function orderRemoval(
  db: Queries,
  removed: RemovedObject,
  {
    reason,
    clock,
    random,
  }: { readonly reason: 'deleted' | 'operator'; readonly clock: Clock; readonly random: Random },
): Promise<void> {
  const row = await rowOf(db, removed).select(['id', 'confirmed_at']).executeTakeFirst()
  if (row !== undefined) {
    if (reason === 'operator' && row.confirmed_at !== null)
      await updateWhere(db, 'removal', { id: row.id }).set({ ordered_at: clock.now(), confirmed_at: null }).execute()
    return
  }
  await db
    .insertInto('removal')
    .values({ id: newUuid(random), ...removed, reason, ordered_at: clock.now() })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Records that nothing is left of it: another object may have the name from now on. Writes nothing when nothing was
 *  ordered, or that is recorded already. */
export async function confirmRemoval(db: Queries, removed: RemovedObject, now: Date): Promise<void> {
  const order = await rowOf(db, removed).select('id').where('confirmed_at', 'is', null).executeTakeFirst()
  if (order !== undefined) await updateWhere(db, 'removal', { id: order.id }).set({ confirmed_at: now }).execute()
}

const rowOf = (db: Queries, { kind, namespace, name, uid }: RemovedObject) =>
  selectWhere(db, 'removal', { kind, namespace, name, uid })

/** Orders of the kind that are not carried out yet. */
export const listOpenRemovals = async (db: Queries, kind: string): Promise<readonly RemovedObject[]> =>
  await selectWhere(db, 'removal', { kind })
    .select(['kind', 'namespace', 'name', 'uid'])
    .where('confirmed_at', 'is', null)
    .execute()

/** Whether the deletion of the object with this uid was ordered, carried out or not. */
export const wasRemovalOrdered = async (db: Queries, uid: string): Promise<boolean> =>
  uid !== '' && (await selectWhere(db, 'removal', { uid }).select('id').limit(1).executeTakeFirst()) !== undefined

/** Whether a deletion of this kind and name was ordered, by its customer or by an operator, carried out or not. For
 *  references that know a name only: the order for an earlier object of the name counts as well. */
export const wasRemovalOrderedByName = async (
  db: Queries,
  { kind, namespace, name }: Omit<RemovedObject, 'uid'>,
): Promise<boolean> =>
  (await selectWhere(db, 'removal', { kind, namespace, name }).select('id').limit(1).executeTakeFirst()) !== undefined

/** Whether the deletion of what has the name now was ordered, and is not carried out yet. */
export const isRemovalOpen = async (
  db: Queries,
  { kind, namespace, name }: Omit<RemovedObject, 'uid'>,
): Promise<boolean> =>
  (await selectWhere(db, 'removal', { kind, namespace, name })
    .select('id')
    .where('confirmed_at', 'is', null)
    .limit(1)
    .executeTakeFirst()) !== undefined

/** Whether an operator gave it up after that time. For names that are used again: the uid of such an order is not
 *  known. */
export const wasGivenUpSince = async (
  db: Queries,
  { kind, namespace, name }: Omit<RemovedObject, 'uid'>,
  since: Date,
): Promise<boolean> =>
  (await selectWhere(db, 'removal', { kind, namespace, name, reason: 'operator' })
    .select('id')
    .where('ordered_at', '>=', since)
    .limit(1)
    .executeTakeFirst()) !== undefined

/** Forgets orders that were carried out so long ago that no restored store may have the object. */
export async function pruneRemovals(db: Queries, now: Date): Promise<void> {
  await db.deleteFrom('removal').where('confirmed_at', '<', forgettableBefore(now)).execute()
}
