/** Shapes that more than one noun uses, public (snake_case) and stored (camelCase). */
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM, parseBackupSchedule } from '../../domain/backup/schedule.ts'
import { z } from 'zod'
import { OPERATION_KINDS, OPERATION_STATUSES } from '../../domain/operations.ts'

/** The id of a resource in the API: a UUID, or the DNS label that a person chose with kubectl. */
export const Id = z
  .string()
  .min(1)
  .max(253)
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'is not an id')
export const Uuid = z.uuid()
/** The parameters of a route about one object. */
export const ById = z.strictObject({ id: Id })
export const DateTime = z.iso.datetime()
/** What kept bytes cost by. */
export const Metered = z.strictObject({
  hour: z.string().max(64).describe('Start of the clock hour (UTC) of the last measurement.'),
  bytes: z.int().min(0).describe('What the last measurement found.'),
  highestBytes: z.int().min(0).describe('The most that was measured in that hour, which is what it costs.'),
})
export const ZoneName = z
  .string()
  .min(1)
  .max(63)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/)
/** RFC 1123 host name label. */
export const Hostname = z
  .string()
  .min(1)
  .max(63)
  .regex(
    /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
    'must be 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit',
  )

/** One line of text for people. */
export const Printable = z.string().regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')
export const PrintableName = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')

export const LABELS_MAXIMUM = 64
const LabelKey = z
  .string()
  .min(1)
  .max(63)
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$/,
    'must be 1 to 63 letters, digits, ".", "_", "/" or "-", starting and ending with a letter or digit',
  )
const LabelValue = z
  .string()
  .max(255)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')
export const Labels = z
  .record(LabelKey, LabelValue)
  .refine((labels) => Object.keys(labels).length <= LABELS_MAXIMUM, `at most ${LABELS_MAXIMUM} labels`)
/** Labels as a CRD can say them; the exact rule is `Labels`, applied by the facade and by admission. */
export const StoredLabels = z.record(z.string(), z.string().max(255)).meta({ maxProperties: LABELS_MAXIMUM })

const LABEL_FILTERS_MAXIMUM = 16
/** `key=value`; everything after the first `=` is the value. */
const LabelFilter = z
  .string()
  .min(1)
  .max(63 + 1 + 255)
  .regex(/^[^=]+=/, 'must be key=value')
/** What lists can be narrowed by: an object must carry every label that is named. */
export const LabelFilters = z
  .array(LabelFilter)
  .max(LABEL_FILTERS_MAXIMUM)
  .optional()
  .describe('key=value; may be given more than once.')

export const LIST_LIMIT_DEFAULT = 50
export const LIST_LIMIT_MAXIMUM = 100
/** `?limit=`: clamped above the maximum, refused when 0 or negative. */
export const limitOf = (defaultLimit: number) =>
  z.coerce
    .number()
    .int()
    .min(1)
    .transform((limit) => Math.min(limit, LIST_LIMIT_MAXIMUM))
    .default(defaultLimit)
export const Limit = limitOf(LIST_LIMIT_DEFAULT)
export const Cursor = z.string().min(1).max(1024)
export const PageQuery = z.strictObject({ cursor: Cursor.optional(), limit: Limit })
/** A page of a list; without a cursor it is the last one. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() })
/** A list that is never long enough for pages. */
export const completeListOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next_cursor: z.null() })

/** Public host keys of a guest's SSH server, `type base64` each. */
export const SshHostKeys = z.array(z.string().max(4096)).max(8)

/** KEP-1623. */
export const Condition = z.strictObject({
  type: z.string().min(1).max(316).describe('What the condition speaks of, in PascalCase.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether it holds.'),
  reason: z.string().min(1).max(1024).describe('One word for programs that says why.'),
  message: z.string().max(32_768).describe('For people; may be empty.'),
  lastTransitionTime: z
    .string()
    .max(64)
    .meta({ format: 'date-time' })
    .describe('When the status of the condition changed last.'),
  observedGeneration: z.int().min(0).optional().describe('The metadata.generation that it was judged by.'),
})
export type Condition = z.infer<typeof Condition>
export const ObservedGeneration = z
  .int()
  .min(0)
  .optional()
  .describe(
    'The metadata.generation that the rest of the status speaks of: a lower one than the object has means that ' +
      'its newest change has not been looked at.',
  )
export const Conditions = z
  .array(Condition)
  .max(16)
  .describe(
    'Ready sums up. Reconciling and Stalled are true only while the object is being brought about, or cannot be ' +
      'without help.',
  )
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })

/** The change that is under way on a resource, written together with the desired state in one conditional write.
 *  At most one is active: `status.operation` of the same id is final before the next may be written. */
export const OperationStanza = z.strictObject({
  id: z.string().max(253).describe('Name of the Operation.'),
  kind: z.enum(OPERATION_KINDS).describe('What is done.'),
  requestedAt: z.string().max(64).meta({ format: 'date-time' }).describe('When it was asked for.'),
  deadlineAt: z.string().max(64).meta({ format: 'date-time' }).describe('When it has failed unless it is done.'),
  actor: z.string().max(512).describe('Who asked: user:<id>, token:<name>, operator or system:<component>.'),
  requestId: z.string().max(128).describe('The request that asked, as in its answer and in the audit log.'),
  traceparent: z
    .string()
    .max(64)
    .optional()
    .describe('Where traces are recorded: the trace of the request, as W3C Trace Context writes it.'),
  arguments: z
    .record(z.string(), z.string().max(1024))
    .meta({ maxProperties: 16 })
    .optional()
    .describe('What the operation needs beside the desired state; never a secret.'),
})
export type OperationStanza = z.infer<typeof OperationStanza>

/** How far the operation of the stanza is; mirrors the Operation object, so that one read of the resource tells whether
 *  it is busy. */
export const OperationProgress = z.strictObject({
  id: z.string().max(253).describe('Name of the Operation.'),
  kind: z.enum(OPERATION_KINDS).describe('What is done.'),
  status: z.enum(OPERATION_STATUSES).describe('Whether it is under way, or how it ended.'),
  step: z.string().max(63).describe('The first of its steps that is not done.'),
  stepIndex: z.int().min(0).max(100).describe('How many steps are done.'),
  stepCount: z.int().min(0).max(100).describe('How many steps it has.'),
  error: z.string().max(4096).describe('Why it failed; empty otherwise.'),
  actor: z.string().max(512).describe('Who asked for it.'),
  createdAt: z.string().max(64).describe('When it was asked for.'),
  deadlineAt: z.string().max(64).describe('When it has failed unless it is done.'),
  startedAt: z.string().max(64).optional().describe('When it began.'),
  finishedAt: z.string().max(64).optional().describe('When it ended.'),
})
export type OperationProgress = z.infer<typeof OperationProgress>

const NEWEST_CHANGE = 'The newest change that was asked for. Written by the platform only'
/** `spec.operation` of a kind whose operations the API alone starts, and of one where an edit by kubectl starts one
 *  too. */
export const RequestedOperation = OperationStanza.optional().describe(`${NEWEST_CHANGE}.`)
export const RequestedOrEditedOperation = OperationStanza.optional().describe(
  `${NEWEST_CHANGE}; an edit gets its operation by itself.`,
)
/** `status.operation` of whatever has operations. */
export const ReportedOperation = OperationProgress.optional().describe('How far the newest operation is.')

/** A stored object as views read it. `createdAt` is RFC 3339. */
export interface Stored<Spec, Status = unknown> {
  readonly name: string
  readonly createdAt: string
  readonly isDeleting: boolean
  readonly spec: Spec
  readonly status?: Status | undefined
}

/** The object without what is Kubernetes' own. */
export const storedOf = <Spec, Status>({
  metadata: { name, creationTimestamp = '', deletionTimestamp },
  spec,
  status,
}: {
  readonly metadata: {
    readonly name: string
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
  }
  readonly spec: Spec
  readonly status?: Status
}): Stored<Spec, Status> => ({
  name,
  createdAt: creationTimestamp,
  isDeleting: deletionTimestamp !== undefined,
  spec,
  status,
})

/** Of a backup that a host reads or writes. */
export const ObjectStorageZone = z
  .string()
  .max(63)
  .optional()
  .describe('Zone whose object storage holds the backup; the place that the host is configured with when absent.')

/** When backups of a storage are made by themselves, as requests say it. */
export const BackupSchedule = z
  .string()
  .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
  .superRefine((text, context) => {
    const read = parseBackupSchedule(text)
    if ('fault' in read) context.addIssue({ code: 'custom', message: read.fault })
  })
  .describe('Five fields as cron has them, in UTC, at most once in an hour, such as "30 3 * * *"; null for none.')
