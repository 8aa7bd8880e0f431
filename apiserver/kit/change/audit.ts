/** Audit entries of requests: who did it, from where, and under the action of the route. */
import type { AuditChange, AuditOutcome, UnsealedAuditEntry } from '../../../domain/audit/entry.ts'
import { defined } from '../../../domain/defined.ts'
import { type Problem, Unavailable } from '../../../domain/problem.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { databaseUnavailable } from '../../../db/kit/failures.ts'
import type { Database } from '../../../db/kit/open.ts'
import type { Customer, RequestFacts } from '../../../kit/http/call.ts'
import type { Route } from '../../../kit/http/route.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'

export type AuditActor = Pick<
  UnsealedAuditEntry,
  'actor_email' | 'actor_kind' | 'user_id' | 'staff_id' | 'token_id' | 'token_name'
>

const NOBODY: AuditActor = {
  actor_email: '',
  actor_kind: 'system',
  user_id: null,
  staff_id: null,
  token_id: null,
  token_name: null,
}

/** A person who is not signed in yet (sign-up, sign-in, a mailed link). */
export const userActor = (user: { readonly id: string; readonly email: string }): AuditActor => ({
  ...NOBODY,
  actor_kind: 'user',
  actor_email: user.email,
  user_id: user.id,
})

/** A user of Kubernetes, who has no account here. */
export const kubernetesActor = (username: string): AuditActor => ({
  ...NOBODY,
  actor_kind: 'operator',
  actor_email: `user:${username}`,
})

/** A member of staff in a customer's account; `userId` is the person they act as there. */
export const staffActor = (staff: {
  readonly staffId: string
  readonly staffEmail: string
  readonly userId?: string
}): AuditActor => ({
  ...NOBODY,
  actor_kind: 'staff',
  actor_email: staff.staffEmail,
  staff_id: staff.staffId,
  user_id: staff.userId ?? null,
})

/** Both identities of a support session are in the entry: the member of staff acts, `user_id` is the person they act
 *  as. */
function actorOf(customer: Customer): AuditActor {
  const { support, token } = customer
  if (support !== undefined) return staffActor({ ...support, userId: customer.userId })
  if (token !== undefined)
    return {
      ...NOBODY,
      actor_kind: 'token',
      actor_email: customer.email,
      user_id: customer.clusterScopes === undefined ? customer.userId : null,
      token_id: token.id,
      token_name: token.name,
    }
  return userActor({ id: customer.userId, email: customer.email })
}

/** Counts as the detail of an entry, without the zeros; nothing when all are zero. */
export function countsOf(counts: Readonly<Record<string, number>>): Pick<AuditFacts, 'detail'> {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.length === 0 ? {} : { detail: Object.fromEntries(some.map(([name, count]) => [name, String(count)])) }
}

export interface AuditFacts {
  readonly action: string
  /** Default: the noun of the action. */
  readonly resourceType?: string
  readonly resourceId?: string
  readonly detail?: Readonly<Record<string, string>>
  readonly changes?: readonly AuditChange[]
  readonly outcome?: AuditOutcome
}

/** An entry that is not part of a chain yet. Without a resource type, it gets the noun of the action. */
export function auditEntry(
  accountId: string,
  actor: AuditActor,
  request: Pick<RequestFacts, 'requestId' | 'sourceIp' | 'userAgent'>,
  facts: AuditFacts,
): UnsealedAuditEntry {
  return {
    account_id: accountId,
    ...actor,
    action: facts.action,
    resource_type: facts.resourceType ?? facts.action.split('.')[0] ?? '',
    resource_id: facts.resourceId ?? '',
    detail: facts.detail ?? {},
    outcome: facts.outcome ?? 'success',
    source_ip: request.sourceIp,
    user_agent: request.userAgent.slice(0, USER_AGENT_CHARACTERS_MAXIMUM),
    request_id: request.requestId,
    changes: facts.changes ?? [],
  }
}
const USER_AGENT_CHARACTERS_MAXIMUM = 512

/** The entry of a person who signs in or uses a mailed link; by default its subject is their user. */
export const userEntry = (
  user: { readonly id: string; readonly email: string; readonly active_account_id: string },
  request: Pick<RequestFacts, 'requestId' | 'sourceIp' | 'userAgent'>,
  facts: AuditFacts,
): UnsealedAuditEntry =>
  auditEntry(user.active_account_id, userActor(user), request, { resourceType: 'user', resourceId: user.id, ...facts })

/** The part of a customer's call that an entry needs. */
export interface AuditedCall {
  readonly route: Pick<Route, 'audit'>
  /** As calls have it; the route's action when absent. */
  readonly audited?: { readonly as: string | null }
  readonly caller: Customer
  readonly request: Pick<RequestFacts, 'requestId' | 'sourceIp' | 'userAgent'>
}

/** The entry of a customer's call, under the action of the call unless `facts` names another. */
export function auditEntryOf(call: AuditedCall, facts: Partial<AuditFacts> = {}): UnsealedAuditEntry {
  const action = facts.action ?? (call.audited ?? { as: call.route.audit }).as
  if (action == null) throw new Error('the route names no audit action')
  const { support } = call.caller
  const detail =
    support === undefined
      ? (facts.detail ?? {})
      : { ...facts.detail, support_mode: support.mode, support_reason: support.reason }
  return auditEntry(call.caller.accountId, actorOf(call.caller), call.request, { ...facts, action, detail })
}

/** A customer's refused mutation or credential read, as the pipeline reports it. */
export interface RefusedCall extends AuditedCall {
  readonly resourceId: string
  readonly outcome: 'denied' | 'failed'
  readonly problem: Pick<Problem, 'status' | 'members'>
}

/** Writes the entry of a customer's refusal, in a separate transaction. */
export async function auditRefusal(
  refused: RefusedCall,
  by: { readonly db: Database; readonly clock: Clock; readonly random: Random },
): Promise<void> {
  const isWrongCode = refused.problem.members.reason === 'second_factor_invalid'
  const entry = auditEntryOf(refused, {
    ...(isWrongCode ? { action: 'auth.mfa_failed' } : {}),
    resourceId: refused.resourceId.slice(0, RESOURCE_ID_CHARACTERS_MAXIMUM),
    outcome: refused.outcome,
    detail: detailOfRefusal(refused.problem),
  })
  await throughOutage(by, () => by.db.transaction().execute((tx) => appendAudit(tx, entry, by)))
}

/** Retries the work while the database is away, for the duration of a short outage. */
export async function throughOutage(by: { readonly clock: Clock }, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === REFUSAL_ATTEMPTS_MAXIMUM || !(databaseUnavailable(error) instanceof Unavailable)) throw error
      await by.clock.sleep(attempt * REFUSAL_RETRY_MILLISECONDS)
    }
  }
}
/** The cause of a refusal, for the log. */
export const detailOfRefusal = ({ status, members: { reason } }: RefusedCall['problem']): Record<string, string> => ({
  status: String(status),
  ...defined({ reason }),
})

/** A short outage, often the very reason of the refusal, must not lose its entry. */
const REFUSAL_ATTEMPTS_MAXIMUM = 5
const REFUSAL_RETRY_MILLISECONDS = 100
const RESOURCE_ID_CHARACTERS_MAXIMUM = 253
