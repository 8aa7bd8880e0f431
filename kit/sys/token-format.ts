/** The text of a token: `svccloud_` + `r_` (of a person, scope read), `w_` (of a person) or `c_` (of a cluster) + 40
 *  base62 characters + 6 characters of the CRC-32 of all before them, so that scanners find leaked tokens offline and
 *  typing errors are refused without a lookup. */
import { crc32 } from 'node:zlib'
import type { TokenScope } from '../../domain/permissions.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
export const TOKEN_SECRET_CHARACTERS = 40
const CHECKSUM_CHARACTERS = 6
const TOKEN = /^svccloud_([rwc])_[0-9A-Za-z]{46}$/

/** The token of a person around `secret`, 40 random base62 characters. */
export const formatToken = (scope: TokenScope, secret: string): string => format(scope === 'read' ? 'r' : 'w', secret)

/** As formatToken, for a cluster. */
export const formatClusterToken = (secret: string): string => format('c', secret)

function format(kind: string, secret: string): string {
  const text = `svccloud_${kind}_${secret}`
  return text + checksum(text)
}

/** The owner type of a token with that format; undefined for any other text, or a wrong checksum. Does not show whether
 *  the token was ever issued. */
export function tokenHolder(text: string): 'person' | 'cluster' | undefined {
  const kind = TOKEN.exec(text)?.[1]
  if (kind === undefined || checksum(text.slice(0, -CHECKSUM_CHARACTERS)) !== text.slice(-CHECKSUM_CHARACTERS))
    return undefined
  return kind === 'c' ? 'cluster' : 'person'
}

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
