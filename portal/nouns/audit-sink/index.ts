/** Audit sinks: the audit log, sent in signed batches to a collector or a bucket. */
import { Send } from 'lucide-react'
import { t } from '../../texts/index.ts'
import { type FormField, noun, type Values } from '../noun.ts'

const isBucket = ({ type }: Values): boolean => type === 's3'

const bucketFields = [
  { name: 'bucket', isShown: isBucket, isNeeded: true },
  { name: 'region', isShown: isBucket },
  { name: 'access_key_id', isShown: isBucket, isNeeded: true },
  { name: 'secret_access_key', isShown: isBucket, isNeeded: true, as: 'secret' },
  { name: 'prefix', isShown: isBucket, isMore: true },
] as const satisfies readonly FormField[]

export const auditSink = noun({
  name: 'audit_sink',
  area: 'account',
  icon: Send,
  path: '/audit-sinks',
  list: 'list_audit_sinks',
  read: 'get_audit_sink',
  create: 'create_audit_sink',
  update: 'update_audit_sink',
  member: 'audit_sink',
  titleOf: ({ name }) => name,
  stateOf: ({ state }) => state,
  looks: { active: 'good', failing: 'bad', disabled: 'off' },
  columns: ['type', 'url', 'pending_entries', 'last_sent_at', 'created_at'],
  facts: [
    'type',
    'url',
    'bucket',
    'prefix',
    'region',
    'access_key_id',
    'error',
    'failing_since',
    'sent_sequence',
    'pending_entries',
    'oldest_pending_at',
    'skipped_entries',
    'last_sent_at',
    'created_at',
  ],
  form: [
    { name: 'name' },
    { name: 'type' },
    { name: 'url', note: () => t().auditSink.urlNote },
    ...bucketFields,
    { name: 'after', isMore: true, note: () => t().auditSink.afterNote },
    { name: 'enabled', isMore: true, note: () => t().auditSink.enabledNote },
  ],
  initial: { type: 'https' },
  edit: [
    { name: 'name' },
    { name: 'url', note: () => t().auditSink.urlNote },
    ...bucketFields.map((field) => ({ ...field, isNeeded: false })),
    { name: 'enabled', note: () => t().auditSink.enabledNote },
  ],
  actions: [
    {
      operation: 'delete_audit_sink',
      confirm: {
        type: ({ name }) => name,
        goes: ({ pending_entries: count }) => (count === 0 ? [] : [t().auditSink.goesPending(count)]),
        stays: () => [t().auditSink.staysLog],
      },
    },
  ],
})
