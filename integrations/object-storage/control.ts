/** The protocol between the platform and an object store about tenants: the types of both sides, and the platform's
 *  client. Objects are never part of it. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Measurement } from '../../domain/billing/metered-bytes.ts'
import { Unavailable } from '../../domain/problem.ts'
import { NOTHING, readText } from '../../kit/http/bounded.ts'
import type { S3 } from './s3.ts'

const BUCKETS_MAXIMUM = 4

/** The settings of a tenant of the store. */
export const TenantSettings = z.strictObject({
  /** Id of its only key, chosen by the platform; no other tenant has it. */
  accessKeyId: z.string().regex(/^[A-Z0-9]{16,32}$/),
  secretAccessKey: z.string().regex(/^[A-Za-z0-9]{32,64}$/),
  /** Prefix of the names of its buckets; no other tenant has it. */
  bucketPrefix: z.string().regex(/^[a-z0-9]{4,32}-$/),
  quotaBytes: z.int().min(0),
  /** Nothing may be added; existing data may be read and deleted. */
  isSuspended: z.boolean(),
  /** Nothing may be changed, temporarily. */
  isFrozen: z.boolean(),
  /** When the platform created these settings, in microseconds. The store refuses settings older than its current ones.
   *  Absent when there is only one sender. */
  toldAt: z.int().min(0).optional(),
  /** The store that it has moved to. Requests are forwarded there, where it has its own namespace of buckets. */
  upstream: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      /** PEM of its certificate's authority; null for a publicly trusted one. */
      authority: z.string().max(8_192).nullable(),
      /** Its old data are still here, and nobody writes to them. */
      isSourceKept: z.boolean(),
    })
    .optional(),
  /** Buckets that are created if they are missing. */
  buckets: z
    .array(z.string().regex(/^[a-z0-9-]{3,63}$/))
    .max(BUCKETS_MAXIMUM)
    .optional(),
})
/** Where the requests of a tenant that has moved are forwarded. */
export type Upstream = NonNullable<z.infer<typeof TenantSettings>['upstream']>
export type TenantSettings = z.infer<typeof TenantSettings>

/** The tenant's state in the store; the secret only as `fingerprintOfSecret` returns it. */
export const TenantState = TenantSettings.omit({ secretAccessKey: true, buckets: true }).extend({
  /** Absent when each tenant has its own namespace of buckets. */
  bucketPrefix: TenantSettings.shape.bucketPrefix.optional(),
  secretFingerprint: z.string(),
  /** Requests in progress that change something; absent when they are not counted. */
  openWrites: z.int().min(0).optional(),
  bucketCount: z.int().min(0),
  /** Of all its buckets, including old versions and unfinished uploads. */
  usedBytes: z.int().min(0),
  objectCount: z.int().min(0),
  measuredAt: z.iso.datetime(),
  /** The measured value, when `usedBytes` also counts later additions and replaced data. */
  measuredBytes: z.int().min(0).optional(),
  /** Maximum of the measurements in the same clock hour (UTC), if the store records it. */
  highestBytes: z.int().min(0).optional(),
})
export type TenantState = z.infer<typeof TenantState>

/** The measurement for the price of an hour. */
export const measurementOf = ({ measuredAt, usedBytes, measuredBytes, highestBytes }: TenantState): Measurement => ({
  measuredAt,
  bytes: measuredBytes ?? usedBytes,
  highestBytes,
})

/** Identifies a secret without revealing it. */
export const fingerprintOfSecret = (secretAccessKey: string): string =>
  createHash('sha256').update(secretAccessKey).digest('hex')

export interface ObjectStorageControl {
  /** Applies the settings; an earlier secret is refused when this resolves. Throws Unavailable. */
  putTenant(id: string, settings: TenantSettings): Promise<void>
  /** `isFresh` measures again. Undefined for an unknown tenant. Throws Unavailable. */
  getTenant(id: string, isFresh?: boolean): Promise<TenantState | undefined>
  /** Returns false and does nothing while the tenant has buckets; with `isPurged` they are removed with their content.
   *  Does nothing for an unknown tenant. Throws Unavailable. */
  removeTenant(id: string, isPurged?: boolean): Promise<boolean>
}

/** One object store that the platform offers in certain zones. */
export interface ObjectStorage {
  /** Ceph's gateway, which stores copies on several hosts, or one engine on one host. */
  readonly backend: 'rgw' | 'svc-s3-single'
  /** Copies on three, two or one hosts. */
  readonly durability: 'replicated' | 'degraded' | 'single_copy'
  readonly zones: readonly string[]
  /** Whether hosts of its zones relay archives of databases to it. */
  readonly takesArchives: boolean
  /** URL for S3 clients of the zone. */
  readonly endpointOf: (zone: string) => string
  /** S3 for the platform itself, with the key of a tenant. */
  readonly openS3: (zone: string, credentials: Pick<TenantSettings, 'accessKeyId' | 'secretAccessKey'>) => S3
  /** Where requests for it are forwarded. */
  readonly upstreamOf: (zone: string) => Omit<Upstream, 'isSourceKept'>
  /** PEM of its certificate's authority; null for a publicly trusted one. */
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
/** The store's message for an unknown tenant. A 404 without it comes from something else at this address. */
export const UNKNOWN_TENANT = 'unknown tenant'
const ANSWER_BYTES_MAXIMUM = 16 * 1024 ** 2

interface Answer {
  readonly status: number
  readonly text: string
}

/** The platform's client, over HTTP. */
export function openControl({ url, token }: ControlOptions, deadline: DeadlineOf): ObjectStorageControl {
  /** Any status that is not accepted counts as no answer of the store. */
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

/** A signal that aborts after this time, unless it is cancelled. */
export type DeadlineOf = (milliseconds: number) => { readonly signal: AbortSignal; readonly cancel: () => void }
