/** Recovery codes: ten single-use texts of 80 random bits, written in groups so that people can copy them by hand. */

export const RECOVERY_CODES = 10
export const RECOVERY_CODE_BYTES = 10

/** Crockford's base32 in lower case: no i, l, o or u. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const GROUP_CHARACTERS = 4

/** `xxxx-xxxx-xxxx-xxxx` of 10 random bytes. */
export function formatRecoveryCode(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  const digits = (bits.match(/.{5}/g) ?? []).map((five) => ALPHABET.charAt(Number.parseInt(five, 2))).join('')
  return (digits.match(new RegExp(`.{${GROUP_CHARACTERS}}`, 'g')) ?? []).join('-')
}

/** The form that is hashed: characters that people confuse when they type become the same. */
export const normalizeRecoveryCode = (code: string): string =>
  code.toLowerCase().replace(/[\s-]/g, '').replaceAll('o', '0').replace(/[il]/g, '1')
