/** The cost of servers' traffic: one TiB per server and calendar month (UTC) is free, then every byte is priced by the
 *  GiB. Whole numbers only: BigInt inside, because bytes times a price exceed the safe integers at nine terabytes. */

export const TRANSFER_ALLOWANCE_BYTES = 2 ** 40
export const TRANSFER_PRICE_MILLICENTS_PER_GIBIBYTE = 1_000
const GIBIBYTE = 2n ** 30n
const MILLICENTS_PER_CENT = 1_000n

export interface ServerTransfer {
  readonly serverId: string
  readonly serverName: string
  readonly receivedBytes: number
  /** Outgoing on the public interface; the only traffic that may cost. */
  readonly transmittedBytes: number
}

export interface BilledTransfer extends ServerTransfer {
  readonly billableBytes: number
  readonly amountCents: number
}

/** Half a cent is rounded up. */
export function billTransfer(transfer: ServerTransfer): BilledTransfer {
  const billableBytes = Math.max(0, transfer.transmittedBytes - TRANSFER_ALLOWANCE_BYTES)
  return {
    ...transfer,
    billableBytes,
    amountCents: Number(
      roundHalfUp(
        BigInt(billableBytes) * BigInt(TRANSFER_PRICE_MILLICENTS_PER_GIBIBYTE),
        GIBIBYTE * MILLICENTS_PER_CENT,
      ),
    ),
  }
}

/** Half is rounded up; both are whole and not negative. */
export const roundHalfUp = (numerator: bigint, denominator: bigint): bigint =>
  (2n * numerator + denominator) / (2n * denominator)

export interface Month {
  readonly start: Date
  /** The first instant of the next one. */
  readonly end: Date
}

const MONTH = /^(\d{4})-(0[1-9]|1[0-2])$/
/** Nothing was counted before that year, and Date maps years below 100 to others. */
const FIRST_YEAR = 1970

/** The calendar month of `YYYY-MM`; undefined when the text is invalid, or a month long before any servers. */
export function monthOf(text: string): Month | undefined {
  const [, year, month] = MONTH.exec(text) ?? []
  return year === undefined || month === undefined || Number(year) < FIRST_YEAR
    ? undefined
    : monthAt(Number(year), Number(month) - 1)
}

/** The calendar month that the instant is in. */
export const monthAround = (at: Date): Month => monthAt(at.getUTCFullYear(), at.getUTCMonth())

const monthAt = (year: number, month: number): Month => ({
  start: new Date(Date.UTC(year, month)),
  end: new Date(Date.UTC(year, month + 1)),
})
