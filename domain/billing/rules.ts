/** The cost of metered hours and traffic in a calendar month (UTC). Every sum is built from the same differences, so
 *  days always add up to their line and lines to the month, to the cent. Whole numbers only, BigInt inside. Pure. */
import { billTransfer, type Month, roundHalfUp } from './transfer.ts'

/** A month is billed as so many hours, regardless of the calendar. */
export const HOURS_PER_MONTH = 730
const MILLICENTS_PER_CENT = 1_000n
const HOUR_MILLISECONDS = 3_600_000

export const TRANSFER_RESOURCE_TYPE = 'network_transfer'

/** The price of an hour for a monthly price in cents, in thousandths of a cent, rounded half up. */
export const hourlyMillicents = (monthlyCents: number): number =>
  Number(roundHalfUp(BigInt(monthlyCents) * MILLICENTS_PER_CENT, BigInt(HOURS_PER_MONTH)))

/** The cost of so many billed hours, in cents: never more than the price of the month. */
export function amountAfter(hours: number, monthlyCents: number): number {
  const amount = roundHalfUp(BigInt(hours) * BigInt(hourlyMillicents(monthlyCents)), MILLICENTS_PER_CENT)
  return Math.min(monthlyCents, Number(amount))
}

interface BilledThing {
  readonly resourceType: string
  /** Its id in the API. */
  readonly resourceId: string
  readonly name: string
  /** Plan or tier; empty where there is none. */
  readonly plan: string
}

/** Metered hours of one day of a resource at one plan and price, one after the other. */
export interface MeteredHours extends BilledThing {
  /** Identifies the resource, regardless of its name. */
  readonly resource: number
  readonly monthlyCents: number
  /** `YYYY-MM-DD`. */
  readonly date: string
  /** 0 to 23. */
  readonly firstHour: number
  readonly hours: number
}

/** What a server sent on one day. */
export interface TransferDay {
  readonly serverId: string
  readonly serverName: string
  readonly date: string
  readonly transmittedBytes: number
}

/** A resource that continues to cost. */
export interface LiveResource extends BilledThing {
  readonly resource: number
  readonly monthlyCents: number
  /** Its hours before it are metered. */
  readonly meteredUntil: Date
}

export interface BillDay {
  readonly date: string
  readonly hours: number
  readonly amountCents: number
}

/** What one resource at one plan and price costs in a month. */
export interface BillLine extends BilledThing {
  /** Identifies the resource, regardless of its name; 0 for traffic. */
  readonly resource: number
  /** All metered hours; those of the resource beyond 730 cost nothing. */
  readonly hours: number
  readonly hourlyPriceMillicents: number
  /** The maximum cost; 0 without a maximum. */
  readonly capCents: number
  readonly amountCents: number
  /** The cost if it continues until the end of the month. */
  readonly estimatedCents: number
  readonly isActive: boolean
  /** In their order; those with hours or traffic that costs. They add up to the line. */
  readonly days: readonly BillDay[]
}

export interface MonthUsage {
  readonly hours: readonly MeteredHours[]
  readonly transfers: readonly TransferDay[]
  /** Those that continue; none for past months. */
  readonly live: readonly LiveResource[]
}

/** The lines of the month, in the order in which they are shown. */
export function billMonth(month: Month, { hours, transfers, live }: MonthUsage): readonly BillLine[] {
  const liveOf = new Map(live.map((each) => [each.resource, each]))
  const byResource = groupedBy(hours, ({ resource }) => resource)
  const liveServers = new Set(
    live.flatMap(({ resourceType, resourceId }) => (resourceType === 'server' ? [resourceId] : [])),
  )
  return [
    ...[...byResource].flatMap(([resource, pieces]) => billResource(month, resource, pieces, liveOf.get(resource))),
    ...live
      .filter(({ resource }) => !byResource.has(resource))
      .flatMap((each) => billResource(month, each.resource, [], each)),
    ...[...groupedBy(transfers, ({ serverId }) => serverId)].flatMap(([serverId, days]) =>
      billServerTransfer(days, liveServers.has(serverId)),
    ),
  ].sort(inOrder)
}

/** `Map.groupBy`, which Node 20 does not have: the command's package loads this. */
function groupedBy<Item, Key>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

const compare = <Value extends string | number>(one: Value, other: Value): number =>
  one < other ? -1 : one > other ? 1 : 0
const inOrder = (one: BillLine, other: BillLine): number => compare(orderOf(one), orderOf(other))
const orderOf = ({ resourceType, name, resourceId, plan, days }: BillLine): string =>
  [resourceType, name, resourceId, days[0]?.date ?? '', plan].join('\u0000')

interface OpenLine extends BilledThing {
  readonly monthlyCents: number
  hours: number
  billedHours: number
  readonly days: Map<string, { hours: number; amountCents: number }>
}

/** One line for each plan and price. Hours of all of them together cost until there are 730, in chronological order. */
function billResource(
  month: Month,
  resource: number,
  pieces: readonly MeteredHours[],
  live: LiveResource | undefined,
): readonly BillLine[] {
  const lines = new Map<string, OpenLine>()
  const lineOf = (thing: BilledThing & { readonly monthlyCents: number }): OpenLine => {
    const key = `${thing.monthlyCents} ${thing.plan}`
    const { resourceType, resourceId, name, plan, monthlyCents } = thing
    const line = lines.get(key) ?? {
      resourceType,
      resourceId,
      name,
      plan,
      monthlyCents,
      hours: 0,
      billedHours: 0,
      days: new Map(),
    }
    lines.set(key, line)
    return line
  }
  let metered = 0
  for (const piece of pieces.toSorted(inTime)) {
    const line = lineOf(piece)
    const before = amountAfter(line.billedHours, line.monthlyCents)
    line.hours += piece.hours
    line.billedHours += Math.min(piece.hours, Math.max(0, HOURS_PER_MONTH - metered))
    metered += piece.hours
    const day = line.days.get(piece.date) ?? { hours: 0, amountCents: 0 }
    line.days.set(piece.date, {
      hours: day.hours + piece.hours,
      amountCents: day.amountCents + amountAfter(line.billedHours, line.monthlyCents) - before,
    })
  }
  const active = live && lineOf(live)
  const toCome = live === undefined ? 0 : Math.min(hoursLeft(month, live), Math.max(0, HOURS_PER_MONTH - metered))
  return [...lines.values()].map((line) => ({
    resource,
    resourceType: line.resourceType,
    resourceId: line.resourceId,
    name: line.name,
    plan: line.plan,
    hours: line.hours,
    hourlyPriceMillicents: hourlyMillicents(line.monthlyCents),
    capCents: line.monthlyCents,
    amountCents: amountAfter(line.billedHours, line.monthlyCents),
    estimatedCents: amountAfter(line.billedHours + (line === active ? toCome : 0), line.monthlyCents),
    isActive: line === active,
    days: [...line.days].map(([date, day]) => ({ date, ...day })),
  }))
}

const inTime = (one: MeteredHours, other: MeteredHours): number =>
  compare(one.date, other.date) || one.firstHour - other.firstHour

/** Hours of the month that are not metered yet; started hours count. */
const hoursLeft = ({ start, end }: Month, { meteredUntil }: LiveResource): number =>
  Math.max(0, (end.getTime() - Math.max(start.getTime(), meteredUntil.getTime())) / HOUR_MILLISECONDS)

/** Nothing within the allowance; else one line without hours, whose days are what each added. */
function billServerTransfer(days: readonly TransferDay[], isActive: boolean): readonly BillLine[] {
  const billAll = (transmittedBytes: number) =>
    billTransfer({ serverId: '', serverName: '', receivedBytes: 0, transmittedBytes })
  let transmittedBytes = 0
  const billed = days
    .toSorted((one, other) => compare(one.date, other.date))
    .flatMap((day): BillDay[] => {
      const before = billAll(transmittedBytes)
      transmittedBytes += day.transmittedBytes
      const after = billAll(transmittedBytes)
      return after.billableBytes === before.billableBytes
        ? []
        : [{ date: day.date, hours: 0, amountCents: after.amountCents - before.amountCents }]
    })
  const [first] = days
  const { amountCents } = billAll(transmittedBytes)
  return first === undefined || billed.length === 0
    ? []
    : [
        {
          resource: 0,
          resourceType: TRANSFER_RESOURCE_TYPE,
          resourceId: first.serverId,
          name: days.at(-1)?.serverName ?? first.serverName,
          plan: '',
          hours: 0,
          hourlyPriceMillicents: 0,
          capCents: 0,
          amountCents,
          estimatedCents: amountCents,
          isActive,
          days: billed,
        },
      ]
}

export const sumOf = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0)

/** `YYYY-MM`. */
export const periodOf = ({ start }: Month): string => start.toISOString().slice(0, PERIOD_LENGTH)
const PERIOD_LENGTH = 'YYYY-MM'.length

/** The month before. */
export const monthBefore = ({ start }: Month): Month => ({
  start: new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() - 1)),
  end: start,
})

/** The remaining amount of a live credit. */
export interface LiveCredit {
  readonly id: string
  readonly label: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly leftCents: number
}

/** What each credit pays of the total: the earliest expiry first, then the oldest. Credits that pay nothing are left
 *  out. */
export function applyCredits(
  totalCents: number,
  credits: readonly LiveCredit[],
): readonly { readonly credit: LiveCredit; readonly amountCents: number }[] {
  let due = totalCents
  return credits.toSorted(soonestFirst).flatMap((credit) => {
    const amountCents = Math.min(due, credit.leftCents)
    due -= amountCents
    return amountCents > 0 ? [{ credit, amountCents }] : []
  })
}

const soonestFirst = (one: LiveCredit, other: LiveCredit): number =>
  compare(
    one.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
    other.expiresAt?.getTime() ?? Number.POSITIVE_INFINITY,
  ) ||
  compare(one.createdAt.getTime(), other.createdAt.getTime()) ||
  compare(one.id, other.id)
