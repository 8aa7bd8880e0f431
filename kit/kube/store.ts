/** The control plane's interface to a Kubernetes API, for every kind of server: real, embedded over HTTPS, or in
 *  process. */
import type { Key, KubeObject, ResourceType } from './object.ts'

export interface ListOptions {
  readonly namespace?: string
  readonly labelSelector?: string
  readonly fieldSelector?: string
}

export interface ObjectList<Spec, Status> {
  readonly items: readonly KubeObject<Spec, Status>[]
  readonly resourceVersion: string
}

export type WatchEvent<Spec = unknown, Status = unknown> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject<Spec, Status> }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }

/** An object to be written: apiVersion and kind come from its type. */
export type Draft<Spec, Status> = Pick<KubeObject<Spec, Status>, 'metadata' | 'spec' | 'status' | 'data'>

/** Refusals are ApiErrors; a server that does not answer, or not in time, is `Unavailable`. */
export interface Store {
  /** Undefined when there is no such object (an unknown kind is an ApiError). Always reads from the server. */
  get<Spec, Status>(type: ResourceType<Spec, Status>, key: Key): Promise<KubeObject<Spec, Status> | undefined>
  /** Every object (pages are followed). */
  list<Spec, Status>(type: ResourceType<Spec, Status>, options?: ListOptions): Promise<ObjectList<Spec, Status>>
  /** ApiError reason AlreadyExists when the name is taken. */
  create<Spec, Status>(type: ResourceType<Spec, Status>, draft: Draft<Spec, Status>): Promise<KubeObject<Spec, Status>>
  /** Replaces everything but status. metadata.resourceVersion must be the one that was read: ApiError reason Conflict
   *  otherwise. */
  replace<Spec, Status>(
    type: ResourceType<Spec, Status>,
    object: KubeObject<Spec, Status>,
  ): Promise<KubeObject<Spec, Status>>
  /** Replaces status only, with the same rule. */
  replaceStatus<Spec, Status>(
    type: ResourceType<Spec, Status>,
    object: KubeObject<Spec, Status>,
  ): Promise<KubeObject<Spec, Status>>
  /** JSON merge patch; put metadata.resourceVersion into it to make it conditional. */
  patch<Spec, Status>(
    type: ResourceType<Spec, Status>,
    key: Key,
    patch: object,
    subresource?: 'status',
  ): Promise<KubeObject<Spec, Status>>
  /** Server-side apply under the client's field manager, with force. */
  apply<Spec, Status>(
    type: ResourceType<Spec, Status>,
    draft: Draft<Partial<Spec>, Partial<Status>>,
    subresource?: 'status',
  ): Promise<KubeObject<Spec, Status>>
  /** Idempotent: an object that is already deleted is no error, also when another one has taken its name and `uid`
   *  distinguishes them. */
  delete(
    type: ResourceType,
    key: Key,
    options?: {
      readonly uid?: string
      readonly resourceVersion?: string
      readonly propagation?: 'Background' | 'Foreground' | 'Orphan'
    },
  ): Promise<void>
  /** Changes after the version; ends when the server ends it; throws ApiError reason Expired when the version is too
   *  old. */
  watch<Spec, Status>(
    type: ResourceType<Spec, Status>,
    options: ListOptions & { readonly resourceVersion: string; readonly signal: AbortSignal },
  ): AsyncIterable<WatchEvent<Spec, Status>>
}

/** A Status answer of the API server. */
export class ApiError extends Error {
  readonly code: number
  /** As Kubernetes names it: NotFound, AlreadyExists, Conflict, Expired, Invalid, Forbidden, TooManyRequests, ... */
  readonly reason: string
  readonly causes: readonly { readonly field?: string; readonly message?: string; readonly reason?: string }[]
  readonly retryAfterSeconds: number | undefined
  constructor(status: {
    code: number
    reason: string
    message: string
    causes?: ApiError['causes']
    retryAfterSeconds?: number
  }) {
    super(status.message)
    this.name = 'ApiError'
    this.code = status.code
    this.reason = status.reason
    this.causes = status.causes ?? []
    this.retryAfterSeconds = status.retryAfterSeconds
  }
}

export const isApiError = (error: unknown): error is ApiError => error instanceof ApiError
/** Another client has changed it since it was read. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.reason === 'Conflict'
export const isAlreadyExists = (error: unknown): boolean =>
  error instanceof ApiError && error.reason === 'AlreadyExists'
export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404
/** The namespace is being deleted and accepts nothing new. */
export const isNamespaceTerminating = (error: unknown): boolean =>
  error instanceof ApiError && error.causes.some(({ reason }) => reason === 'NamespaceTerminating')
