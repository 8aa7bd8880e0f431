/** Orders of the process that serves clients to the process with root's rights, and the responses: lines of JSON over a
 *  private socket pair. An order names only a recorded tenant or a run of its engine: no path, no program, no user. */
import { z } from 'zod'
import { TenantSettings } from '../../integrations/object-storage/control.ts'

/** Limit of a line. */
export const ORDER_BYTES_MAXIMUM = 1_024
export const ANSWER_BYTES_MAXIMUM = 64 * 1_024
/** Limit of unanswered orders. */
export const ORDERS_OPEN_MAXIMUM = 1_024

const Id = z.string().regex(/^[a-z0-9][a-z0-9.-]{0,252}$/)
const Run = z.int().min(1)
const { accessKeyId, secretAccessKey, bucketPrefix } = TenantSettings.shape
const Resident = z.strictObject({ id: Id, accessKeyId, bucketPrefix })

const number = z.int().min(1)
export const Order = z.discriminatedUnion('order', [
  z.strictObject({ number, order: z.literal('keep'), ...Resident.shape, secretAccessKey: secretAccessKey.optional() }),
  z.strictObject({ number, order: z.literal('prepare'), id: Id }),
  z.strictObject({ number, order: z.literal('start'), id: Id }),
  z.strictObject({ number, order: z.literal('measure'), id: Id }),
  z.strictObject({ number, order: z.literal('remove'), id: Id }),
  z.strictObject({ number, order: z.literal('end'), run: Run }),
  z.strictObject({ number, order: z.literal('missing'), run: Run }),
  /** Clients are served at this port. */
  z.strictObject({ number, order: z.literal('ready'), port: z.int().min(1).max(65_535) }),
])
export type Order = z.infer<typeof Order>
type Each<Of> = Of extends unknown ? Omit<Of, 'number'> : never
export type NewOrder = Each<Order>

export const TenantLine = z.strictObject({
  id: z.string(),
  accessKeyId: z.string(),
  bucketPrefix: z.string(),
  secretAccessKey: z.string().nullable(),
})

/** The first line: initial information for the process. */
export const InitialState = z.strictObject({
  host: z.string(),
  port: z.int(),
  controlPort: z.int(),
  token: z.string(),
  certificate: z.string(),
  key: z.string(),
  /** Origin of the portal, whose pages upload objects; null for none. */
  portalOrigin: z.string().nullable(),
  isolation: z.strictObject({ kind: z.enum(['uid', 'namespace', 'account', 'process']), hasProc: z.boolean() }),
  bounds: z.enum(['cgroup', 'rlimit']),
  /** Limit of the running engines. */
  liveMaximum: z.int(),
  unknownBuckets: z.int(),
  /** User and group that it becomes; null when it keeps its own. */
  user: z.int().nullable(),
  /** Number of the following lines with recorded tenants. */
  tenants: z.int(),
})
export type InitialState = z.infer<typeof InitialState>

export const StartedRun = z.strictObject({
  run: Run,
  number: z.int(),
  uid: z.int().nullable(),
  pid: z.int().nullable(),
  root: z.strictObject({ accessKeyId: z.string(), secretAccessKey: z.string() }),
})
export const MeasuredAnswer = z.strictObject({
  bytes: z.number(),
  objects: z.number(),
  buckets: z.number(),
  files: z.number(),
})

/** All lines after those. */
export const SupervisorMessage = z.union([
  z.strictObject({ number, done: z.unknown() }),
  z.strictObject({ number, failed: z.string(), isLost: z.boolean() }),
  z.strictObject({ ended: Run, how: z.string() }),
  z.strictObject({ stop: z.literal(true) }),
])
export type SupervisorMessage = z.infer<typeof SupervisorMessage>
