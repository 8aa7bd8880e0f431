/** Mails to people, and the link that verifies an address. */
import type { UserRow } from '../../db/account/index.ts'
import { createEmailToken, dropEmailTokens } from '../../db/identity/index.ts'
import type { Queries } from '../../db/kit/open.ts'
import { enqueueMail } from '../../db/mail/index.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { acceptedLanguage } from '../../domain/mail/language.ts'
import { type Mail, mail } from '../../domain/mail/mails.ts'
import type { RequestFacts } from '../../kit/http/call.ts'
import type { IdentityParts } from './parts.ts'

export const MAILED_SECRET_BYTES = 32
const VERIFICATION_SECONDS = 2 * 86_400

/** Puts a mail into the outbox; nothing where the deployment sends none. Who has chosen no language gets that of the
 *  browser that asked. */
export async function mailTo(
  queries: Queries,
  parts: IdentityParts,
  recipient: string,
  text: Mail,
  request: Pick<RequestFacts, 'header'>,
): Promise<void> {
  if (!parts.canSendMail) return
  const language = acceptedLanguage(request.header('accept-language'))
  await enqueueMail(queries, {
    id: newUuid(parts.random),
    recipient,
    mail: text,
    language,
    createdAt: parts.clock.now(),
  })
}

/** Mails a new verification link; links that were mailed before stop working. */
export async function mailVerification(
  queries: Queries,
  parts: IdentityParts,
  user: Pick<UserRow, 'id' | 'email'>,
  request: Pick<RequestFacts, 'header'>,
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
  const link = `${parts.origin}/verify-email#token=${secret}`
  await mailTo(queries, parts, user.email, mail('verify_email', { link }), request)
}
