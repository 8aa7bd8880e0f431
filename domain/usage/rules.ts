/** Traffic of guests on networks and disks: counters, and the series that are built from them. Pure. */

/** Counted from some start; each only grows. int64. */
export interface Counters {
  readonly networkReceivedBytes: number
  readonly networkTransmittedBytes: number
  readonly diskReadBytes: number
  readonly diskWrittenBytes: number
  readonly diskReadOperations: number
  readonly diskWriteOperations: number
}

/** What a guest uses, as far as its host and the guest report it: null for the rest. */
export interface Load {
  /** Processor time, which only grows. */
  readonly cpuMilliseconds: number | null
  readonly memoryUsedBytes: number | null
}

export const NO_LOAD: Load = { cpuMilliseconds: null, memoryUsedBytes: null }

/** Processor time since then; null without both readings. The first reading of a process counts nothing: it may be as
 *  old as the process. */
export const cpuGrowth = (before: number | null, after: number | null): number | null =>
  before === null || after === null ? null : Math.max(0, after - before)

/** The larger of two values, of those that are there. */
export const largest = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.max(one, other)

/** The loads of processes of one guest on two hosts: it moves. */
export const addLoads = (one: Load, other: Load): Load => ({
  cpuMilliseconds:
    one.cpuMilliseconds === null && other.cpuMilliseconds === null
      ? null
      : (one.cpuMilliseconds ?? 0) + (other.cpuMilliseconds ?? 0),
  memoryUsedBytes: largest(one.memoryUsedBytes, other.memoryUsedBytes),
})

export const NO_COUNTERS: Counters = {
  networkReceivedBytes: 0,
  networkTransmittedBytes: 0,
  diskReadBytes: 0,
  diskWrittenBytes: 0,
  diskReadOperations: 0,
  diskWriteOperations: 0,
}

const each = (of: (counter: keyof Counters) => number): Counters => ({
  networkReceivedBytes: of('networkReceivedBytes'),
  networkTransmittedBytes: of('networkTransmittedBytes'),
  diskReadBytes: of('diskReadBytes'),
  diskWrittenBytes: of('diskWrittenBytes'),
  diskReadOperations: of('diskReadOperations'),
  diskWriteOperations: of('diskWriteOperations'),
})

/** The increase since then. A reading that is behind the previous one is an old one that came late, and adds
 *  nothing. */
export const growth = (before: Counters, after: Counters): Counters =>
  each((counter) => Math.max(0, after[counter] - before[counter]))

/** The later of two readings of the same counters, in either order. */
export const newest = (one: Counters, other: Counters): Counters =>
  each((counter) => Math.max(one[counter], other[counter]))

export const METRICS_PERIODS = ['1h', '24h', '7d', '30d'] as const
export type MetricsPeriod = (typeof METRICS_PERIODS)[number]

/** Each period has a step that people can still see in a chart of it. */
const PERIODS: Readonly<Record<MetricsPeriod, { readonly seconds: number; readonly stepSeconds: number }>> = {
  '1h': { seconds: 3_600, stepSeconds: 60 },
  '24h': { seconds: 86_400, stepSeconds: 900 },
  '7d': { seconds: 604_800, stepSeconds: 3_600 },
  '30d': { seconds: 2_592_000, stepSeconds: 14_400 },
}

/** How long a point of the series is. */
export const stepSecondsOf = (period: MetricsPeriod): number => PERIODS[period].stepSeconds

/** Every step in which usage is stored, and for how long. */
export const STEPS: readonly { readonly stepSeconds: number; readonly keptSeconds: number }[] = METRICS_PERIODS.map(
  (period) => ({
    stepSeconds: PERIODS[period].stepSeconds,
    keptSeconds: PERIODS[period].seconds + PERIODS[period].stepSeconds,
  }),
)

/** The start of the step that contains the instant. Steps are aligned to the epoch, so that they are the same for
 *  everybody. */
export const stepOf = (at: Date, stepSeconds: number): Date =>
  new Date(Math.floor(at.getTime() / (stepSeconds * 1_000)) * stepSeconds * 1_000)

export interface Point extends Counters, Load {
  readonly at: Date
}

/** The start of the first step of a series that ends with the current step. */
export function seriesStart(period: MetricsPeriod, now: Date): Date {
  const { seconds, stepSeconds } = PERIODS[period]
  return new Date(stepOf(now, stepSeconds).getTime() - (seconds - stepSeconds) * 1_000)
}

/** One point per step, oldest first, zero where nothing was counted, null where no load was measured; the last step is
 *  incomplete. `points` may be in
 *  any order. */
export function seriesOf(period: MetricsPeriod, points: readonly Point[], now: Date): Point[] {
  const { seconds, stepSeconds } = PERIODS[period]
  const counted = new Map(points.map((point) => [point.at.getTime(), point]))
  const start = seriesStart(period, now).getTime()
  return Array.from({ length: seconds / stepSeconds }, (_, index) => {
    const at = new Date(start + index * stepSeconds * 1_000)
    return counted.get(at.getTime()) ?? { at, ...NO_COUNTERS, ...NO_LOAD }
  })
}
