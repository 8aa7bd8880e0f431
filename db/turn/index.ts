/** Turns: a process that must be the only one to talk to something outside of the database takes the turn instead of
 *  holding a row lock meanwhile. A turn expires, so that a process that died blocks nobody for good. */
import type { Transaction } from 'kysely'
import { Unavailable } from '../../domain/problem.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import type { Database } from '../kit/open.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface Turn {
  /** Must be called in the transaction that records the work: it is committed only while the turn is ours. Throws
   *  Unavailable. */
  require(tx: Transaction<Tables>): Promise<void>
}

export interface TurnOptions {
  /** The subject of the turns: one process has its turn at a time. */
  readonly name: string
  /** How long to wait for it; 0 to give up at once. */
  readonly waitMilliseconds: number
}

interface Parts {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}

/** A turn expires after this long without renewal: others wait so long after a process has died. */
const LASTS_MILLISECONDS = 10_000
const RENEW_MILLISECONDS = 2_500
const LOOK_MILLISECONDS_FIRST = 20
const LOOK_MILLISECONDS_MAXIMUM = 500

/** Does the work when it gets the turn; returns the result of `ifBusy` when others have it for too long. Holds no
 *  connection while it waits or works. */
export async function inTurn<Result>(
  parts: Parts,
  options: TurnOptions,
  work: (turn: Turn) => Promise<Result>,
  ifBusy: () => Result,
): Promise<Result> {
  const { db, clock } = parts
  const { name, waitMilliseconds } = options
  const holder = newUuid(parts.random)
  const ends = () => new Date(clock.now().getTime() + LASTS_MILLISECONDS)
  const waitUntil = clock.monotonicMilliseconds() + waitMilliseconds
  for (let pause = LOOK_MILLISECONDS_FIRST; !(await take(db, { name, holder, ends_at: ends() }, clock.now())); ) {
    if (clock.monotonicMilliseconds() + pause > waitUntil) return ifBusy()
    await clock.sleep(pause)
    pause = Math.min(pause * 2, LOOK_MILLISECONDS_MAXIMUM)
  }
  const ended = new AbortController()
  const renewing = renew(parts, { name, holder, ends }, ended.signal)
  try {
    return await work({
      async require(tx) {
        const ours = await selectWhere(tx, 'turn', { name, holder }).select('name').forUpdate().executeTakeFirst()
        if (ours === undefined) throw new Unavailable('the database')
      },
    })
  } finally {
    ended.abort()
    await renewing
    // If this fails, the turn expires.
    await deleteWhere(db, 'turn', { name, holder })
      .execute()
      .catch(() => {})
  }
}

/** Renews until the signal aborts. A turn that could not be renewed may be taken by another process: `require` detects
 *  it. */
async function renew(
  { db, clock }: Parts,
  { name, holder, ends }: { readonly name: string; readonly holder: string; readonly ends: () => Date },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(RENEW_MILLISECONDS, signal)
    if (signal.aborted) return
    await updateWhere(db, 'turn', { name, holder })
      .set({ ends_at: ends() })
      .execute()
      .catch(() => {})
  }
}

/** One statement, so that of two concurrent callers one is first. */
async function take(
  db: Database,
  turn: { readonly name: string; readonly holder: string; readonly ends_at: Date },
  now: Date,
): Promise<boolean> {
  const { holder, ends_at } = turn
  const row = await db
    .insertInto('turn')
    .values(turn)
    .onConflict((on) => on.column('name').doUpdateSet({ holder, ends_at }).where('turn.ends_at', '<=', now))
    .returning('name')
    .executeTakeFirst()
  return row !== undefined
}
