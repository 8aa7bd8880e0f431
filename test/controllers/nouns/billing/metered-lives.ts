/** Random lives of resources through months, metered at random times by processes that come and go: hours are those of
 *  a plain model of the lives, and amounts those that SQL computes from the hours in its own way. */
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { readMonthUsage } from '../../../../db/billing/index.ts'
import { billMonth, sumOf } from '../../../../domain/billing/rules.ts'
import { monthOf } from '../../../../domain/billing/transfer.ts'
import { createAccount } from '../../../accounts.ts'
import { useDatabase } from '../../../database.ts'
import { type Handle, hoursOf, openMeteredCloud } from './metered-cloud.ts'
import { randomOf } from './random.ts'

const database = useDatabase()
const HOUR = 3_600_000
const START = Date.parse('2026-01-29T00:00:00Z')
const END = Date.parse('2026-04-02T05:00:00Z')
const PLANS = { tiny: 499, big: 4_001, huge: 123_457 }
type PlanName = keyof typeof PLANS
const NAMES = Object.keys(PLANS) as PlanName[] // its own keys

interface Life {
  readonly handle: Handle
  readonly created: number
  deleted: number
  /** Plans from their time on. */
  readonly plans: { readonly at: number; readonly plan: PlanName }[]
}

/** The hours of a life, one by one: of the plans that it had in an hour the dearest counts. */
function hoursOfLife({ created, deleted, plans }: Life): string[] {
  const hours: string[] = []
  for (let hour = Math.floor(created / HOUR) * HOUR; hour < Math.min(deleted, END); hour += HOUR) {
    if (hour + HOUR > END) break
    const first = plans.findLast((each) => each.at <= Math.max(hour, created))
    const later = plans.filter((each) => each.at > hour && each.at < Math.min(hour + HOUR, deleted))
    const [plan = 'tiny'] = [...(first === undefined ? [] : [first]), ...later]
      .map((each) => each.plan)
      .toSorted((one, other) => PLANS[other] - PLANS[one])
    hours.push(`${new Date(hour).toISOString().slice(0, 13)} server ${plan} ${PLANS[plan]}`)
  }
  return hours
}

interface SqlLine {
  readonly resource: number
  readonly plan: string
  readonly monthly_cents: number
  readonly hours: number
  readonly cents: number
}

/** Lines of the month from hours by window functions. */
const linesBySql = async (accountId: string, month: string): Promise<readonly SqlLine[]> =>
  (
    await sql<SqlLine>`
      with numbered as (
        select h.resource, l.plan, h.monthly_cents,
          row_number() over (partition by h.resource order by h.hour) as number
        from usage_hour h join billed_life l on l.id = h.life
        where l.account_id = ${accountId} and to_char(h.hour at time zone 'UTC', 'YYYY-MM') = ${month}
      )
      select resource, plan, monthly_cents, count(*) as hours,
        least(monthly_cents, floor(
          count(*) filter (where number <= 730) * floor(monthly_cents * 1000 / 730.0 + 0.5) / 1000 + 0.5
        ))::bigint as cents
      from numbered group by 1, 2, 3 order by 1, 2, 3`.execute(database.db)
  ).rows

/** Tests of the file that calls it. */
export const testLives = (seeds: readonly number[]): void =>
  test.each(seeds)('lives of seed %i', { timeout: 120_000 }, async (seed) => {
    const { db } = database
    await sql`truncate price, billed_resource, billed_life, usage_hour, usage_day`.execute(db)
    await sql`update metering set looked_at = null, metered_through = null`.execute(db)
    const random = randomOf(seed)
    const pick = (): PlanName => NAMES[random(NAMES.length)] ?? 'tiny'
    const accountId = await createAccount(db)
    const cloud = openMeteredCloud(db)
    for (const name of NAMES) cloud.plan(name, PLANS[name])
    cloud.at(new Date(START))
    await cloud.meter()
    const lives: Life[] = []
    for (let now = START; now < END; ) {
      // Sometimes to the very hour.
      now += random(4) === 0 ? HOUR - (now % HOUR) : 1_000 * (1 + random(60 * 60 * 14))
      if (now >= END) break
      cloud.at(new Date(now))
      const living = lives.filter(({ deleted }) => deleted === Number.POSITIVE_INFINITY)
      const chosen = living[random(Math.max(1, living.length))]
      const event = random(10)
      if (chosen === undefined || (event < 2 && living.length < 8)) {
        const plan = pick()
        lives.push({
          handle: cloud.server({ accountId, plan }),
          created: now,
          deleted: Number.POSITIVE_INFINITY,
          plans: [{ at: now, plan }],
        })
        if (random(3) === 0) cloud.restart()
      } else if (event < 4) {
        await chosen.handle.delete()
        chosen.deleted = now
      } else if (event < 7) {
        // Who changes plans looks, too, and has looked before.
        await cloud.meter()
        const plan = pick()
        chosen.handle.change({ plan })
        chosen.plans.push({ at: now, plan })
        await cloud.meter()
      } else if (event < 9) await Promise.all([cloud.meter(), cloud.meter()])
    }
    cloud.at(new Date(END + 200_000))
    await cloud.meter()
    expect((await hoursOf(db, accountId)).toSorted()).toEqual(lives.flatMap(hoursOfLife).toSorted())
    expect(lives.length).toBeGreaterThan(10)

    for (const name of ['2026-01', '2026-02', '2026-03', '2026-04']) {
      const month = monthOf(name)
      if (month === undefined) throw new Error(name)
      const lines = billMonth(month, await readMonthUsage(db, accountId, month))
      const slow = await linesBySql(accountId, name)
      expect(
        lines
          .map((line) => ({
            resource: line.resource,
            plan: line.plan,
            monthly_cents: line.capCents,
            hours: line.hours,
            cents: line.amountCents,
          }))
          .toSorted((one, other) => one.resource - other.resource || (one.plan < other.plan ? -1 : 1)),
      ).toEqual(slow)
      for (const line of lines) expect(sumOf(line.days, ({ amountCents }) => amountCents)).toBe(line.amountCents)
      if (name === '2026-03') expect(Math.max(...lines.map(({ hours }) => hours))).toBeGreaterThan(100)
    }
  })
