/** The audit log: list, export, integrity. */
import type { AuditEntry } from '../../../domain/audit/chain.ts'
import { appendAudit, exportAudit, listAudit, readIntegrity } from '../../../db/audit/index.ts'
import type { Answer, Call, Customer } from '../../../kit/http/call.ts'
import { type Endpoint, customerEndpoint } from '../../../kit/http/endpoint.ts'
import {
  AUDIT_PAGE_ENTRIES,
  AuditIntegrity,
  exportAuditEntries,
  getAuditIntegrity,
  listAuditEntries,
} from '../../../resources/audit/index.ts'
import { auditEntryOf } from '../../kit/change/audit.ts'
import type { IdentityParts } from '../../identity/parts.ts'
import { answerOf, readPage } from '../../kit/list/page.ts'
import { viewOf } from '../../../resources/kit/view.ts'
import { noun } from '../../kit/noun.ts'

const auditEndpoints = (parts: IdentityParts): readonly Endpoint[] => [
  customerEndpoint(listAuditEntries, (call) => list(parts, call)),
  customerEndpoint(exportAuditEntries, (call) => startExport(parts, call)),
  customerEndpoint(getAuditIntegrity, async (call) => ({
    status: 200,
    body: integrityView(await readIntegrity(parts.db, call.caller.accountId)),
  })),
]

async function list(parts: IdentityParts, call: Call<typeof listAuditEntries, Customer>): Promise<Answer> {
  const { route, caller, query } = call
  const page = await readPage(
    parts.cursors,
    { route, caller, query: { ...query, limit: AUDIT_PAGE_ENTRIES } },
    (after, limit) => {
      const before = after === undefined ? undefined : Number(after.sortKey)
      return listAudit(parts.db, caller.accountId, {
        actions: query.action,
        from: instant(query.from),
        to: instant(query.to),
        before,
        limit,
      })
    },
    ({ sequence, id }) => ({ sortKey: String(sequence), id }),
    { viewsOf: (entries) => entries, matches: matchesOf(query) },
  )
  return answerOf(page)
}

const instant = (text: string | undefined): Date | undefined => (text === undefined ? undefined : new Date(text))

/** Whether the query asks for an entry, by what only its body has; undefined when it asks for all. */
function matchesOf({ resource, actor, outcome }: Call<typeof listAuditEntries>['query']) {
  if (resource === undefined && actor === undefined && outcome === undefined) return undefined
  const isAbout = ({ resource_type: type, resource_id: id }: AuditEntry) =>
    resource === undefined || resource === type || resource === `${type}:${id}`
  const isOf = ({ user_id, token_id, staff_id, actor_email, token_name }: AuditEntry) =>
    actor === undefined || [user_id, token_id, staff_id, actor_email, token_name].includes(actor)
  return (entry: AuditEntry): boolean =>
    isAbout(entry) && isOf(entry) && (outcome === undefined || outcome.includes(entry.outcome))
}

async function startExport(parts: IdentityParts, call: Call<typeof exportAuditEntries, Customer>): Promise<Answer> {
  const { caller, query } = call
  if (query.after === undefined) {
    await parts.db.transaction().execute((tx) => appendAudit(tx, auditEntryOf(call, { action: 'audit.export' }), parts))
  }
  const entries = await exportAudit(parts.db, caller.accountId, { after: query.after ?? 0, limit: query.limit + 1 })
  const shown = entries.slice(0, query.limit)
  const last = shown.at(-1)
  return {
    status: 200,
    stream: lines(shown),
    headers: entries.length > query.limit && last !== undefined ? { 'x-next-after': String(last.sequence) } : {},
  }
}

async function* lines(entries: readonly object[]): AsyncIterable<string> {
  for (const entry of entries) yield `${JSON.stringify(entry)}\n`
}

export const integrityView = (integrity: Awaited<ReturnType<typeof readIntegrity>>) =>
  viewOf(AuditIntegrity, integrity, {})

export * from './testimony.ts'

export const audit = noun<IdentityParts>({ name: 'audit', endpoints: auditEndpoints })
