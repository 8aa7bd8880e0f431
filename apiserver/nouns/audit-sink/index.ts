/** Audit sinks of an account. The secrets of buckets are never shown, and that of the signatures once. */
import {
  type AuditSinkRow,
  findAuditSink,
  findSinkNamed,
  insertAuditSink,
  listAuditSinkRows,
  lockAuditSinks,
  removeAuditSink,
  sealOfSink,
  signingSecretOf,
  updateAuditSink as updateSinkRow,
} from '../../../db/audit-sink/index.ts'
import { requireTarget } from '../../../domain/audit-sink/rules.ts'
import { badField, nameTaken, unavailable } from '../../../domain/problem.ts'
import { SECRET_BYTES, secretText } from '../../../domain/webhook/signature.ts'
import { customerEndpoint, type Endpoint } from '../../../kit/http/endpoint.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import {
  type AuditSinkView,
  createAuditSink,
  deleteAuditSink,
  getAuditSink,
  listAuditSinks,
  updateAuditSink,
} from '../../../resources/audit-sink/index.ts'
import { noun } from '../../kit/noun.ts'
import { createRow, deleteRow, getRow, listRows, type RowNoun, type RowParts, updateRow } from '../../kit/plain/rows.ts'

type SinkParts = RowParts & { readonly sealing: Sealing }

const REGION = 'us-east-1'

const viewOf = (row: AuditSinkRow): AuditSinkView => ({
  id: row.id,
  name: row.name,
  type: row.type,
  url: row.url,
  bucket: row.bucket,
  prefix: row.prefix,
  region: row.region,
  access_key_id: row.access_key_id,
  enabled: row.enabled,
  state: !row.enabled ? 'disabled' : row.failing_since === null ? 'active' : 'failing',
  sent_sequence: row.sent_sequence,
  pending_entries: row.pending_entries,
  oldest_pending_at: row.oldest_pending_at?.toISOString() ?? null,
  skipped_entries: row.skipped_entries,
  last_sent_at: row.sent_at?.toISOString() ?? null,
  failing_since: row.failing_since?.toISOString() ?? null,
  response_status: row.response_status,
  error: row.error,
  created_at: row.created_at.toISOString(),
})

const AUDIT_SINK: RowNoun<AuditSinkRow> = {
  name: 'audit_sink',
  title: 'audit sink',
  list: listAuditSinkRows,
  find: findAuditSink,
  insert: insertAuditSink,
  update: updateSinkRow,
  remove: removeAuditSink,
  lock: lockAuditSinks,
  async requireFree(queries, accountId, row) {
    const other = await findSinkNamed(queries, accountId, row)
    if (other !== undefined)
      throw nameTaken('The account has an audit sink of this name.', { type: 'audit_sink', id: other.id })
  },
  toView: viewOf,
  createdDetail: ({ type, url }) => ({ type, url }),
}

interface BucketFields {
  readonly bucket?: string | undefined
  readonly prefix?: string | undefined
  readonly region?: string | undefined
  readonly access_key_id?: string | undefined
  readonly secret_access_key?: string | undefined
}

/** Throws 400 for fields of a bucket that a collector does not have. */
function requireNone({ bucket, prefix, region, access_key_id, secret_access_key }: BucketFields): void {
  for (const [field, value] of Object.entries({ bucket, prefix, region, access_key_id, secret_access_key }))
    if (value !== undefined) throw badField(field, 'is for the type s3 only')
}

function auditSinkEndpoints(parts: SinkParts): readonly Endpoint[] {
  const { db, random, sealing } = parts
  const requireSealing = (): void => {
    if (!sealing.isAvailable)
      throw unavailable('not_configured', 'Audit sinks need sealing keys, which this deployment does not have.')
  }
  const create = createRow(parts, AUDIT_SINK, createAuditSink, ({ body, caller: { accountId } }, base) => {
    requireSealing()
    const { name, type, url, bucket, access_key_id: accessKeyId, secret_access_key: accessKey, after, enabled } = body
    requireTarget({ type, url })
    if (type === 'https') requireNone(body)
    else
      for (const [field, value] of Object.entries({ bucket, access_key_id: accessKeyId, secret_access_key: accessKey }))
        if (value === undefined) throw badField(field, 'is required for the type s3')
    const isBucket = type === 's3'
    const seal = (what: 'access key' | 'secret', text: string) => sealOfSink(sealing, accountId, base.id, what, text)
    return {
      ...base,
      name,
      type,
      url,
      bucket: bucket ?? null,
      prefix: isBucket ? (body.prefix ?? '') : null,
      region: isBucket ? (body.region ?? REGION) : null,
      access_key_id: accessKeyId ?? null,
      sealed_access_key: accessKey === undefined ? null : seal('access key', accessKey),
      sealed_secret: seal('secret', secretText(random.bytes(SECRET_BYTES))),
      enabled,
      sent_sequence: after,
      next_attempt_at: base.created_at,
      ...UNTRIED,
    }
  })
  return [
    listRows(parts, AUDIT_SINK, listAuditSinks),
    getRow(parts, AUDIT_SINK, getAuditSink),
    customerEndpoint(createAuditSink, async (call) => {
      const answer = await create.handle(call)
      const { accountId } = call.caller
      // of the same route
      const content = ('body' in answer ? answer.body : {}) as { readonly audit_sink: AuditSinkView }
      const row = await findAuditSink(db, accountId, content.audit_sink.id)
      // Somebody else may have deleted it in the meantime.
      const secret = row === undefined ? '' : signingSecretOf(sealing, accountId, row)
      return { ...answer, body: { audit_sink: row === undefined ? content.audit_sink : viewOf(row), secret } }
    }),
    updateRow(parts, AUDIT_SINK, updateAuditSink, (before, { body, caller: { accountId }, now }) => {
      const { name = before.name, url = before.url, enabled = before.enabled, secret_access_key: accessKey } = body
      requireTarget({ type: before.type, url })
      if (before.type === 'https') requireNone(body)
      if (accessKey !== undefined) requireSealing()
      // A secret is for the place that it was given for: nobody gets it by pointing the sink to their own.
      if (before.type === 's3' && url !== before.url && accessKey === undefined)
        throw badField('secret_access_key', 'is required for another endpoint')
      return {
        ...before,
        name,
        url,
        enabled,
        bucket: body.bucket ?? before.bucket,
        prefix: body.prefix ?? before.prefix,
        region: body.region ?? before.region,
        access_key_id: body.access_key_id ?? before.access_key_id,
        sealed_access_key:
          accessKey === undefined
            ? before.sealed_access_key
            : sealOfSink(sealing, accountId, before.id, 'access key', accessKey),
        next_attempt_at: now,
      }
    }),
    deleteRow(parts, AUDIT_SINK, deleteAuditSink),
  ]
}

const UNTRIED = {
  batch_through: null,
  skipped_entries: 0,
  failures: 0,
  failing_since: null,
  noticed_at: null,
  error: null,
  response_status: null,
  leased_until: null,
  sent_at: null,
  pending_entries: 0,
  oldest_pending_at: null,
} as const

export const auditSink = noun<SinkParts>({
  name: 'audit_sink',
  endpoints: auditSinkEndpoints,
})
