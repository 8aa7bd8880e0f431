/** When backups are due: schedules of five fields in cron's format, in UTC, at most once in an hour. The fields are the
 *  minute, hours, days of the month, months and days of the week (0 and 7 are Sunday). Each is a star, a number, a
 *  range or a list of those; ranges and stars may have a step. As in cron, a day is due by either of its two fields
 *  when both are restricted. */

export interface BackupSchedule {
  readonly minute: number
  readonly hours: readonly number[]
  readonly isDue: (day: Date) => boolean
}

export const BACKUP_SCHEDULE_CHARACTERS_MAXIMUM = 64

/** Inclusive. */
interface Bounds {
  readonly name: string
  readonly first: number
  readonly last: number
}
const FIELDS: readonly Bounds[] = [
  { name: 'minute', first: 0, last: 59 },
  { name: 'hour', first: 0, last: 23 },
  { name: 'day of the month', first: 1, last: 31 },
  { name: 'month', first: 1, last: 12 },
  { name: 'day of the week', first: 0, last: 7 },
]
const PART = /^(?:(\*)|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,2}))?$/
const DAY_MILLISECONDS = 86_400_000
/** 29 February may be eight years away. */
const SEARCH_DAYS = 8 * 366 + 1

/** The schedule, or what is wrong with it, as words that complete "backup_schedule". */
export function parseBackupSchedule(text: string): BackupSchedule | { readonly fault: string } {
  const fields = text.trim().split(/\s+/)
  if (text.length > BACKUP_SCHEDULE_CHARACTERS_MAXIMUM || fields.length !== FIELDS.length)
    return { fault: 'must be five fields such as "30 3 * * *": minute, hour, day of the month, month, day of the week' }
  const values: (readonly number[])[] = []
  for (const [index, bounds] of FIELDS.entries()) {
    const found = valuesOf(fields[index] ?? '', bounds)
    if (found === undefined)
      return { fault: `has no ${bounds.name} of ${bounds.first} to ${bounds.last}: ${fields[index]}` }
    values.push(found)
  }
  const [minutes = [], hours = [], days = [], months = [], weekdays = []] = values
  const [minute = 0, another] = minutes
  if (another !== undefined) return { fault: 'must name one minute: a backup is made at most once in an hour' }
  const isEither = !fields[2]?.startsWith('*') && !fields[4]?.startsWith('*')
  const schedule: BackupSchedule = {
    minute,
    hours,
    isDue(day) {
      const isDay = days.includes(day.getUTCDate())
      const isWeekday = weekdays.some((weekday) => weekday % 7 === day.getUTCDay())
      return months.includes(day.getUTCMonth() + 1) && (isEither ? isDay || isWeekday : isDay && isWeekday)
    },
  }
  return nextSlot(schedule, new Date(0)) === undefined ? { fault: 'names a day that never comes' } : schedule
}

/** Ascending, each once; undefined when the field is invalid. */
function valuesOf(field: string, { first, last }: Bounds): readonly number[] | undefined {
  const found = new Set<number>()
  for (const part of field.split(',')) {
    const [match, star, from, to, step] = PART.exec(part) ?? []
    if (match === undefined || (step !== undefined && star === undefined && to === undefined)) return undefined
    const low = star === undefined ? Number(from) : first
    const high = star === undefined ? Number(to ?? from) : last
    const by = Number(step ?? 1)
    if (low < first || high > last || low > high || by < 1) return undefined
    for (let value = low; value <= high; value += by) found.add(value)
  }
  return [...found].sort((one, other) => one - other)
}

/** The first instant after `after` at which a backup is due. */
export const nextSlot = (schedule: BackupSchedule, after: Date): Date | undefined =>
  search(schedule, after, 1, (slot) => slot > after)

/** The last due instant in (after, now]. Earlier ones were missed, and are not made up for one by one. */
export function dueSlot(schedule: BackupSchedule, { after, now }: { readonly after: Date; readonly now: Date }) {
  const slot = search(schedule, now, -1, (each) => each <= now)
  return slot !== undefined && slot > after ? slot : undefined
}

function search(
  schedule: BackupSchedule,
  from: Date,
  direction: 1 | -1,
  isWanted: (slot: Date) => boolean,
): Date | undefined {
  const midnight = Math.floor(from.getTime() / DAY_MILLISECONDS) * DAY_MILLISECONDS
  const hours = direction === 1 ? schedule.hours : schedule.hours.toReversed()
  for (let days = 0; days < SEARCH_DAYS; days++) {
    const day = new Date(midnight + direction * days * DAY_MILLISECONDS)
    if (!schedule.isDue(day)) continue
    for (const hour of hours) {
      const slot = new Date(day.getTime() + (hour * 60 + schedule.minute) * 60_000)
      if (isWanted(slot)) return slot
    }
  }
  return undefined
}
