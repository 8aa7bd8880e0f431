import { expect, test } from 'vitest'
import {
  archiveQuotaBytes,
  archiveRoomOf,
  archiveRoomText,
  billedArchiveGibibytes,
  boundedQuotaBytes,
  UNBOUNDED_BYTES,
} from '../../../domain/database/archive-room.ts'

const GIBIBYTE = 1024 ** 3
const gibibytes = (count: number): number => count * GIBIBYTE

test('an archive may hold eight times its storage, and 50 GiB at least', () => {
  expect([1, 6, 7, 100].map((storage) => archiveQuotaBytes(storage) / GIBIBYTE)).toEqual([50, 50, 56, 800])
})

test('usage above four times the storage is billed, rounded up to GiB', () => {
  const billed = [0, 40, 40.001, 41, 41.5, 80].map((used) => billedArchiveGibibytes(gibibytes(used), 10))
  expect(billed).toEqual([0, 0, 1, 1, 2, 40])
})

test('its owner reads what is billed, and what it may hold when that is near', () => {
  const rooms = [40, 41, 72, 80].map((used) => archiveRoomOf(gibibytes(used), 10))
  expect(rooms).toEqual(['enough', 'over_allowance', 'nearly_full', 'full'])
  const texts = [40, 41, 72].map((used) => archiveRoomText(gibibytes(used), 10))
  expect(texts).toEqual([
    '',
    'Its archive holds 41 GiB, of which 1 are billed as object storage.',
    'Its archive holds 72 GiB, of which 32 are billed as object storage; it may hold 80: keep backups for ' +
      'fewer days, or restore into a larger database.',
  ])
})

test('one that outgrew the quota while there was none is held to it once it is smaller', () => {
  const before = (used: number) => ({ quotaBytes: UNBOUNDED_BYTES, usedBytes: gibibytes(used) })
  expect(boundedQuotaBytes(10, before(65))).toBe(UNBOUNDED_BYTES)
  expect(boundedQuotaBytes(10, before(64))).toBe(gibibytes(80))
  expect(boundedQuotaBytes(10, { quotaBytes: gibibytes(80), usedBytes: gibibytes(79) })).toBe(gibibytes(80))
  expect(boundedQuotaBytes(10, undefined)).toBe(gibibytes(80))
})
