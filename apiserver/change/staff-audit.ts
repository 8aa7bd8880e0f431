/** What staff and operators do is written twice: into their own log, and into the chain of the account that it touches.
 */
import type { Transaction } from 'kysely'
import { appendAudit } from '../../db/audit/index.ts'
import { appendStaffAudit } from '../../db/staff/index.ts'
import type { Tables } from '../../db/tables.ts'
import type { Database } from '../../db/open.ts'
import type { Operator, RequestFacts } from '../../kit/http/call.ts'
import type { Refusal } from '../../kit/http/pipeline.ts'
import { newUuid } from '../../kit/sys/random.ts'
import { type AuditActor, auditEntry, type AuditFacts, auditRefusal, detailOfRefusal, throughOutage } from './audit.ts'
import type { IdentityParts } from '../identity/parts.ts'

function operatorActor(caller: Operator): AuditActor {
  const { staff, name } = caller
  return {
    actor_email: staff?.email ?? name,
    actor_kind: staff === undefined ? 'operator' : 'staff',
    user_id: null,
    staff_id: staff?.id ?? null,
    token_id: null,
    token_name: null,
  }
}

/** Writes the act of an operator; last in its transaction. `accountIds`: whose chains it enters, in the order of their
 *  ids. */
export async function auditStaff(
  tx: Transaction<Tables>,
  parts: Pick<IdentityParts, 'clock' | 'random'>,
  call: { readonly caller: Operator; readonly request: RequestFacts },
  facts: AuditFacts,
  accountIds: readonly string[] = [],
): Promise<void> {
  const { request } = call
  const actor = operatorActor(call.caller)
  await appendStaffAudit(tx, {
    id: newUuid(parts.random),
    at: parts.clock.now().toISOString(),
    actor_email: actor.actor_email,
    actor_kind: actor.actor_kind === 'staff' ? 'staff' : 'operator',
    staff_id: actor.staff_id,
    account_id: accountIds[0] ?? null,
    action: facts.action,
    resource_type: facts.resourceType ?? facts.action.split('.')[0] ?? '',
    resource_id: facts.resourceId ?? '',
    detail: facts.detail ?? {},
    source_ip: request.sourceIp,
    user_agent: request.userAgent,
    request_id: request.requestId,
  })
  for (const accountId of [...accountIds].sort())
    await appendAudit(tx, auditEntry(accountId, actor, request, facts), parts)
}

/** Writes down what was refused: a customer's in the chain of the account, an operator's in their log. */
export async function auditRefused(
  { caller, route, request, resourceId, outcome, problem }: Refusal,
  parts: Pick<IdentityParts, 'clock' | 'random'> & { readonly db: Database },
): Promise<void> {
  if (caller.kind !== 'operator')
    return await auditRefusal({ caller, route, request, resourceId, outcome, problem }, parts)
  if (route.audit === null) return
  const facts: AuditFacts = { action: route.audit, resourceId, detail: { outcome, ...detailOfRefusal(problem) } }
  await throughOutage(parts, () =>
    parts.db.transaction().execute((tx) => auditStaff(tx, parts, { caller, request }, facts)),
  )
}
