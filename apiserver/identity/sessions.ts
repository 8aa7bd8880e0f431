/** Starting and ending portal sessions: secret, cookies, CSRF token. */
import type { Transaction } from 'kysely'
import { findRole, type UserRow } from '../../db/account/index.ts'
import { createSession, endSessionOf, endSessionsOfUser, SESSION_SECONDS } from '../../db/identity/index.ts'
import type { Tables } from '../../db/tables.ts'
import { defined } from '../../domain/defined.ts'
import type { Role } from '../../domain/permissions.ts'
import type { Cookie, RequestFacts } from '../../kit/http/call.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { CSRF_COOKIE, SESSION_COOKIE } from './callers.ts'
import type { IdentityParts } from './parts.ts'

const SECRET_BYTES = 32

export interface OpenedSession {
  readonly csrfToken: string
  readonly expiresAt: Date
  /** How many other live sessions were ended; undefined when that was not asked for. */
  readonly endedSessions: number | undefined
  readonly cookies: readonly Cookie[]
}

/** Starts a session for the user, which replaces the browser's previous one. */
export async function openSession(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  opening: {
    readonly userId: string
    readonly request: RequestFacts
    readonly endsOthers: boolean
    readonly hasSecondFactor: boolean
  },
): Promise<OpenedSession> {
  const { userId, request, hasSecondFactor } = opening
  const now = parts.clock.now()
  const replaced = request.cookie(SESSION_COOKIE)
  if (replaced !== undefined) await endSessionOf(tx, replaced)
  const endedSessions = opening.endsOthers ? await endSessionsOfUser(tx, userId, now) : undefined
  const id = newUuid(parts.random)
  const secret = parts.random.bytes(SECRET_BYTES).toString('base64url')
  const expiresAt = new Date(now.getTime() + SESSION_SECONDS * 1000)
  await createSession(tx, {
    id,
    secret,
    userId,
    now,
    expiresAt,
    userAgent: request.userAgent,
    sourceIp: request.sourceIp,
    hasSecondFactor,
  })
  const csrfToken = parts.csrfTokenOf(id)
  return { csrfToken, expiresAt, endedSessions, cookies: sessionCookies(secret, csrfToken, SESSION_SECONDS) }
}

/** The page reads the second one and sends it back in a header. */
export const sessionCookies = (secret: string, csrfToken: string, maxAgeSeconds: number): readonly Cookie[] => [
  { name: SESSION_COOKIE, value: secret, maxAgeSeconds, isHttpOnly: true },
  { name: CSRF_COOKIE, value: csrfToken, maxAgeSeconds, isHttpOnly: false },
]

export const CLEARED_COOKIES: readonly Cookie[] = [
  { name: SESSION_COOKIE, value: '', maxAgeSeconds: 0, isHttpOnly: true },
  { name: CSRF_COOKIE, value: '', maxAgeSeconds: 0, isHttpOnly: false },
]

/** The person as the API shows them, in the account that their sessions act for. */
export const userView = (user: Pick<UserRow, 'id' | 'email' | 'name'>, accountId: string, role: Role) => ({
  id: user.id,
  email: user.email,
  ...(user.name === null ? {} : { name: user.name }),
  account_id: accountId,
  role,
})

/** IssuedSession of the contract. */
export async function issuedSessionView(tx: Transaction<Tables>, user: UserRow, session: OpenedSession) {
  const role = await findRole(tx, user.active_account_id, user.id)
  if (role === undefined) throw new Error('the active account of a user is one that they belong to')
  return {
    user: userView(user, user.active_account_id, role),
    csrf_token: session.csrfToken,
    expires_at: session.expiresAt.toISOString(),
    ...defined({ ended_sessions: session.endedSessions }),
  }
}
