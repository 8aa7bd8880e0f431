/** Signatures of webhooks in the format of Standard Webhooks 1.0 (https://www.standardwebhooks.com): three headers, of
 *  which the last has a base64 HMAC-SHA256 of `id.timestamp.body` for each valid secret. Pure. */
import { createHmac } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'
export const SECRET_BYTES = 32
/** How long the previous secret signs beside the new one. */
export const SECRET_OVERLAP_MILLISECONDS = 86_400_000

/** The text of a secret: `whsec_` and base64. */
export const secretText = (bytes: Buffer): string => SECRET_PREFIX + bytes.toString('base64')

export interface SignedMessage {
  readonly id: string
  readonly at: Date
  readonly body: string
}

/** The headers of a request with the body. `secrets` are texts as `secretText` makes them, the newest first. */
export function signedHeaders({ id, at, body }: SignedMessage, secrets: readonly string[]): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000))
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}
