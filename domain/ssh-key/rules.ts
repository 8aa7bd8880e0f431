/** Public keys in the one-line form of OpenSSH: what is accepted, and their fingerprint. */
import { createHash } from 'node:crypto'

export interface PublicKey {
  /** `type base64 comment`, single spaces, without a line end. */
  readonly text: string
  /** `SHA256:` and base64 without padding, as ssh-keygen prints it. */
  readonly fingerprint: string
}

/** Of its line. */
export const SSH_KEY_LENGTH_MAXIMUM = 16_384
/** Keys that may sign in to one machine. */
export const SSH_KEYS_PER_SERVER_MAXIMUM = 100

const RSA_BITS_MINIMUM = 2048
const RSA_BITS_MAXIMUM = 16_384
const TYPES = [
  'ssh-ed25519',
  'ssh-rsa',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
] as const
const PARTS: Readonly<Record<(typeof TYPES)[number], number>> = {
  'ssh-ed25519': 2,
  'ssh-rsa': 3,
  'ecdsa-sha2-nistp256': 3,
  'ecdsa-sha2-nistp384': 3,
  'ecdsa-sha2-nistp521': 3,
  'sk-ssh-ed25519@openssh.com': 3,
  'sk-ecdsa-sha2-nistp256@openssh.com': 4,
}

/** The key, or why it is refused as a phrase that follows the name of a field. */
export function parsePublicKey(text: string): PublicKey | string {
  const trimmed = text.trim()
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(trimmed)) return 'must be one line'
  const [type = '', blob = '', ...comment] = trimmed.split(/ +/)
  const known = TYPES.find((name) => name === type)
  if (known === undefined) return `must start with one of ${TYPES.join(', ')}`
  const bytes = Buffer.from(blob, 'base64')
  if (bytes.length === 0 || bytes.toString('base64').replace(/=+$/, '') !== blob.replace(/=+$/, ''))
    return 'does not hold base64 after the type'
  const parts = wireParts(bytes)
  if (parts === undefined || parts.length !== PARTS[known] || parts[0]?.toString() !== type)
    return `does not hold a ${type} key`
  const problem = checkMaterial(known, parts)
  if (problem !== undefined) return problem
  return {
    text: [type, bytes.toString('base64'), ...comment].join(' '),
    fingerprint: `SHA256:${createHash('sha256').update(bytes).digest('base64').replace(/=+$/, '')}`,
  }
}

function checkMaterial(type: (typeof TYPES)[number], parts: readonly Buffer[]): string | undefined {
  if (type === 'ssh-rsa') {
    const bits = bitLength(parts[2] ?? Buffer.alloc(0))
    if (bits < RSA_BITS_MINIMUM) return `is an RSA key of ${bits} bits; at least ${RSA_BITS_MINIMUM} are needed`
    return bits > RSA_BITS_MAXIMUM ? `is an RSA key of more than ${RSA_BITS_MAXIMUM} bits` : undefined
  }
  if (type.endsWith('ed25519') || type.startsWith('sk-ssh-ed25519'))
    return parts[1]?.length === 32 ? undefined : 'does not hold an ed25519 key'
  return type.includes(parts[1]?.toString() ?? '-') ? undefined : `does not hold a ${type} key`
}

/** The length-prefixed strings of the wire form (RFC 4251); undefined when the bytes are anything else. */
function wireParts(bytes: Buffer): Buffer[] | undefined {
  const parts: Buffer[] = []
  let at = 0
  while (at < bytes.length) {
    if (at + 4 > bytes.length) return undefined
    const length = bytes.readUInt32BE(at)
    at += 4
    if (at + length > bytes.length) return undefined
    parts.push(bytes.subarray(at, at + length))
    at += length
  }
  return parts
}

/** Of a positive big-endian integer. */
function bitLength(bytes: Buffer): number {
  const first = bytes.findIndex((byte) => byte !== 0)
  return first < 0 ? 0 : (bytes.length - first - 1) * 8 + (32 - Math.clz32(bytes[first] ?? 0))
}
