/** Numbers, money, sizes and times in the reader's language. */
import { now } from '../system.ts'
import { locale } from './locale.ts'

const DASH = '–'
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export const number = (value: number, digits = 0): string =>
  new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(value)

/** A count of which only the first page is known: `100+`. */
export const atLeast = (count: number, hasMore: boolean): string => `${number(count)}${hasMore ? '+' : ''}`

/** Cents of a euro. */
export const money = (cents: number): string =>
  new Intl.NumberFormat(locale(), { style: 'currency', currency: 'EUR' }).format(cents / 100)

/** Cents of a euro, as a person types them. */
export const typedAmount = (cents: number): string => (cents / 100).toFixed(2)

export const CURRENCY = '€'

/** Thousandths of a cent: small amounts keep four digits. */
export const smallMoney = (millicents: number): string =>
  new Intl.NumberFormat(locale(), { style: 'currency', currency: 'EUR', maximumFractionDigits: 4 }).format(
    millicents / 100_000,
  )

export const gibibytes = (size: number): string => `${number(size)} GiB`

export const mebibytes = (size: number): string =>
  size >= 1024 ? `${number(size / 1024, 1)} GiB` : `${number(size)} MiB`

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function bytes(size: number): string {
  const power = Math.min(UNITS.length - 1, size < 1 ? 0 : Math.floor(Math.log2(size) / 10))
  return `${number(size / 1024 ** power, power === 0 ? 0 : 1)} ${UNITS[power]}`
}

/** An instant, in words from now. */
export function ago(instant: string | null): string {
  if (instant === null) return DASH
  const difference = Date.parse(instant) - now()
  const size = Math.abs(difference)
  const relative = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto', style: 'long' })
  if (size < MINUTE) return relative.format(0, 'second')
  if (size < HOUR) return relative.format(Math.trunc(difference / MINUTE), 'minute')
  if (size < DAY) return relative.format(Math.trunc(difference / HOUR), 'hour')
  if (size < 30 * DAY) return relative.format(Math.trunc(difference / DAY), 'day')
  return day(instant)
}

export const day = (instant: string): string =>
  new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date(instant))

/** The instant in full, in UTC. */
export const utc = (instant: string): string =>
  `${new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' }).format(
    new Date(instant),
  )} UTC`

/** Seconds since 1970, as a day and a time of day. */
export const minute = (seconds: number): string =>
  new Intl.DateTimeFormat(locale(), {
    hour: '2-digit',
    minute: '2-digit',
    hour12: false,
    day: '2-digit',
    month: 'short',
    timeZone: 'UTC',
  }).format(new Date(seconds * 1000))

/** `one`, `other`: how the language counts. */
export const plural = (count: number, one: string, other: string): string =>
  new Intl.PluralRules(locale()).select(count) === 'one' ? one : other
