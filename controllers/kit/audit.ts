/** Audit entries of the platform's own actions, and of edits that did not use the API. */
import type { AuditChange, UnsealedAuditEntry } from '../../domain/audit/entry.ts'
import type { OperationKind } from '../../domain/operations.ts'
import { appendAudits, hasAudit, STAFF_CHAIN } from '../../db/audit/index.ts'
import { openGroupCommit } from '../../db/kit/group-commit.ts'
import { accountExists } from '../../db/server/index.ts'
import { appendStaffAudit } from '../../db/staff/index.ts'
import { accountOfNamespace } from '../../resources/index.ts'
import { orUnavailable } from './outage.ts'
import type { EffectAction, EffectOn } from './effects.ts'
import type { Parts } from './parts.ts'

export interface AuditInput {
  readonly action: string
  /** In the form that operations show; `system:…` for the platform. */
  readonly actor: string
  /** The entry is written once for each action and request. */
  readonly requestId: string
  readonly changes?: readonly AuditChange[]
}

/** The audited action of an operation that no request started. It is the operation's kind, except that customers'
 *  templates use the name from their routes, and that no log has a `sync`. */
export const auditedAs = (kind: OperationKind): string =>
  kind.replace(/^template\./, 'custom_image.').replace(/\.sync$/, '.update')

/** The effect that every noun with audit entries declares. */
export interface AuditEffects {
  readonly audit: AuditInput
}
export type AuditAction = EffectAction<AuditEffects>

/** The action that writes the entry. */
export const auditAction = (input: AuditInput): AuditAction => ({ do: 'effect', name: 'audit', input })

/** The effect `audit`: one entry about the root, in the chain of its account. Entries of one account wait for the head
 *  of their chain in any case, so they are written together. */
export function auditEffect({
  db,
  ...by
}: Pick<Parts, 'db' | 'clock' | 'random'>): EffectOn<AuditInput, unknown, unknown> {
  const append = openGroupCommit(db, async (tx, entries: readonly UnsealedAuditEntry[]) => {
    await appendAudits(tx, entries, by)
    return entries.map(() => undefined)
  })
  return async (input, root) => {
    const accountId = accountOfNamespace(root.metadata.namespace ?? '')
    const entry = accountId === undefined ? undefined : { ...entryOf(root.metadata.name, input), account_id: accountId }
    if (
      accountId === undefined ||
      entry === undefined ||
      !(await orUnavailable(accountExists(db, accountId))) ||
      (await orUnavailable(hasAudit(db, entry)))
    )
      return undefined
    await orUnavailable(append(accountId, entry))
    return undefined
  }
}

/** The effect `audit` of objects that belong to no account: the entry of an operation in the operators' log, unless the
 *  request that started it has written the entry. */
export const staffAuditEffect =
  (
    { db, clock, random }: Pick<Parts, 'db' | 'clock' | 'random'>,
    resourceType: 'kubernetes_host' | 'node' | 'public_pool' | 'template' | 'zone',
  ): EffectOn<AuditInput, unknown, unknown> =>
  async ({ action, actor, requestId }, { metadata }) => {
    const entry = { ...entryOf(metadata.name, { action, actor, requestId }), resource_type: resourceType }
    if (await orUnavailable(hasAudit(db, { ...entry, account_id: STAFF_CHAIN }))) return undefined
    await orUnavailable(
      db.transaction().execute((tx) => appendStaffAudit(tx, { ...entry, account_id: null }, { clock, random })),
    )
    return undefined
  }

function entryOf(
  resourceId: string,
  { action, actor, requestId, changes = [] }: AuditInput,
): Omit<UnsealedAuditEntry, 'account_id'> {
  return {
    actor_email: actor,
    actor_kind: actor.startsWith('system:') ? 'system' : 'operator',
    user_id: null,
    staff_id: null,
    token_id: null,
    token_name: null,
    action,
    resource_type: action.split('.')[0] ?? '',
    resource_id: resourceId,
    detail: {},
    outcome: 'success',
    source_ip: '',
    user_agent: '',
    request_id: requestId,
    changes,
  }
}
