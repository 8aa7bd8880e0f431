/** What the platform and an object store say to each other about tenants: the shapes of both sides, and the platform's
 *  side. Objects themselves never pass here. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Measurement } from '../../domain/billing/metered-bytes.ts'
import { Unavailable } from '../../domain/problem.ts'
import { NOTHING, readText } from '../../kit/http/bounded.ts'
import type { S3 } from './s3.ts'

const BUCKETS_MAXIMUM = 4

/** What a tenant of the store may do. */
export const TenantSettings = z.strictObject({
  /** Of its one key, chosen by the platform; never another tenant's. */
  accessKeyId: z.string().regex(/^[A-Z0-9]{16,32}$/),
  secretAccessKey: z.string().regex(/^[A-Za-z0-9]{32,64}$/),
  /** What the names of its buckets begin with, and of nobody else's. */
  bucketPrefix: z.string().regex(/^[a-z0-9]{4,32}-$/),
  quotaBytes: z.int().min(0),
  /** Nothing may be added; what is there is read and deleted. */
  isSuspended: z.boolean(),
  /** Nothing may be changed, for a while. */
  isFrozen: z.boolean(),
  /** When the platform came to say so, in microseconds: what comes later than something newer is refused. Absent where
   *  nobody else says anything. */
  toldAt: z.int().min(0).optional(),
  /** Another store, which it has moved to: its requests are passed on there, where the names of its buckets are its
   *  own. */
  upstream: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      /** PEM of who signed its certificate; null when that is one that everybody trusts. */
      authority: z.string().max(8_192).nullable(),
      /** What it stored here before is there still, and nobody writes to it. */
      isSourceKept: z.boolean(),
    })
    .optional(),
  /** Buckets that are made for it when they are not there. */
  buckets: z
    .array(z.string().regex(/^[a-z0-9-]{3,63}$/))
    .max(BUCKETS_MAXIMUM)
    .optional(),
})
/** Where the requests of a tenant go that has moved. */
export type Upstream = NonNullable<z.infer<typeof TenantSettings>['upstream']>
export type TenantSettings = z.infer<typeof TenantSettings>

/** As the store has it; the secret only as `fingerprintOf` it. */
export const TenantState = TenantSettings.omit({ secretAccessKey: true, buckets: true }).extend({
  /** Absent where the names of buckets are each tenant's own. */
  bucketPrefix: TenantSettings.shape.bucketPrefix.optional(),
  secretFingerprint: z.string(),
  /** Requests under way that change something; absent where nobody counts them. */
  openWrites: z.int().min(0).optional(),
  bucketCount: z.int().min(0),
  /** Of all its buckets, with older versions and unfinished uploads. */
  usedBytes: z.int().min(0),
  objectCount: z.int().min(0),
  measuredAt: z.iso.datetime(),
  /** What was measured then, where `usedBytes` has more: what came since, and what was replaced. */
  measuredBytes: z.int().min(0).optional(),
  /** The most that was measured in the same clock hour (UTC), where somebody remembers it. */
  highestBytes: z.int().min(0).optional(),
})
export type TenantState = z.infer<typeof TenantState>

/** What an hour of it costs by. */
export const measurementOf = ({ measuredAt, usedBytes, measuredBytes, highestBytes }: TenantState): Measurement => ({
  measuredAt,
  bytes: measuredBytes ?? usedBytes,
  highestBytes,
})

/** Tells secrets apart without telling them. */
export const fingerprintOf = (secretAccessKey: string): string =>
  createHash('sha256').update(secretAccessKey).digest('hex')

export interface ObjectStorageControl {
  /** From now on the tenant is so; an earlier secret is refused when this resolves. Throws Unavailable. */
  putTenant(id: string, settings: TenantSettings): Promise<void>
  /** `isFresh` has it measured anew. Undefined for an unknown one. Throws Unavailable. */
  getTenant(id: string, isFresh?: boolean): Promise<TenantState | undefined>
  /** False, and nothing happens, while it has buckets; with `isPurged` they go, and all that is in them. Free for an
   *  unknown one. Throws Unavailable. */
  removeTenant(id: string, isPurged?: boolean): Promise<boolean>
}

/** One object store that the platform offers in zones of its own. */
export interface ObjectStorage {
  /** Ceph's gateway, which keeps copies on several hosts, or one engine on one host. */
  readonly backend: 'rgw' | 'svc-s3-single'
  /** Copies on so many hosts: three, two, one. */
  readonly durability: 'replicated' | 'degraded' | 'single_copy'
  readonly zones: readonly string[]
  /** Hosts of its zones pass archives of databases on to it. */
  readonly takesArchives: boolean
  /** Where S3 clients of the zone connect. */
  readonly endpointOf: (zone: string) => string
  /** S3 for the platform itself, with the key of a tenant. */
  readonly openS3: (zone: string, credentials: Pick<TenantSettings, 'accessKeyId' | 'secretAccessKey'>) => S3
  /** Where requests for it are passed on to. */
  readonly upstreamOf: (zone: string) => Omit<Upstream, 'isSourceKept'>
  /** PEM of who signed its certificate; null when that is one that everybody trusts. */
  readonly certificateAuthority: string | null
  readonly control: ObjectStorageControl
}

export interface ControlOptions {
  readonly url: string
  readonly token: string
}

const TIMEOUT_MILLISECONDS = 10_000
const DONE = 204
const CONFLICT = 409
const NOT_FOUND = 404
/** What the store says of a tenant that it does not know: whoever else answers 404 knows nothing of tenants. */
export const UNKNOWN_TENANT = 'unknown tenant'
const ANSWER_BYTES_MAXIMUM = 16 * 1024 ** 2

interface Answer {
  readonly status: number
  readonly text: string
}

/** The platform's side, over HTTP. */
export function openControl({ url, token }: ControlOptions, deadline: DeadlineOf): ObjectStorageControl {
  /** Only what is accepted is the store's answer. */
  const send = async (
    method: string,
    path: string,
    { body, accepts }: { readonly body?: object; readonly accepts: (answer: Answer) => boolean },
  ): Promise<Answer> => {
    const { signal, cancel } = deadline(TIMEOUT_MILLISECONDS)
    try {
      const response = await fetch(new URL(path, url), {
        method,
        signal,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await readText(response.body ?? NOTHING, ANSWER_BYTES_MAXIMUM)
      const answer = { status: response.status, text }
      if (!accepts(answer)) throw new Error(`${method} ${path}: status ${answer.status}: ${text}`)
      return answer
    } catch (error) {
      throw new Unavailable('the object storage', error)
    } finally {
      cancel()
    }
  }
  const isDoneOrConflict = ({ status }: Answer) => status === DONE || status === CONFLICT
  const isState = ({ status, text }: Answer) => status === 200 || (status === NOT_FOUND && text === UNKNOWN_TENANT)
  const pathOf = (id: string): string => `/tenants/${encodeURIComponent(id)}`
  return {
    async putTenant(id, settings) {
      const { status } = await send('PUT', pathOf(id), { body: settings, accepts: isDoneOrConflict })
      if (status === CONFLICT)
        throw new Unavailable(
          'the object storage',
          new Error('the key or prefix is taken, or it knows something newer'),
        )
    },
    async getTenant(id, isFresh = false) {
      const response = await send('GET', `${pathOf(id)}${isFresh ? '?fresh=true' : ''}`, { accepts: isState })
      return response.status === NOT_FOUND ? undefined : TenantState.parse(JSON.parse(response.text))
    },
    async removeTenant(id, isPurged = false) {
      const path = `${pathOf(id)}${isPurged ? '?purge=true' : ''}`
      return (await send('DELETE', path, { accepts: isDoneOrConflict })).status === DONE
    },
  }
}

/** A signal that aborts after so many milliseconds, unless it is cancelled. */
export type DeadlineOf = (milliseconds: number) => { readonly signal: AbortSignal; readonly cancel: () => void }
