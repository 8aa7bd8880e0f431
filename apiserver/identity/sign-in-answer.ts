/** A finished first factor as an HTTP answer: the session, or the challenge of a second factor. */
import type { Answer } from '../../kit/http/call.ts'
import type { IdentityParts } from './parts.ts'
import { challengeFor, type SignIn, signingIn } from './sign-in.ts'

/** `status` is that of an opened session; a challenge is always 200. */
export async function answerSignIn(parts: IdentityParts, signIn: SignIn, status: 200 | 201): Promise<Answer> {
  const challenge = await challengeFor(parts, signIn)
  if (challenge !== undefined) {
    return {
      status: 200,
      body: {
        mfa_required: true,
        mfa_step: challenge.step,
        challenge: challenge.challenge,
        challenge_expires_at: challenge.expiresAt.toISOString(),
      },
    }
  }
  const { view, cookies } = await signingIn(parts, (tx, complete) => complete(tx, parts, signIn))
  return { status, body: view, cookies }
}
