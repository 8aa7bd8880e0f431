import { expect, test } from 'vitest'
import {
  formatRecoveryCode,
  normalizeRecoveryCode,
  RECOVERY_CODE_BYTES,
  RECOVERY_CODES,
} from '../../../domain/identity/recovery-code.ts'

test('there are ten codes of eighty bits', () => expect([RECOVERY_CODES, RECOVERY_CODE_BYTES * 8]).toEqual([10, 80]))

test.each([
  [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0], '0000-0000-0000-0000'],
  [[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 'zzzz-zzzz-zzzz-zzzz'],
  [[0x00, 0x44, 0x32, 0x14, 0xc7, 0x42, 0x54, 0xb6, 0x35, 0xcf], '0123-4567-89ab-cdef'],
])('the bytes %j are written %s', (bytes, code) => expect(formatRecoveryCode(Uint8Array.from(bytes))).toBe(code))

test.each(['abcd-01ef-ghjk-1100', 'ABCD 01EF GHJK 1100', 'abcdOlefghjkIi0o', ' abcd-oLef-ghjk-iIOo '])(
  'what is typed as %s is the same code',
  (typed) => expect(normalizeRecoveryCode(typed)).toBe('abcd01efghjk1100'),
)
