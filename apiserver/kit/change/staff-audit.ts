/** Actions of staff and operators are recorded twice: in their own log, and in the chain of the affected account. */
import type { Transaction } from 'kysely'
import { appendAudit } from '../../../db/audit/index.ts'
import { appendStaffAudit } from '../../../db/staff/index.ts'
import type { Tables } from '../../../db/tables.ts'
import type { Database } from '../../../db/kit/open.ts'
import type { Operator, RequestFacts } from '../../../kit/http/call.ts'
import type { RequestRefusal } from '../../../kit/http/pipeline.ts'
import type { Route } from '../../../kit/http/route.ts'
import { type AuditActor, auditEntry, type AuditFacts, auditRefusal, detailOfRefusal, throughOutage } from './audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'

/** The part of an operator's call that an entry needs. */
export interface OperatorAct {
  readonly caller: Operator
  readonly request: RequestFacts
  readonly route: Pick<Route, 'path'>
}

/** A user of a staff route acts as staff, also with a token of the management cluster. */
function operatorActor({ caller: { staff, name }, route }: OperatorAct): AuditActor {
  return {
    actor_email: staff?.email ?? name,
    actor_kind: staff !== undefined || route.path.startsWith('/v1/admin/') ? 'staff' : 'operator',
    user_id: null,
    staff_id: staff?.id ?? null,
    token_id: null,
    token_name: null,
  }
}

/** Records the action of an operator; must come last in its transaction. `accountIds`: the accounts whose chains it
 *  enters, in the order of their ids. */
export async function auditStaff(
  tx: Transaction<Tables>,
  parts: Pick<IdentityParts, 'clock' | 'random'>,
  act: OperatorAct,
  facts: AuditFacts,
  accountIds: readonly string[] = [],
): Promise<void> {
  const actor = operatorActor(act)
  const entry = auditEntry('', actor, act.request, facts)
  await appendStaffAudit(tx, { ...entry, account_id: accountIds[0] ?? null }, parts)
  for (const account_id of [...accountIds].sort()) await appendAudit(tx, { ...entry, account_id }, parts)
}

/** Records a refusal: a customer's in the chain of the account, an operator's in their log. */
export async function auditRefused(
  { caller, route, request, audited, resourceId, outcome, problem }: RequestRefusal,
  parts: Pick<IdentityParts, 'clock' | 'random'> & { readonly db: Database },
): Promise<void> {
  if (caller.kind !== 'operator')
    return await auditRefusal({ caller, route, request, audited, resourceId, outcome, problem }, parts)
  if (route.audit === null) return
  const detail = { outcome, ...detailOfRefusal(problem) }
  const facts: AuditFacts = { action: route.audit, resourceId, outcome, detail }
  await throughOutage(parts, () =>
    parts.db.transaction().execute((tx) => auditStaff(tx, parts, { caller, request, route }, facts)),
  )
}
