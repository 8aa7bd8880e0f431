/** Mails to people, and the link that verifies an address. */
import type { UserRow } from '../../db/account/index.ts'
import { createEmailToken, dropEmailTokens } from '../../db/identity/index.ts'
import type { Queries } from '../../db/kit/open.ts'
import { enqueueMail } from '../../db/mail/index.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { type MailText, verifyEmailMail } from '../../domain/mail/texts.ts'
import type { IdentityParts } from './parts.ts'

export const MAILED_SECRET_BYTES = 32
const VERIFICATION_SECONDS = 2 * 86_400

/** Puts a mail into the outbox; nothing where the deployment sends none. */
export async function mailTo(queries: Queries, parts: IdentityParts, recipient: string, text: MailText): Promise<void> {
  if (parts.canSendMail)
    await enqueueMail(queries, { id: newUuid(parts.random), recipient, ...text, createdAt: parts.clock.now() })
}

/** Mails a new verification link; links that were mailed before stop working. */
export async function mailVerification(
  queries: Queries,
  parts: IdentityParts,
  user: Pick<UserRow, 'id' | 'email'>,
): Promise<void> {
  const now = parts.clock.now()
  const secret = parts.random.bytes(MAILED_SECRET_BYTES).toString('base64url')
  await dropEmailTokens(queries, user.id, 'verify_email')
  await createEmailToken(queries, {
    secret,
    userId: user.id,
    purpose: 'verify_email',
    email: user.email,
    now,
    expiresAt: new Date(now.getTime() + VERIFICATION_SECONDS * 1000),
  })
  await mailTo(queries, parts, user.email, verifyEmailMail(parts.origin, secret))
}
