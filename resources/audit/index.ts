/** The audit log of an account: public shapes and routes. */
import { z } from 'zod'
import { Period, repeated } from '../kit/filters.ts'
import { Cursor, DateTime, pageOf, Uuid } from '../kit/shapes.ts'
import { routesUnder } from '../kit/verbs.ts'

export const AUDIT_PAGE_ENTRIES = 100
const EXPORT_LIMIT_DEFAULT = 500
const EXPORT_LIMIT_MAXIMUM = 1000

export const AuditEntry = z
  .strictObject({
    id: Uuid,
    sequence: z.int().min(1),
    at: DateTime,
    actor_email: z.string(),
    actor_kind: z.enum(['user', 'token', 'staff', 'operator', 'system']),
    user_id: z.string().nullable(),
    staff_id: z.string().nullable(),
    token_id: z.string().nullable(),
    token_name: z.string().nullable(),
    action: z.string(),
    resource_type: z.string(),
    resource_id: z.string(),
    detail: z.record(z.string(), z.string()),
    outcome: z.enum(['success', 'denied', 'failed']),
    source_ip: z.string(),
    user_agent: z.string(),
    request_id: z.string(),
    changes: z.array(z.strictObject({ field: z.string(), before: z.unknown(), after: z.unknown() })),
    previous_hash: z.string(),
    entry_hash: z.string(),
  })
  .meta({ id: 'AuditEntry' })

export const AuditIntegrity = z
  .strictObject({
    status: z.enum(['verified', 'unverified', 'broken']),
    head_sequence: z.int().min(0),
    verified_through_sequence: z.int().min(0),
    verified_at: DateTime.nullable(),
    pruned_through_sequence: z.int().min(0),
    break: z.strictObject({ sequence: z.int().min(0), id: z.string().nullable(), reason: z.string() }).nullable(),
  })
  .meta({ id: 'AuditIntegrity' })

const audit = routesUnder({ path: '/v1/audit' })

export const listAuditEntries = audit.get('list_audit_entries', '', {
  summary: 'List audit entries',
  description:
    'Newest first, 100 per page. Entries are in the order in which they were written; their times are of the clock ' +
    'of whoever wrote them. `from` and `to` find entries by their times as long as these clocks are within an ' +
    'hour of ' +
    'each other. An export has every entry, whatever its time.',
  query: z.strictObject({
    cursor: Cursor.optional(),
    action: repeated(z.string().regex(/^[a-z0-9_]+(\.[a-z0-9_]+)+$/, 'must be an action, as in server.create')),
    resource: z
      .string()
      .max(300)
      .regex(/^[a-z0-9_]+(:.+)?$/, 'must be a type, or a type and an id, as in server:<id>')
      .optional()
      .describe('Returns only entries about resources of a type, or about one, as in server:<id>.'),
    actor: z
      .string()
      .min(1)
      .max(254)
      .optional()
      .describe(
        'Returns only entries of this actor: the id of a user, of a token or of staff, an email or a token name.',
      ),
    outcome: repeated(AuditEntry.shape.outcome),
    ...Period,
  }),
  answers: { 200: pageOf(AuditEntry) },
})

export const exportAuditEntries = audit.get('export_audit_entries', '/export', {
  summary: 'Export audit entries',
  description:
    'One entry per line in chain order, oldest first. While more remain, the header X-Next-After has the sequence ' +
    'number to pass as `after`. The export itself is audited.',
  query: z.strictObject({
    after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
    limit: z.coerce.number().int().min(1).max(EXPORT_LIMIT_MAXIMUM).default(EXPORT_LIMIT_DEFAULT),
  }),
  mediaType: 'application/x-ndjson',
  answers: { 200: AuditEntry },
})

export const getAuditIntegrity = audit.get('get_audit_integrity', '/integrity', {
  summary: 'Get the verification status of the audit log',
  description: 'The platform verifies every chain hourly.',
  answers: { 200: AuditIntegrity },
})

export const AUDIT_ROUTES = [listAuditEntries, exportAuditEntries, getAuditIntegrity] as const
