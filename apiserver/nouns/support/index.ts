/** Support in a customer's account: the customer's consent, the handoff, and the end of the session. */
import * as routes from '../../../resources/support/index.ts'
import type { Transaction } from 'kysely'
import { conflict, notFound, unauthenticated } from '../../../domain/problem.ts'
import { isUuid } from '../../../domain/uuid.ts'
import { findUser } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { endSessionOf } from '../../../db/identity/index.ts'
import {
  type ConsentRow,
  type SupportSessionRow,
  endSupportSession,
  grantConsent,
  listConsents,
  lockLiveConsent,
  redeemSupportCode,
  revokeConsent,
} from '../../../db/staff/index.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Answer, Call, Customer, RequestFacts } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint, publicEndpoint } from '../../../kit/http/endpoint.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { Impersonation } from '../../../resources/identity/index.ts'
import { auditEntry, auditEntryOf, staffActor } from '../../kit/change/audit.ts'
import { SESSION_COOKIE, SUPPORT_SECRET_PREFIX } from '../../identity/callers.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { CLEARED_COOKIES, sessionCookies, userView } from '../../identity/sessions.ts'
import { completeList } from '../../kit/list/page.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import { noun } from '../../kit/noun.ts'

const LISTED_DAYS = 90
const DAY_MILLISECONDS = 86_400_000
const HOUR_MILLISECONDS = 3_600_000
const SECRET_BYTES = 32

const supportEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(routes.listSupportConsents, async ({ caller, now }) => {
    const since = new Date(now.getTime() - LISTED_DAYS * DAY_MILLISECONDS)
    return completeList((await listConsents(parts.db, caller.accountId, since)).map(consentView))
  }),
  customerEndpoint(routes.grantSupportConsent, (call) => grant(parts, call)),
  customerEndpoint(routes.revokeSupportConsent, (call) => revoke(parts, call)),
  publicEndpoint(routes.redeemSupportHandoff, (call) => redeem(parts, call)),
  customerEndpoint(routes.endImpersonation, (call) => leave(parts, call)),
]

const consentView = (row: ConsentRow) => viewOf(routes.SupportConsent, row, {})

async function grant(parts: IdentityParts, call: Call<typeof routes.grantSupportConsent, Customer>): Promise<Answer> {
  const { caller, body, now } = call
  const consent = {
    id: newUuid(parts.random),
    accountId: caller.accountId,
    mode: body.mode,
    grantedByEmail: caller.email,
    reference: body.reference ?? null,
    now,
    expiresAt: new Date(now.getTime() + body.expires_in_hours * HOUR_MILLISECONDS),
  }
  await parts.db.transaction().execute(async (tx) => {
    if ((await lockLiveConsent(tx, caller.accountId, body.mode, now)) !== undefined)
      throw conflict('state_not_allowed', 'A consent of this mode is live already.')
    await grantConsent(tx, consent)
    await appendAudit(
      tx,
      auditEntryOf(call, {
        resourceType: 'support_consent',
        resourceId: consent.id,
        detail: { mode: body.mode, expires_at: consent.expiresAt.toISOString() },
      }),
      parts,
    )
  })
  return {
    status: 201,
    body: { support_consent: consentView({ ...consent, createdAt: now, revokedAt: null, sessions: 0 }) },
  }
}

async function revoke(parts: IdentityParts, call: Call<typeof routes.revokeSupportConsent, Customer>): Promise<Answer> {
  const { caller, params, now } = call
  if (!isUuid(params.id)) throw notFound('support consent')
  await parts.db.transaction().execute(async (tx) => {
    const revoked = await revokeConsent(tx, caller.accountId, params.id, now)
    if (revoked === 'unknown') throw notFound('support consent')
    if (revoked === 'over') throw conflict('state_not_allowed', 'The consent is no longer valid.')
    await appendAudit(
      tx,
      auditEntryOf(call, { resourceType: 'support_consent', resourceId: params.id, detail: { mode: revoked.mode } }),
      parts,
    )
    for (const session of revoked.ended)
      await appendAudit(tx, auditEntryOf(call, { action: 'support.session_ended', ...endOf(session) }), parts)
  })
  parts.callers.forget()
  return { status: 204 }
}

export const impersonationView = (
  session: Pick<SupportSessionRow, 'staffEmail' | 'staffName' | 'reason' | 'mode' | 'expiresAt' | 'accountId'>,
) => viewOf(Impersonation, session, {})

async function redeem(
  parts: IdentityParts,
  { body, request, now }: Call<typeof routes.redeemSupportHandoff>,
): Promise<Answer> {
  const secret = `${SUPPORT_SECRET_PREFIX}${parts.random.bytes(SECRET_BYTES).toString('base64url')}`
  const session = await parts.db.transaction().execute(async (tx) => {
    const redeemed = await redeemSupportCode(tx, body.code, secret, now)
    if (redeemed === undefined) throw unauthenticated('The handoff code is unknown, used or expired.')
    const replaced = request.cookie(SESSION_COOKIE)
    if (replaced !== undefined) await endSessionOf(tx, replaced)
    await appendAudit(
      tx,
      auditEntry(redeemed.accountId, staffActor(redeemed), request, {
        action: 'support.session_started',
        resourceType: 'support_session',
        resourceId: redeemed.id,
        detail: { support_mode: redeemed.mode, support_reason: redeemed.reason },
      }),
      parts,
    )
    return redeemed
  })
  parts.callers.forget()
  const owner = await findUser(parts.db, session.userId)
  if (owner === undefined) throw unauthenticated()
  return {
    status: 200,
    cookies: sessionCookies(
      secret,
      parts.csrfTokenOf(session.id),
      Math.floor((session.expiresAt.getTime() - now.getTime()) / 1000),
    ),
    body: {
      redirect: '/dashboard',
      user: userView(owner, session.accountId, 'owner'),
      impersonation: impersonationView(session),
      expires_at: session.expiresAt.toISOString(),
    },
  }
}

const endOf = ({ id, mode, reason }: SupportSessionRow) => ({
  resourceType: 'support_session',
  resourceId: id,
  detail: { support_mode: mode, support_reason: reason },
})

/** Ends the support session and records that in the account's chain. */
export async function closeSupportSession(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  id: string,
  request: RequestFacts,
): Promise<SupportSessionRow | undefined> {
  const ended = await endSupportSession(tx, id, parts.clock.now())
  if (ended === undefined) return undefined
  await appendAudit(
    tx,
    auditEntry(ended.accountId, staffActor(ended), request, {
      action: 'support.session_ended',
      ...endOf(ended),
    }),
    parts,
  )
  return ended
}

async function leave(
  parts: IdentityParts,
  { caller, request }: Call<typeof routes.endImpersonation, Customer>,
): Promise<Answer> {
  const { session } = caller
  if (caller.support === undefined || session === undefined)
    throw conflict('state_not_allowed', 'This is not a support session.')
  await parts.db.transaction().execute((tx) => closeSupportSession(tx, parts, session.id, request))
  parts.callers.forget()
  return {
    status: 200,
    body: { redirect: `${parts.staffOrigin}/admin/accounts/${caller.accountId}` },
    cookies: CLEARED_COOKIES,
  }
}

export const support = noun<IdentityParts>({ name: 'support', endpoints: supportEndpoints })
