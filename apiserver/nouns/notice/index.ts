/** What a person should know about an account: computed from the caches and a fixed number of queries. */
import { listExpiringCredits, readStanding } from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { listExpiringTokens } from '../../../db/identity/index.ts'
import type { Queries } from '../../../db/kit/open.ts'
import { listDismissed, recordDismissal } from '../../../db/notice/index.ts'
import { standingOf } from '../../../domain/account/standing.ts'
import {
  announcedUntil,
  type Notice,
  NOTICES_OF_KIND_MAXIMUM,
  type NoticeFacts,
  noticesOf,
} from '../../../domain/notice/rules.ts'
import { isQuotaNear } from '../../../domain/overview/rules.ts'
import { notFound } from '../../../domain/problem.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import { dismissNotice, listNotices, toNoticeView } from '../../../resources/notice/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import { completeList } from '../../kit/list/page.ts'
import { noun } from '../../kit/noun.ts'
import type { Parts } from '../../kit/parts.ts'
import type { Databases } from '../database/index.ts'
import type { LoadBalancers } from '../load-balancer/index.ts'
import { readQuotas } from '../quota/index.ts'
import { type Servers, serversWithWork } from '../server/index.ts'

type Needs = Parts & {
  readonly servers: Servers
  readonly loadBalancers: LoadBalancers
  readonly databases: Databases
}
type Reading = Pick<Call, 'now'> & { readonly caller: Customer }

const noticeEndpoints = (parts: Needs): readonly Endpoint[] => [
  customerEndpoint(listNotices, async (call) => {
    const { notices, dismissed } = await read(parts, call)
    const shown = notices.filter(({ id }) => call.query.include_dismissed === 'true' || !dismissed.has(id))
    return completeList(shown.map((notice) => toNoticeView(notice, dismissed.has(notice.id))))
  }),
  customerEndpoint(dismissNotice, (call) => dismiss(parts, call)),
]

/** Who reads: in a support session nobody, because what is a person's own is not shown to staff. */
const personOf = ({ userId, support, clusterScopes }: Customer): string | undefined =>
  support === undefined && clusterScopes === undefined ? userId : undefined

async function read(parts: Needs, { caller, now }: Reading) {
  const { accountId } = caller
  const queries = parts.db
  await parts.catchUp.account(accountId)
  const userId = personOf(caller)
  const facts: NoticeFacts = {
    ...(await readBilling(queries, { caller, now })),
    maintenance: serversWithWork(parts, parts.servers, accountId).map((work) => ({
      serverId: work.server_id,
      hostname: work.hostname,
      plannedAt: new Date(work.planned_at),
      reason: work.reason,
      action: work.action,
    })),
    certificates: certificatesOf(parts, accountId),
    tokens:
      userId === undefined
        ? []
        : await listExpiringTokens(queries, { accountId, userId, ...bounds(announcedUntil('token', now), now) }),
    quotas: (await readQuotas(queries, accountId)).filter(isQuotaNear),
    unverifiedEmail: userId !== undefined && !caller.isEmailVerified ? caller.email : null,
  }
  const notices: readonly Notice[] = noticesOf(facts, now)
  const dismissed = userId === undefined ? NONE : await listDismissed(queries, { userId, accountId })
  return { notices, dismissed }
}
const NONE: ReadonlySet<string> = new Set()

const bounds = (before: Date, now: Date) => ({ now, before, limit: NOTICES_OF_KIND_MAXIMUM })

async function readBilling(
  queries: Queries,
  { caller: { accountId, permissions }, now }: Reading,
): Promise<Pick<NoticeFacts, 'standing' | 'credits'>> {
  if (!permissions.includes('billing.read')) return { standing: null, credits: [] }
  const facts = await readStanding(queries, accountId, now)
  const { reason } = standingOf(facts)
  const credits = await listExpiringCredits(queries, accountId, bounds(announcedUntil('credit', now), now))
  return {
    standing: reason && { reason, since: facts.suspendedByStaffAt ?? facts.suspendedForPaymentAt },
    credits: credits.flatMap(({ id, amountCents, spentCents, expiresAt }) =>
      expiresAt === null ? [] : [{ id, leftCents: amountCents - spentCents, expiresAt }],
    ),
  }
}

const ALL = Number.MAX_SAFE_INTEGER

/** Of load balancers, which the account brings, and of databases, which are renewed if all is well. */
const certificatesOf = ({ loadBalancers, databases }: Needs, accountId: string): NoticeFacts['certificates'] => [
  ...loadBalancers.summaries
    .page(accountId, {}, undefined, ALL)
    .map(loadBalancers.summaries.viewOf)
    .flatMap(({ id, name, certificates }) =>
      certificates.map((certificate) => ({
        type: 'load_balancer' as const,
        id,
        name,
        certificate: certificate.name,
        expiresAt: new Date(certificate.not_after),
      })),
    ),
  ...databases
    .page(accountId, {}, undefined, ALL)
    .map(databases.viewOf)
    .flatMap(({ id, name, tls_server_name: certificate, certificate_expires_at: expiresAt }) =>
      expiresAt === null ? [] : [{ type: 'database' as const, id, name, certificate, expiresAt: new Date(expiresAt) }],
    ),
]

/** Throws 404 for a notice that the caller does not have now. */
async function dismiss(parts: Needs, call: Call<typeof dismissNotice, Customer>): Promise<Answer> {
  const { userId, accountId } = call.caller
  const { notices } = await read(parts, call)
  const notice = notices.find(({ id }) => id === call.params.id)
  if (notice === undefined) throw notFound('notice')
  await parts.db.transaction().execute(async (tx) => {
    await recordDismissal(tx, { userId, accountId }, { noticeId: notice.id, now: call.now })
    await appendAudit(tx, auditEntryOf(call, { resourceId: notice.id, detail: { kind: notice.kind } }), parts)
  })
  return { status: 204 }
}

export const notice = noun<Needs>({ name: 'notice', endpoints: noticeEndpoints })
