/** The sessions of a person: where they are signed in, and ending one of them. */
import * as routes from '../../../resources/session/index.ts'
import { notFound } from '../../../domain/problem.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { type SessionRow, endSessionsOfUser, listSessions } from '../../../db/identity/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { completeList } from '../../kit/list/page.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { CLEARED_COOKIES } from '../../identity/sessions.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import { noun } from '../../kit/noun.ts'

const sessionEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(routes.listSessions, async ({ caller, now }) =>
    completeList((await listSessions(parts.db, caller.userId, now)).map((row) => sessionView(row, caller))),
  ),
  customerEndpoint(routes.endSession, (call) => end(parts, call)),
]

const sessionView = (row: SessionRow, caller: Customer) =>
  viewOf(routes.Session, row, { is_current: row.id === caller.session?.id })

async function end(parts: IdentityParts, call: Call<typeof routes.endSession, Customer>): Promise<Answer> {
  const { caller, params, now } = call
  await parts.db.transaction().execute(async (tx) => {
    if ((await endSessionsOfUser(tx, caller.userId, now, { only: params.id })) === 0) throw notFound('session')
    await appendAudit(tx, auditEntryOf(call, { resourceType: 'session', resourceId: params.id }), parts)
  })
  parts.callers.forget()
  return { status: 204, ...(params.id === caller.session?.id ? { cookies: CLEARED_COOKIES } : {}) }
}

export const session = noun<IdentityParts>({ name: 'session', endpoints: sessionEndpoints })
