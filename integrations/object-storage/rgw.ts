/** Tenants of a Ceph RADOS Gateway, through its Admin Ops API. Each is the only user of a tenant of the gateway, so it
 *  has its own namespace of buckets. The mask of its operations limits its rights. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Unavailable } from '../../domain/problem.ts'
import { fingerprintOfSecret, type ObjectStorageControl, type TenantSettings, type TenantState } from './control.ts'
import {
  openConnections,
  openExchange,
  type StoreAddress,
  type StoreAnswer,
  type StoreRequest,
} from '../../kit/s3/exchange.ts'

const USER = 'owner'
const BUCKETS_MAXIMUM = 100
/** Counting the content of many buckets takes the gateway long, and nothing needs it more often. */
const MEASURE_MILLISECONDS = 60_000
const PURGE_MILLISECONDS = 300_000
/** A gateway answers a change of a user or a bucket when all gateways of its zone know it. For a gateway that has
 *  crashed it waits until the cluster considers it gone, after 30 s (`osd_client_watch_timeout` and
 *  `osd_default_notify_timeout`). */
const CHANGE_MILLISECONDS = 45_000
const EVERYTHING = 'read,write,delete'

const User = z.looseObject({
  suspended: z.number(),
  max_buckets: z.number(),
  op_mask: z.string(),
  keys: z.array(z.looseObject({ access_key: z.string(), secret_key: z.string() })),
  user_quota: z.looseObject({ enabled: z.boolean(), max_size: z.number() }),
  stats: z.looseObject({ size: z.number(), num_objects: z.number() }).optional(),
})
type User = z.infer<typeof User>

interface Usage {
  readonly at: Date
  readonly bytes: number
  readonly objects: number
}

/** The gateway's name of the tenant: it may contain only letters and digits. */
export const gatewayUserOf = (id: string): string =>
  `t${createHash('sha256').update(id).digest('hex').slice(0, 32)}$${USER}`

/** A suspended user of the gateway cannot read, so the operation mask restricts it instead. */
const maskOf = ({ isSuspended, isFrozen }: Pick<TenantSettings, 'isSuspended' | 'isFrozen'>): string =>
  isFrozen ? 'read' : isSuspended ? 'read,delete' : EVERYTHING
const operationsOf = (mask: string): readonly string[] => mask.split(',').map((operation) => operation.trim())

interface Administration {
  send(
    method: StoreRequest['method'],
    query: Readonly<Record<string, string>>,
    options?: { readonly accepts?: readonly number[]; readonly milliseconds?: number },
  ): Promise<StoreAnswer>
  findUser(id: string, isMeasured: boolean): Promise<User | undefined>
  bucketsOf(id: string): Promise<readonly string[]>
}

function openAdministration(address: StoreAddress): Administration {
  const exchange = openExchange(address)
  const ask = async (
    request: Pick<StoreRequest, 'method' | 'path' | 'query'>,
    { accepts = [], milliseconds }: { readonly accepts?: readonly number[]; readonly milliseconds?: number } = {},
  ): Promise<StoreAnswer> => {
    try {
      const answer = await exchange.askWhole({ ...request, query: { format: 'json', ...request.query } }, milliseconds)
      // For a missing user the gateway's 404 says so. A 404 of anything else at its address proves nothing.
      const isMeant = answer.status !== 404 || 'key' in (request.query ?? {}) || answer.text.includes('NoSuchUser')
      if (answer.status < 300 || (accepts.includes(answer.status) && isMeant)) return answer
      throw new Error(`${request.method} ${request.path}: status ${answer.status}: ${answer.text.slice(0, 300)}`)
    } catch (error) {
      throw new Unavailable('the object storage', error)
    }
  }
  return {
    send: (method, query, options) =>
      ask({ method, path: 'admin/user', query }, { milliseconds: CHANGE_MILLISECONDS, ...options }),
    async findUser(id, isMeasured) {
      const query = { uid: gatewayUserOf(id), ...(isMeasured ? { stats: 'true', sync: 'true' } : {}) }
      const { status, text } = await ask({ method: 'GET', path: 'admin/user', query }, { accepts: [404] })
      return status === 404 ? undefined : User.parse(JSON.parse(text))
    },
    async bucketsOf(id) {
      const { text } = await ask({ method: 'GET', path: 'admin/bucket', query: { uid: gatewayUserOf(id) } })
      return z.array(z.string()).parse(JSON.parse(text))
    },
  }
}

/** Authenticates as a user of the gateway with the capabilities `users=*` and `buckets=read`. A tenant that is both
 *  frozen and suspended is treated as frozen. */
export function openGateway(of: StoreAddress): ObjectStorageControl {
  const address = { ...of, connections: openConnections(of) }
  const { clock } = of
  const admin = openAdministration(address)
  const measured = new Map<string, Usage>()

  async function measure(id: string, isFresh: boolean): Promise<{ user: User; usage: Usage } | undefined> {
    const known = measured.get(id)
    const now = clock.now()
    const isRecent = known !== undefined && now.getTime() - known.at.getTime() < MEASURE_MILLISECONDS
    const previous = isFresh || !isRecent ? undefined : known
    const user = await admin.findUser(id, previous === undefined)
    if (user === undefined) {
      measured.delete(id)
      return undefined
    }
    const usage = previous ?? { at: now, bytes: user.stats?.size ?? 0, objects: user.stats?.num_objects ?? 0 }
    measured.set(id, usage)
    return { user, usage }
  }

  return {
    async putTenant(id, settings) {
      await ensureUser(admin, id, settings)
      for (const name of settings.buckets ?? []) await ensureBucket(address, settings, name)
    },
    async getTenant(id, isFresh = false) {
      const found = await measure(id, isFresh)
      return found && stateOf(found.user, found.usage, (await admin.bucketsOf(id)).length)
    },
    async removeTenant(id, isPurged = false) {
      const query = { uid: gatewayUserOf(id), ...(isPurged ? { 'purge-data': 'true' } : {}) }
      const { status } = await admin.send('DELETE', query, { accepts: [404, 409], milliseconds: PURGE_MILLISECONDS })
      if (status === 409) return false
      measured.delete(id)
      return true
    },
  }
}

async function ensureUser(admin: Administration, id: string, settings: TenantSettings): Promise<void> {
  const uid = gatewayUserOf(id)
  const rights = { 'op-mask': maskOf(settings), 'max-buckets': String(BUCKETS_MAXIMUM) }
  const user = await admin.findUser(id, false)
  if (user === undefined) {
    await admin.send('PUT', { uid, 'display-name': `svccloud ${id}`, ...rights, ...keyOf(settings) })
  } else {
    const isRight =
      isSameMask(user.op_mask, rights['op-mask']) && user.max_buckets === BUCKETS_MAXIMUM && user.suspended === 0
    if (!isRight) await admin.send('POST', { uid, suspended: 'false', ...rights })
    await ensureKey(admin, { uid, user, settings })
  }
  const { quotaBytes } = settings
  if (user?.user_quota.enabled === true && user.user_quota.max_size === quotaBytes) return
  // As query parameters: Admin Ops does not accept bodies with this signature.
  const quota = { 'quota-type': 'user', enabled: 'true', 'max-size': String(quotaBytes), 'max-objects': '-1' }
  await admin.send('PUT', { quota: '', uid, ...quota })
}

/** Makes this the user's only key. */
async function ensureKey(
  admin: Administration,
  { uid, user, settings }: { readonly uid: string; readonly user: User; readonly settings: TenantSettings },
): Promise<void> {
  const { accessKeyId, secretAccessKey } = settings
  for (const { access_key: other } of user.keys)
    if (other !== accessKeyId) await admin.send('DELETE', { key: '', uid, 'access-key': other }, { accepts: [404] })
  if (user.keys.some((key) => key.access_key === accessKeyId && key.secret_key === secretAccessKey)) return
  await admin.send('PUT', { key: '', uid, ...keyOf(settings) })
}

async function ensureBucket(address: StoreAddress, credentials: TenantSettings, name: string): Promise<void> {
  const { status, text } = await openExchange({ ...address, credentials })
    .askWhole({ method: 'PUT', path: name }, CHANGE_MILLISECONDS)
    .catch((error: unknown) => {
      throw new Unavailable('the object storage', error)
    })
  if (status >= 300 && !text.includes('BucketAlreadyOwnedByYou'))
    throw new Unavailable('the object storage', new Error(`bucket ${name}: status ${status}`))
}

const keyOf = ({ accessKeyId, secretAccessKey }: TenantSettings): Readonly<Record<string, string>> => ({
  'access-key': accessKeyId,
  'secret-key': secretAccessKey,
  'key-type': 's3',
  'generate-key': 'false',
})

const isSameMask = (one: string, other: string): boolean =>
  operationsOf(one).toSorted().join() === operationsOf(other).toSorted().join()

function stateOf(user: User, usage: Usage, bucketCount: number): TenantState {
  const [key] = user.keys
  const operations = operationsOf(user.op_mask)
  const isReadOnly = !operations.includes('write')
  return {
    accessKeyId: key?.access_key ?? '',
    secretFingerprint: user.keys.length === 1 && key !== undefined ? fingerprintOfSecret(key.secret_key) : '',
    quotaBytes: user.user_quota.enabled ? user.user_quota.max_size : Number.MAX_SAFE_INTEGER,
    isSuspended: isReadOnly && operations.includes('delete'),
    isFrozen: isReadOnly && !operations.includes('delete'),
    bucketCount,
    usedBytes: usage.bytes,
    objectCount: usage.objects,
    measuredAt: usage.at.toISOString(),
  }
}
