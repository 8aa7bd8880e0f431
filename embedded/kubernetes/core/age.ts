/** Formats ages like kubectl: at most two units, coarser for longer ages. */
const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400
const YEAR = 365 * DAY

const two = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`

/** `2m19s`, `5d3h`; `<unknown>` when the text is not a time. */
export function ageOf(since: string, now: Date): string {
  const at = Date.parse(since)
  return Number.isNaN(at) ? '<unknown>' : durationText(Math.floor((now.getTime() - at) / 1000))
}

/** Formats a duration like an age in `kubectl get`. */
export function durationText(seconds: number): string {
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 2 * MINUTE) return `${seconds}s`
  const minutes = Math.floor(seconds / MINUTE)
  if (minutes < 10) return two(minutes, 'm', seconds % MINUTE, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(seconds / HOUR)
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(seconds / DAY)
  if (hours < 192) return two(days, 'd', hours % 24, 'h')
  if (seconds < 2 * YEAR) return `${days}d`
  const years = Math.floor(seconds / YEAR)
  return seconds < 8 * YEAR ? two(years, 'y', days % 365, 'd') : `${years}y`
}
