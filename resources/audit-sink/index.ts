/** Audit sinks: collectors and buckets of customers to which the audit log of their account is pushed. Public shape and
 *  routes. Stored in PostgreSQL only. */
import { z } from 'zod'
import { BATCH_ENTRIES_MAXIMUM } from '../../domain/audit-sink/rules.ts'
import { URL_LENGTH_MAXIMUM } from '../../domain/webhook/rules.ts'
import { DateTime, PrintableName, Uuid } from '../kit/shapes.ts'
import { verbsOf } from '../kit/verbs.ts'
import { managed } from '../kit/managed.ts'

const Url = z
  .string()
  .min(1)
  .max(URL_LENGTH_MAXIMUM)
  .describe('Address of the collector, or endpoint of the store of the bucket: https, at a public address.')
const Bucket = z
  .string()
  .min(3)
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
  .describe('Name of the bucket, for the type s3.')
const Prefix = z
  .string()
  .max(256)
  .regex(/^[\w!.*'()/-]*$/)
  .describe('Start of the names of objects, for the type s3.')
const Region = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[A-Za-z0-9_.-]+$/)
  .describe('Region that requests to the bucket are signed for.')
const AccessKeyId = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9]+$/)
  .describe('Access key of the bucket.')
const AccessKeySecret = z.string().min(1).max(256).describe('Secret of the access key. It is never shown.')

export const AuditSinkView = z
  .strictObject({
    id: Uuid,
    name: z.string(),
    type: z.enum(['https', 's3']).describe('What it sends to: a collector by HTTPS, or a bucket.'),
    url: z.string().describe('Address of the collector, or endpoint of the store of the bucket.'),
    bucket: z.string().nullable().describe('Name of the bucket; null for a collector.'),
    prefix: z.string().nullable().describe('Start of the names of objects; null for a collector.'),
    region: z.string().nullable().describe('Region that requests are signed for; null for a collector.'),
    access_key_id: z.string().nullable().describe('Access key of the bucket; null for a collector.'),
    enabled: z.boolean().describe('Whether batches are to be sent.'),
    state: z.enum(['active', 'failing', 'disabled']).describe('Whether batches arrive.'),
    sent_sequence: z.int().min(0).describe('Sequence number of the last entry that has arrived.'),
    pending_entries: z.int().min(0).describe('Entries that have not arrived yet.'),
    oldest_pending_at: DateTime.nullable().describe('Time of the oldest of them; null when there is none.'),
    skipped_entries: z.int().min(0).describe('Entries that were pruned from the log before they could be sent.'),
    last_sent_at: DateTime.nullable().describe('When a batch arrived last; null before.'),
    failing_since: DateTime.nullable().describe('First of the failures since a batch has arrived; null without any.'),
    response_status: z.int().nullable().describe('HTTP status of the newest answer; null without one.'),
    error: z.string().nullable().describe('Why the newest attempt failed; null when it did not.'),
    created_at: DateTime,
  })
  .meta({ id: 'AuditSink' })
export type AuditSinkView = z.infer<typeof AuditSinkView>

const SecretText = z.string().describe('Secret that signs the batches; only this answer contains it.')
const verbs = verbsOf({ path: '/v1/account/audit-sinks', noun: 'audit_sink', view: AuditSinkView })

export const listAuditSinks = verbs.list('list_audit_sinks', {
  summary: 'List audit sinks',
  description: 'Newest first.',
})

export const createAuditSink = verbs.create('create_audit_sink', {
  isRefusedToSupport: true,
  summary: 'Push the audit log to a collector or a bucket',
  description:
    `Entries are sent in their order, in signed batches of at most ${BATCH_ENTRIES_MAXIMUM}, one JSON document a ` +
    'line as in the export. Only this answer contains the secret.',
  body: z.strictObject({
    name: PrintableName.describe('Unique in the account.'),
    type: z.enum(['https', 's3']).describe('What it sends to: a collector by HTTPS, or a bucket.'),
    url: Url,
    bucket: Bucket.optional(),
    prefix: Prefix.optional(),
    region: Region.optional(),
    access_key_id: AccessKeyId.optional(),
    secret_access_key: AccessKeySecret.optional(),
    after: z
      .int()
      .min(0)
      .default(0)
      .describe('Sequence number of the entry after which the first batch starts; 0 for the complete log.'),
    enabled: z.boolean().default(true).describe('Whether batches are sent.'),
  }),
  example: { name: 'archive', type: 'https', url: 'https://collector.example.com/audit' },
  secretFields: ['secret'],
  answers: { 201: z.strictObject({ audit_sink: AuditSinkView, secret: SecretText }) },
  refuses: [400, 409, 422, 503],
})

export const getAuditSink = verbs.read('get_audit_sink', { summary: 'Get an audit sink and how far it has come' })

export const updateAuditSink = verbs.change('update_audit_sink', {
  isRefusedToSupport: true,
  summary: 'Change an audit sink',
  description: 'It continues where it was, and tries again at once. With If-Match only that version is changed.',
  body: z.strictObject({
    name: PrintableName.optional(),
    url: Url.optional(),
    bucket: Bucket.optional(),
    prefix: Prefix.optional(),
    region: Region.optional(),
    access_key_id: AccessKeyId.optional(),
    secret_access_key: AccessKeySecret.optional(),
    enabled: z.boolean().optional().describe('Whether batches are sent.'),
  }),
  example: { enabled: false },
  refuses: [400, 404, 409, 503],
})

export const deleteAuditSink = verbs.remove('delete_audit_sink', {
  summary: 'Delete an audit sink',
  description: 'What was sent stays where it is.',
  refuses: [404],
})

export const AUDIT_SINK_ROUTES = [
  listAuditSinks,
  createAuditSink,
  getAuditSink,
  updateAuditSink,
  deleteAuditSink,
] as const

export const managedAuditSink = managed({
  noun: 'audit_sink',
  view: AuditSinkView,
  routes: { list: listAuditSinks, create: createAuditSink, read: getAuditSink, remove: deleteAuditSink },
  names: ['name'],
  uniqueIn: 'account',
  changes: [
    {
      by: updateAuditSink,
      sets: ['name', 'url', 'bucket', 'prefix', 'region', 'access_key_id', 'secret_access_key', 'enabled'],
    },
  ],
  fields: {
    prefix: { isChosen: true },
    region: { isChosen: true },
    secret_access_key: { shows: 'nothing', isSecret: true },
    after: { shows: 'nothing' },
  },
  facts: ['id', 'created_at'],
  moments: [
    'state',
    'sent_sequence',
    'pending_entries',
    'oldest_pending_at',
    'skipped_entries',
    'last_sent_at',
    'failing_since',
    'response_status',
    'error',
  ],
})
