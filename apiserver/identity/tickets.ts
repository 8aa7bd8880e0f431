/** Short-lived sealed tickets that a client carries for us: a sign-in that waits for its second factor, a sign-in that
 *  is at an identity provider. Encrypted JWTs with one audience for each purpose, so that none can replace another. */
import { EncryptJWT, jwtDecrypt } from 'jose'
import type { Clock } from '../../kit/sys/clock.ts'

export type TicketPurpose = 'second-factor' | 'identity-provider' | 'staff-second-factor'

export interface Tickets {
  seal(purpose: TicketPurpose, content: Readonly<Record<string, unknown>>, expiresAt: Date): Promise<string>
  /** The content that was sealed for that purpose; undefined when the ticket is not ours, for another purpose, or
   *  expired. */
  open(purpose: TicketPurpose, ticket: string): Promise<Readonly<Record<string, unknown>> | undefined>
}

/** `key`: 32 bytes that every replica has. */
export function createTickets(key: Uint8Array, clock: Clock): Tickets {
  return {
    seal: (purpose, content, expiresAt) =>
      new EncryptJWT({ content })
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setAudience(purpose)
        .setExpirationTime(expiresAt)
        .encrypt(key),
    async open(purpose, ticket) {
      try {
        const { payload } = await jwtDecrypt(ticket, key, {
          audience: purpose,
          currentDate: clock.now(),
          keyManagementAlgorithms: ['dir'],
          contentEncryptionAlgorithms: ['A256GCM'],
          requiredClaims: ['exp'],
        })
        return payload['content'] as Readonly<Record<string, unknown>> // sealed by us with this very audience
      } catch {
        return undefined
      }
    },
  }
}
