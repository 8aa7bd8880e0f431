import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { billTransfer, monthAround, monthOf, TRANSFER_ALLOWANCE_BYTES } from '../../../domain/billing/transfer.ts'

const GIBIBYTE = 2 ** 30
const bill = (transmittedBytes: number) =>
  billTransfer({ serverId: 's', serverName: 'web', receivedBytes: 2 ** 50, transmittedBytes })

describe('the price of transfer', () => {
  it.each([
    ['nothing', 0, 0, 0],
    ['the whole allowance', TRANSFER_ALLOWANCE_BYTES, 0, 0],
    ['a byte more', TRANSFER_ALLOWANCE_BYTES + 1, 1, 0],
    ['a byte less than half a GiB more', TRANSFER_ALLOWANCE_BYTES + GIBIBYTE / 2 - 1, GIBIBYTE / 2 - 1, 0],
    ['half a GiB more', TRANSFER_ALLOWANCE_BYTES + GIBIBYTE / 2, GIBIBYTE / 2, 1],
    ['a GiB more', TRANSFER_ALLOWANCE_BYTES + GIBIBYTE, GIBIBYTE, 1],
    [
      'nine terabytes more, beyond what floating point multiplies exactly',
      TRANSFER_ALLOWANCE_BYTES + 9_007 * GIBIBYTE,
      9_007 * GIBIBYTE,
      9_007,
    ],
    ['a petabyte', 2 ** 50, 2 ** 50 - 2 ** 40, 1_047_552],
  ])('%s', (_name, transmitted, billable, cents) => {
    expect(bill(transmitted)).toMatchObject({ billableBytes: billable, amountCents: cents })
  })

  it('is a cent a GiB, to the nearest cent', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 52 }), (billable) => {
        const { amountCents } = bill(TRANSFER_ALLOWANCE_BYTES + billable)
        const twice = 2n * BigInt(amountCents) * BigInt(GIBIBYTE)
        expect(
          twice - 2n * BigInt(billable) <= BigInt(GIBIBYTE) && twice - 2n * BigInt(billable) > -BigInt(GIBIBYTE),
        ).toBe(true)
      }),
    )
  })
})

describe('a month', () => {
  it('is a calendar month in UTC', () => {
    expect(monthOf('2026-12')).toEqual({
      start: new Date('2026-12-01T00:00:00Z'),
      end: new Date('2027-01-01T00:00:00Z'),
    })
    expect(monthAround(new Date('2026-01-31T23:59:59.999Z'))).toEqual(monthOf('2026-01'))
  })
  it('may be the first that a clock knows', () =>
    expect(monthOf('1970-01')?.start).toEqual(new Date('1970-01-01T00:00:00Z')))
  it.each(['2026-13', '2026-1', '2026', '0000-01', '0050-01', '1969-12', 'x'])('is not %s', (text) =>
    expect(monthOf(text)).toBeUndefined(),
  )
})
