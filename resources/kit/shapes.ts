/** Shapes that more than one noun uses, public (snake_case) and stored (camelCase). */
import { BACKUP_SCHEDULE_CHARACTERS_MAXIMUM, parseBackupSchedule } from '../../domain/backup/schedule.ts'
import { z } from 'zod'
import { ACTOR_LENGTH_MAXIMUM, OPERATION_KINDS, OPERATION_STATUSES } from '../../domain/operations.ts'

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
/** Metered size of stored bytes. */
export const Metered = z.strictObject({
  hour: z.string().max(64).describe('Start of the clock hour (UTC) of the last measurement.'),
  bytes: z.int().min(0).describe('Result of the last measurement.'),
  highestBytes: z.int().min(0).describe('Highest measurement in that hour, which is billed.'),
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
export const NAME_LENGTH_MAXIMUM = 100
export const PrintableName = z
  .string()
  .trim()
  .min(1)
  .max(NAME_LENGTH_MAXIMUM)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')

export const LABELS_MAXIMUM = 64
const LABEL_KEY_LENGTH_MAXIMUM = 63
const LABEL_VALUE_LENGTH_MAXIMUM = 255
const LabelKey = z
  .string()
  .min(1)
  .max(LABEL_KEY_LENGTH_MAXIMUM)
  .regex(
    /^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$/,
    'must be 1 to 63 letters, digits, ".", "_", "/" or "-", starting and ending with a letter or digit',
  )
const LabelValue = z
  .string()
  .max(LABEL_VALUE_LENGTH_MAXIMUM)
  .regex(/^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u, 'must be printable')
export const Labels = z
  .record(LabelKey, LabelValue)
  .refine((labels) => Object.keys(labels).length <= LABELS_MAXIMUM, `at most ${LABELS_MAXIMUM} labels`)
/** Labels as far as a CRD can describe them; the exact rule is `Labels`, applied by the facade and by admission. */
export const StoredLabels = z
  .record(z.string(), z.string().max(LABEL_VALUE_LENGTH_MAXIMUM))
  .meta({ maxProperties: LABELS_MAXIMUM })

const LABEL_FILTERS_MAXIMUM = 16
/** `key=value`; the value is everything after the first `=`. */
const LabelFilter = z
  .string()
  .min(1)
  .max(LABEL_KEY_LENGTH_MAXIMUM + 1 + LABEL_VALUE_LENGTH_MAXIMUM)
  .regex(/^[^=]+=/, 'must be key=value')
/** Filter of lists: an object must have every named label. */
export const LabelFilters = z
  .array(LabelFilter)
  .max(LABEL_FILTERS_MAXIMUM)
  .optional()
  .describe('key=value; may be given more than once.')

export const LIST_LIMIT_DEFAULT = 50
export const LIST_LIMIT_MAXIMUM = 100
/** `?limit=`: reduced to the maximum when above it, refused when 0 or negative. */
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
/** A page of a list; the last page has no cursor. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next_cursor: z.string().nullable() })
/** A list that is never long enough for pages. */
export const completeListOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), next_cursor: z.null().describe('Always null: the list is complete.') })

/** Public host keys of a guest's SSH server, each as `type base64`. */
export const SshHostKeys = z.array(z.string().max(4096)).max(8)

/** KEP-1623. */
export const Condition = z.strictObject({
  type: z.string().min(1).max(316).describe('Type of the condition, in PascalCase.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Status of the condition.'),
  reason: z.string().min(1).max(1024).describe('Machine-readable reason, one word.'),
  message: z.string().max(32_768).describe('Human-readable message; may be empty.'),
  lastTransitionTime: z
    .string()
    .max(64)
    .meta({ format: 'date-time' })
    .describe('Time of the last change of the status.'),
  observedGeneration: z.int().min(0).optional().describe('metadata.generation that the condition was computed from.'),
})
export type Condition = z.infer<typeof Condition>
export const ObservedGeneration = z
  .int()
  .min(0)
  .optional()
  .describe(
    "metadata.generation that the rest of the status refers to. When it is lower than the object's, the newest " +
      'change has not been processed.',
  )
export const Conditions = z
  .array(Condition)
  .max(16)
  .describe(
    'Ready is the summary. Reconciling is true only while a change is in progress. Stalled is true only when ' +
      'progress needs help.',
  )
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })

export const Actor = z.string().max(ACTOR_LENGTH_MAXIMUM)
export const RequestId = z.string().max(128)
/** The change in progress on a resource, written together with the desired state in one conditional write. At most one
 *  is active: `status.operation` of the same id is final before the next may be written. */
export const OperationStanza = z.strictObject({
  id: z.string().max(253).describe('Name of the Operation.'),
  kind: z.enum(OPERATION_KINDS).describe('Kind of the operation.'),
  requestedAt: z.string().max(64).meta({ format: 'date-time' }).describe('Time of the request.'),
  deadlineAt: z
    .string()
    .max(64)
    .meta({ format: 'date-time' })
    .describe('Time after which it fails if it is not complete.'),
  actor: Actor.describe('Who requested it: user:<id>, token:<name>, operator or system:<component>.'),
  requestId: RequestId.describe('Id of the request, as in its answer and in the audit log.'),
  traceparent: z.string().max(64).optional().describe('W3C traceparent of the request, when traces are recorded.'),
  arguments: z
    .record(z.string(), z.string().max(1024))
    .meta({ maxProperties: 16 })
    .optional()
    .describe('Input of the operation besides the desired state; never a secret.'),
})
export type OperationStanza = z.infer<typeof OperationStanza>

/** Progress of the operation in the spec; mirrors the Operation object, so that one read of the resource shows whether
 *  it is busy. */
export const OperationProgress = z.strictObject({
  id: z.string().max(253).describe('Name of the Operation.'),
  kind: z.enum(OPERATION_KINDS).describe('Kind of the operation.'),
  status: z.enum(OPERATION_STATUSES).describe('Status of the operation.'),
  step: z.string().max(63).describe('First step that is not complete.'),
  stepIndex: z.int().min(0).max(100).describe('Number of completed steps.'),
  stepCount: z.int().min(0).max(100).describe('Number of steps.'),
  error: z.string().max(4096).describe('Reason for the failure; empty otherwise.'),
  actor: Actor.describe('Who requested it.'),
  createdAt: z.string().max(64).describe('Time of the request.'),
  deadlineAt: z.string().max(64).describe('Time after which it fails if it is not complete.'),
  startedAt: z.string().max(64).optional().describe('Time when it started.'),
  finishedAt: z.string().max(64).optional().describe('Time when it ended.'),
})
export type OperationProgress = z.infer<typeof OperationProgress>

const NEWEST_CHANGE = 'The newest requested change. Written by the platform only'
/** `spec.operation` of a kind whose operations only the API starts, and of one where an edit with kubectl starts one
 *  too. */
export const RequestedOperation = OperationStanza.optional().describe(`${NEWEST_CHANGE}.`)
export const RequestedOrEditedOperation = OperationStanza.optional().describe(
  `${NEWEST_CHANGE}; the platform creates the operation of an edit.`,
)
/** `status.operation` of every kind with operations. */
export const ReportedOperation = OperationProgress.optional().describe('Progress of the newest operation.')

/** A stored object as views read it. `createdAt` is RFC 3339. */
export interface Stored<Spec, Status = unknown> {
  readonly name: string
  readonly createdAt: string
  readonly isDeleting: boolean
  readonly spec: Spec
  readonly status?: Status | undefined
}

/** The object without Kubernetes metadata. */
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
  .describe('Zone whose object storage holds the backup; the place configured on the host when absent.')

/** The schedule of automatic backups of a storage, as requests name it. */
export const BackupSchedule = z
  .string()
  .max(BACKUP_SCHEDULE_CHARACTERS_MAXIMUM)
  .superRefine((text, context) => {
    const read = parseBackupSchedule(text)
    if ('fault' in read) context.addIssue({ code: 'custom', message: read.fault })
  })
  .describe('Five cron fields, in UTC, at most hourly, such as "30 3 * * *"; null for none.')
