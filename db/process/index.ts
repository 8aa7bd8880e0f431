/** The processes that use the database. An upgrade is finished only when none of an earlier release is among them. */
import type { Clock } from '../../kit/sys/clock.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { Outages } from '../../kit/sys/outages.ts'
import { newUuid, type Random } from '../../kit/sys/random.ts'
import { levelOf, migrate, type Migration, readMigrations } from '../kit/migrate.ts'
import type { Database } from '../kit/open.ts'
import { deleteWhere } from '../kit/where.ts'

const SIGN_MILLISECONDS = 60_000
/** A process without a sign for so long has ended, or has lost the database. */
const SILENT_MILLISECONDS = 5 * SIGN_MILLISECONDS
const DAY_MILLISECONDS = 86_400_000

interface Parts {
  readonly db: Database
  readonly clock: Clock
}

/** Shows each minute, until the signal aborts, that this process uses the database, and what it can work with. */
export async function showProcess(
  { component, version }: { readonly component: string; readonly version: string },
  { db, clock, random, log }: Parts & { readonly random: Random; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const [id, level] = [newUuid(random), levelOf(await readMigrations())]
  const outages = new Outages({ log, clock }, 'this process is not shown among those that use the database')
  while (!signal.aborted) {
    try {
      const now = clock.now()
      await db
        .insertInto('process')
        .values({ id, component, version, level, seen_at: now })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ seen_at: now }))
        .execute()
      await db.deleteFrom('process').where('seen_at', '<', before(now, DAY_MILLISECONDS)).execute()
      outages.over()
    } catch (error) {
      outages.failed(error)
    }
    await clock.sleep(SIGN_MILLISECONDS, signal)
  }
  await deleteWhere(db, 'process', { id })
    .execute()
    .catch((error: unknown) => log.info('this process is still shown among those that use the database', { error }))
}

/** Runs the migrations that take away what earlier releases use. Processes of those no longer start afterwards, and a
 *  deployment cannot be rolled back to them. Returns in words why not, and changes nothing then: processes of an
 *  earlier release were seen within five minutes. */
export async function finishUpgrade(
  { db, clock }: Parts,
  options: { readonly migrations?: Readonly<Record<string, Migration>> } = {},
): Promise<string | undefined> {
  const migrations = options.migrations ?? (await readMigrations())
  await migrate(db, { migrations })
  const needed = Object.values(migrations).flatMap(({ finishes }) => (finishes === undefined ? [] : [finishes]))
  const least = needed.toSorted().at(-1)
  if (least === undefined) return undefined
  const older = await db
    .selectFrom('process')
    .select(['component', 'version'])
    .where('seen_at', '>=', before(clock.now(), SILENT_MILLISECONDS))
    .where('level', '<', least)
    .distinct()
    .orderBy('component')
    .orderBy('version')
    .execute()
  if (older.length > 0) {
    const names = older.map(({ component, version }) => `${component} ${version}`).join(', ')
    return `The upgrade cannot be finished while processes of an earlier release run: ${names}. Replace them first.`
  }
  await migrate(db, { migrations, isFinishing: true })
  return undefined
}

const before = (now: Date, milliseconds: number): Date => new Date(now.getTime() - milliseconds)
