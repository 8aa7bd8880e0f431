/** UUIDs (RFC 9562). Ids in paths may be any text, and PostgreSQL accepts only UUIDs. */
import { createHash } from 'node:crypto'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Whether the text is a UUID of any version, in letters of either case. */
export const isUuid = (text: string): boolean => UUID.test(text)

/** A version 8 UUID (RFC 9562) made from a text. */
export function derivedId(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  const groups = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `${variant}${hex.slice(17, 20)}`]
  return [...groups, hex.slice(20, 32)].join('-')
}
