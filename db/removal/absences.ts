/** Objects that are missing although nobody deleted them. Many at once are not accidents of single objects: a store was
 *  restored to an older state. Then no sweep removes anything until an operator has checked. */
import { sql } from 'kysely'
import { chunksOf } from '../kit/chunks.ts'
import type { Database, Queries } from '../kit/open.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

/** Kinds of resources that may be missing: objects by their kind, rows of the network, tenants of object storage,
 *  control planes. */
export type AbsentKind = string

export interface Absence {
  readonly namespace: string
  readonly name: string
}

/** How many of a kind may turn out to be missing in one round, or one in a hundred of them, whichever is more. */
export const ABSENCES_TOLERATED = { count: 3, share: 0.01 }

const keyOf = ({ namespace, name }: Absence): string => `${namespace}/${name}`

/** Records which of a kind are missing. `known`: how many there are altogether, including those. Anything not in
 *  `absent` has returned or is no longer owned. Returns how many turned up in this round, and whether these are so many
 *  that every sweep stops. */
export async function noteAbsences(
  db: Database,
  kind: AbsentKind,
  {
    known,
    absent,
    isOwn = () => true,
  }: {
    readonly known: number
    readonly absent: readonly Absence[]
    /** Which of the recorded absences the caller handles; all when absent. */
    readonly isOwn?: (absence: Absence) => boolean
  },
  now: Date,
): Promise<{ readonly found: number; readonly isMass: boolean }> {
  return await db.transaction().execute(async (tx) => {
    const noted = await listAbsences(tx, { kind })
    const before = new Set(noted.map(keyOf))
    const after = new Set(absent.map(keyOf))
    for (const one of noted) if (!after.has(keyOf(one)) && isOwn(one)) await forgetAbsence(tx, kind, one)
    const found = absent.filter((one) => !before.has(keyOf(one)))
    const isMass = found.length > Math.max(ABSENCES_TOLERATED.count, known * ABSENCES_TOLERATED.share)
    const rows = found.map(({ namespace, name }) => ({ kind, namespace, name, found_at: now, stops_sweeps: isMass }))
    for (const part of chunksOf(rows))
      await tx
        .insertInto('absence')
        .values(part)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
    return { found: found.length, isMass }
  })
}

export const listAbsences = async (
  db: Queries,
  { kind, name, limit }: { readonly kind?: AbsentKind; readonly name?: string; readonly limit?: number } = {},
): Promise<
  readonly (Absence & { readonly kind: AbsentKind; readonly foundAt: Date; readonly stopsSweeps: boolean })[]
> =>
  (
    await db
      .selectFrom('absence')
      .selectAll()
      .$if(kind !== undefined, (query) => query.where('kind', '=', kind ?? ''))
      .$if(name !== undefined, (query) => query.where('name', '=', name ?? ''))
      .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
      .orderBy('kind')
      .orderBy('namespace')
      .orderBy('name')
      .execute()
  ).map(({ found_at: foundAt, stops_sweeps: stopsSweeps, ...of }) => ({ ...of, foundAt, stopsSweeps }))

export interface AbsencesOfKind {
  readonly kind: AbsentKind
  readonly count: number
  /** When the first of them was found. */
  readonly since: Date
  /** How many of them stop sweeps, and since when; null for none. */
  readonly stopping: number
  readonly stoppingSince: Date | null
}

/** How many are missing of each kind, however many that are. */
export async function countAbsences(db: Queries): Promise<readonly AbsencesOfKind[]> {
  const { rows } = await sql<AbsencesOfKind>`select kind, count(*)::int as count, min(found_at) as since,
      count(*) filter (where stops_sweeps)::int as stopping,
      min(found_at) filter (where stops_sweeps) as "stoppingSince"
    from absence group by kind order by kind`.execute(db)
  return rows
}

export const forgetAbsence = async (db: Queries, kind: AbsentKind, { namespace, name }: Absence): Promise<void> =>
  void (await deleteWhere(db, 'absence', { kind, namespace, name }).execute())

/** Whether so much went missing at once that nothing is removed for being missing until an operator has checked. */
export const areSweepsStopped = async (db: Queries): Promise<boolean> =>
  (await selectWhere(db, 'absence', { stops_sweeps: true }).select('name').limit(1).executeTakeFirst()) !== undefined

/** An operator has checked: sweeps continue. Missing objects remain recorded as missing. */
export async function acceptAbsences(db: Queries): Promise<void> {
  await updateWhere(db, 'absence', { stops_sweeps: true }).set({ stops_sweeps: false }).execute()
}
