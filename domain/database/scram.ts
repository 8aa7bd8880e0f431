/** Passwords in the form that PostgreSQL stores: SCRAM-SHA-256 verifiers (RFC 5803), from which no password can be
 *  read. */
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'

const ITERATIONS = 4_096
const BYTES = 32
const SALT_BYTES = 16

/** Deterministic in the password and the seed. The salt comes from the seed, which is no secret and differs for every
 *  password. */
export function scramVerifier(password: string, seed: string): string {
  const salt = createHash('sha256').update(seed).digest().subarray(0, SALT_BYTES)
  const salted = pbkdf2Sync(password, salt, ITERATIONS, BYTES, 'sha256')
  const keyed = (text: string): Buffer => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(keyed('Client Key')).digest('base64')
  const head = `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}`
  return `${head}$${storedKey}:${keyed('Server Key').toString('base64')}`
}
