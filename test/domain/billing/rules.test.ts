import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  amountAfter,
  type BillLine,
  billMonth,
  hourlyMillicents,
  type LiveResource,
  type MeteredHours,
  sumOf,
} from '../../../domain/billing/rules.ts'
import { monthOf } from '../../../domain/billing/transfer.ts'

const month = (text: string) => {
  const found = monthOf(text)
  if (found === undefined) throw new Error(text)
  return found
}
const MARCH = month('2026-03')
const thing = { resource: 1, resourceType: 'server', resourceId: 's', name: 'web', plan: 'tiny' }
const total = (lines: readonly BillLine[]) => sumOf(lines, ({ amountCents }) => amountCents)

/** So many hours from an hour of the month on, by day. */
function hoursFrom(start: Date, count: number, rest: Partial<MeteredHours> = {}): MeteredHours[] {
  const days = Map.groupBy(
    Array.from({ length: count }, (_, index) => new Date(start.getTime() + index * 3_600_000)),
    (at) => at.toISOString().slice(0, 10),
  )
  return [...days].map(([date, hours]) => ({
    ...thing,
    monthlyCents: 499,
    ...rest,
    date,
    firstHour: hours[0]?.getUTCHours() ?? 0,
    hours: hours.length,
  }))
}

test('a month of 730 hours costs the monthly price, for every price, and no month costs more', () => {
  for (let price = 0; price <= 200_000; price += price < 5_000 ? 1 : 997)
    expect([price, amountAfter(730, price), amountAfter(744, price)]).toEqual([price, price, price])
  expect(amountAfter(672, 499)).toBe(460)
  expect(hourlyMillicents(1_200)).toBe(1_644)
})

test('a large price and a large month stay whole numbers', () => {
  expect(amountAfter(1, 9_007_199_254_740)).toBe(12_338_629_116)
})

test('plans share 730 hours in the order of time', () => {
  const lines = billMonth(MARCH, {
    hours: [
      ...hoursFrom(new Date('2026-03-21T20:00:00Z'), 244, { plan: 'big', monthlyCents: 4_000 }),
      ...hoursFrom(MARCH.start, 500),
    ],
    transfers: [],
    live: [],
  })
  expect(lines.map(({ plan, hours, amountCents, capCents }) => [plan, hours, amountCents, capCents])).toEqual([
    ['tiny', 500, amountAfter(500, 499), 499],
    ['big', 244, amountAfter(230, 4_000), 4_000],
  ])
  expect(lines[1]?.days.at(-1)).toEqual({
    date: '2026-03-31',
    hours: 24,
    amountCents: amountAfter(230, 4_000) - amountAfter(220, 4_000),
  })
})

test('the estimate adds the remaining hours to what runs, and nothing to what has ended', () => {
  const live: LiveResource = { ...thing, monthlyCents: 499, meteredUntil: new Date('2026-03-02T00:00:00Z') }
  const ended = hoursFrom(MARCH.start, 10, { resource: 2, resourceId: 'gone' })
  const lines = billMonth(MARCH, { hours: [...hoursFrom(MARCH.start, 24), ...ended], transfers: [], live: [live] })
  expect(lines.map(({ resourceId, isActive, estimatedCents }) => [resourceId, isActive, estimatedCents])).toEqual([
    ['gone', false, amountAfter(10, 499)],
    ['s', true, 499],
  ])
  const [unmetered] = billMonth(MARCH, {
    hours: [],
    transfers: [],
    live: [{ ...live, meteredUntil: new Date('2026-03-31T12:00:00Z') }],
  })
  expect(unmetered).toMatchObject({ hours: 0, amountCents: 0, isActive: true, estimatedCents: amountAfter(12, 499) })
})

test('traffic costs beyond the allowance, on the days that go beyond it', () => {
  const tebibyte = 2 ** 40
  const day = (date: string, transmittedBytes: number) => ({ serverId: 's', serverName: 'web', date, transmittedBytes })
  const lines = billMonth(MARCH, {
    hours: [],
    transfers: [day('2026-03-03', 40 * tebibyte), day('2026-03-01', tebibyte), day('2026-03-02', 2 ** 29)],
    live: [],
  })
  expect(lines).toMatchObject([
    {
      resourceType: 'network_transfer',
      hours: 0,
      capCents: 0,
      amountCents: 40_961,
      days: [
        { date: '2026-03-02', amountCents: 1 },
        { date: '2026-03-03', amountCents: 40_960 },
      ],
    },
  ])
  expect(billMonth(MARCH, { hours: [], transfers: [day('2026-03-01', tebibyte)], live: [] })).toEqual([])
})

/** Hour by hour, with floating sums of nothing: the slow way to the same amounts. */
function billSlowly(
  hours: readonly MeteredHours[],
): Map<string, { cents: number; hours: number; days: Map<string, number> }> {
  const slow = new Map<string, { cents: number; hours: number; days: Map<string, number> }>()
  const single = hours
    .flatMap((piece) => Array.from({ length: piece.hours }, (_, index) => ({ ...piece, at: piece.firstHour + index })))
    .toSorted((one, other) => `${one.date} ${100 + one.at}`.localeCompare(`${other.date} ${100 + other.at}`))
  const taken = new Map<number, number>()
  const billed = new Map<string, bigint>()
  for (const hour of single) {
    const key = `${hour.resource} ${hour.plan} ${hour.monthlyCents}`
    const line = slow.get(key) ?? { cents: 0, hours: 0, days: new Map<string, number>() }
    slow.set(key, line)
    const count = (taken.get(hour.resource) ?? 0) + 1
    taken.set(hour.resource, count)
    if (count <= 730) billed.set(key, (billed.get(key) ?? 0n) + 1n)
    const hourly = (BigInt(hour.monthlyCents) * 1000n * 2n + 730n) / 1460n
    const exact = ((billed.get(key) ?? 0n) * hourly * 2n + 1000n) / 2000n
    const cents = Number(exact > BigInt(hour.monthlyCents) ? BigInt(hour.monthlyCents) : exact)
    line.hours++
    line.days.set(hour.date, (line.days.get(hour.date) ?? 0) + cents - line.cents)
    line.cents = cents
  }
  return slow
}

const LIFE = fc.record({
  resource: fc.integer({ min: 1, max: 3 }),
  from: fc.integer({ min: 0, max: 743 }),
  changes: fc.array(
    fc.record({
      hours: fc.integer({ min: 1, max: 400 }),
      plan: fc.constantFrom('tiny', 'big', 'huge'),
      monthlyCents: fc.integer({ min: 0, max: 300_000 }),
    }),
    { minLength: 1, maxLength: 6 },
  ),
})

test('days add up to their line, lines to the month, and both agree with the slow way', () => {
  fc.assert(
    fc.property(fc.uniqueArray(LIFE, { selector: ({ resource }) => resource, maxLength: 3 }), (lives) => {
      const hours = lives.flatMap(({ resource, from, changes }) => {
        let at = from
        return changes.flatMap((change) => {
          const count = Math.min(change.hours, 744 - at)
          const start = new Date(MARCH.start.getTime() + at * 3_600_000)
          at += count
          return hoursFrom(start, count, {
            resource,
            resourceId: `s${resource}`,
            plan: change.plan,
            monthlyCents: change.monthlyCents,
          })
        })
      })
      const lines = billMonth(MARCH, { hours: hours.toReversed(), transfers: [], live: [] })
      const slow = billSlowly(hours)
      expect(lines.length).toBe(slow.size)
      for (const line of lines) {
        const other = slow.get(`${line.resource} ${line.plan} ${line.capCents}`)
        expect([line.amountCents, line.hours]).toEqual([other?.cents, other?.hours])
        expect(sumOf(line.days, ({ amountCents }) => amountCents)).toBe(line.amountCents)
        expect(sumOf(line.days, (day) => day.hours)).toBe(line.hours)
        expect(new Map(line.days.map((day) => [day.date, day.amountCents]))).toEqual(other?.days)
        expect(line.amountCents).toBeLessThanOrEqual(line.capCents)
        expect(Math.min(...line.days.map(({ amountCents }) => amountCents))).toBeGreaterThanOrEqual(0)
        expect(line.estimatedCents).toBe(line.amountCents)
      }
      expect(total(lines)).toBe([...slow.values()].reduce((sum, { cents }) => sum + cents, 0))
    }),
  )
})
