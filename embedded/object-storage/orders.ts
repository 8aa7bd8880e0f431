/** What the process that serves clients asks of the one that has the rights of root, and what that says: lines of JSON
 *  over a pair of sockets that nobody else has. An order names a recorded tenant or a run of its engine, and nothing
 *  else: no path, no program, no user. */
import { z } from 'zod'
import { TenantSettings } from '../../integrations/object-storage/control.ts'

/** Of a line. */
export const ORDER_BYTES_MAXIMUM = 1_024
export const ANSWER_BYTES_MAXIMUM = 64 * 1_024
/** That are not answered yet. */
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
export type Asked = Each<Order>

export const TenantLine = z.strictObject({
  id: z.string(),
  accessKeyId: z.string(),
  bucketPrefix: z.string(),
  secretAccessKey: z.string().nullable(),
})

/** The first line: what the process has to know. */
export const Beginning = z.strictObject({
  host: z.string(),
  port: z.int(),
  controlPort: z.int(),
  token: z.string(),
  certificate: z.string(),
  key: z.string(),
  isolation: z.strictObject({ kind: z.enum(['uid', 'namespace', 'account', 'process']), hasProc: z.boolean() }),
  bounds: z.enum(['cgroup', 'rlimit']),
  /** Engines that may run at a time. */
  liveMaximum: z.int(),
  unknownBuckets: z.int(),
  /** Who it becomes, user and group; null when it stays who it is. */
  user: z.int().nullable(),
  /** So many lines with recorded tenants follow. */
  tenants: z.int(),
})
export type Beginning = z.infer<typeof Beginning>

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

/** Every line after those. */
export const Said = z.union([
  z.strictObject({ number, done: z.unknown() }),
  z.strictObject({ number, failed: z.string(), isLost: z.boolean() }),
  z.strictObject({ ended: Run, how: z.string() }),
  z.strictObject({ stop: z.literal(true) }),
])
export type Said = z.infer<typeof Said>
