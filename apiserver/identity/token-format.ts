/** The text of an API token: `svccloud_` + `r_` (scope read) or `w_` + 40 base62 characters + 6 characters of the
 *  CRC-32 of all before them, so that scanners find leaked tokens offline and typing errors are refused without a
 *  lookup. */
import { crc32 } from 'node:zlib'
import type { TokenScope } from '../../domain/permissions.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const TOKEN_SECRET_CHARACTERS = 40
const CHECKSUM_CHARACTERS = 6
const TOKEN = /^svccloud_[rw]_[0-9A-Za-z]{46}$/

/** The token around `secret`, 40 random base62 characters. */
export function formatToken(scope: TokenScope, secret: string): string {
  const text = `svccloud_${scope === 'read' ? 'r' : 'w'}_${secret}`
  return text + checksum(text)
}

/** Whether the text has the form of a token and its checksum holds; says nothing about whether it was ever given out.
 */
export const isToken = (text: string): boolean =>
  TOKEN.test(text) && checksum(text.slice(0, -CHECKSUM_CHARACTERS)) === text.slice(-CHECKSUM_CHARACTERS)

/** CRC-32 (IEEE) in base62, most significant digit first. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  while (digits.length < CHECKSUM_CHARACTERS) {
    digits = BASE62.charAt(rest % 62) + digits
    rest = Math.floor(rest / 62)
  }
  return digits
}
