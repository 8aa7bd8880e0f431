/** The billed amount of stored bytes in an hour: the maximum measured in it. Pure. */

const HOUR_MILLISECONDS = 3_600_000

export interface Measurement {
  /** ISO 8601. */
  readonly measuredAt: string
  readonly bytes: number
  /** The maximum measured in the same clock hour (UTC), if it is known. */
  readonly highestBytes?: number | undefined
}

/** Of the last measurement, and of its clock hour (UTC). */
export interface MeteredBytes {
  /** Start of the hour, ISO 8601. */
  readonly hour: string
  readonly bytes: number
  readonly highestBytes: number
}

/** Start of the clock hour (UTC) that the moment is in. */
export const hourOf = (at: Date): Date => new Date(Math.floor(at.getTime() / HOUR_MILLISECONDS) * HOUR_MILLISECONDS)

/** The state after one more measurement. */
export function meteredAfter(before: MeteredBytes | undefined, measurement: Measurement): MeteredBytes {
  const { measuredAt, bytes, highestBytes = bytes } = measurement
  const hour = hourOf(new Date(measuredAt)).toISOString()
  return { hour, bytes, highestBytes: Math.max(bytes, highestBytes, before?.hour === hour ? before.highestBytes : 0) }
}

/** The billed bytes of the current hour: its maximum, or the last measurement while it has none. */
export const billedBytes = ({ hour, bytes, highestBytes }: MeteredBytes, now: Date): number =>
  hour === hourOf(now).toISOString() ? highestBytes : bytes
