/** Edits without an operation: made with kubectl or GitOps, or required by a rule of the platform. They get their
 *  operation here, so that the operation log and the audit log are complete for every interface. */
import { ACTOR_LENGTH_MAXIMUM, type OperationKind } from '../../../domain/operations.ts'
import type { KubernetesRequest } from '../../../db/request/index.ts'
import { keyOf, type KubeObject, type ObjectMeta, type ResourceType } from '../../../kit/kube/object.ts'
import { replacing } from '../../../kit/kube/merge-patch.ts'
import type { Store } from '../../../kit/kube/store.ts'
import type { OperationStanza } from '../../../resources/kit/shapes.ts'
import type { Operable } from '../../../resources/operation/index.ts'
import { type AuditAction, auditAction } from '../audit.ts'
import type { PlainAction } from '../effects.ts'
import { derivedId } from '../../../domain/uuid.ts'
import { derivedIdOf, derivedStanza, hasNoRequest } from './stanza.ts'

/** The platform itself, when one of its rules starts an operation. */
export const SYSTEM_ACTOR = 'system:controllers'

/** Whether a rule of the platform starts the operation, and no person. */
export const isOfPlatform = ({ actor }: { readonly actor: string }): boolean => actor.startsWith('system:')

export interface OperationStart {
  readonly kind: OperationKind
  /** Arguments of the operation. */
  readonly arguments?: Readonly<Record<string, string>>
  /** Other fields of the spec that change with it. */
  readonly spec?: Readonly<Record<string, unknown>>
}

/** An edit, and the operation that it needs. */
export interface DirectEdit extends OperationStart {
  /** The field of the spec that was edited; empty when the whole object was. */
  readonly field: string
}

/** The argument of an operation that says which attempt in a row it is, from the second on. */
const ATTEMPT = 'attempt'
/** The wait after the first attempt that failed; twice as long after each further one. */
const RETRY_SECONDS = 300
const RETRY_SECONDS_MAXIMUM = 3_600

/** Writes the operation into the spec, together with the edit when there is one. Its id is derived from the observed
 *  generation, so that a retry is the same operation. */
export function startFor(
  root: KubeObject & Operable,
  start: OperationStart,
  by: { readonly actor: string; readonly now: Date },
): PlainAction {
  const { metadata } = root
  const { kind, spec = {}, arguments: args } = start
  const operation = derivedStanza(kind, { seed: seedOf(metadata, metadata.generation ?? 0, start), ...by })
  const attempt = hasFailed(root, start) ? { [ATTEMPT]: String(attemptOf(root) + 1) } : undefined
  const parameters = args === undefined && attempt === undefined ? undefined : { ...args, ...attempt }
  return {
    do: 'change',
    patch: {
      spec: {
        ...spec,
        // A merge patch keeps the members of the previous stanza: those that this one lacks are set to null.
        operation: {
          ...operation,
          arguments: parameters === undefined ? null : replacing(root.spec.operation?.arguments ?? {}, parameters),
        },
      },
    },
  }
}

const attemptOf = ({ spec }: Operable): number => Number(spec.operation?.arguments?.[ATTEMPT] ?? 1)

/** When the platform starts again what failed; undefined when the newest operation did not fail. */
export function retryAt(root: Operable): Date | undefined {
  const { status, finishedAt = '' } = root.status?.operation ?? {}
  const pause = Math.min(RETRY_SECONDS * 2 ** (attemptOf(root) - 1), RETRY_SECONDS_MAXIMUM)
  return status === 'failed' ? new Date(Date.parse(finishedAt) + pause * 1_000) : undefined
}

/** Seconds until then; 0 when that is now, or nothing failed. */
export const secondsToRetry = (root: Operable, now: Date): number =>
  Math.max(0, ((retryAt(root)?.getTime() ?? 0) - now.getTime()) / 1_000)

const seedOf = ({ uid = '' }: ObjectMeta, generation: number, { arguments: args = {} }: OperationStart): string =>
  [uid, generation, ...Object.values(args)].join('/')

/** Whether `startFor` started this very operation for this spec, and it failed: since then nothing of the spec was
 *  changed. */
export function hasFailed({ metadata, spec, status }: KubeObject & Operable, start: OperationStart): boolean {
  const { operation } = spec
  if (operation === undefined || status?.operation?.id !== operation.id || status.operation.status !== 'failed')
    return false
  // Writing the operation made the generation that it was derived from one higher.
  return operation.id === derivedIdOf(start.kind, seedOf(metadata, (metadata.generation ?? 0) - 1, start))
}

/** Whether the newest operation was refused, so that it would be refused again. One that ran out of time met something
 *  that may pass: PostgreSQL, a host or a store that did not answer. */
export const wasRefused = ({ status }: Operable): boolean => {
  const { finishedAt = '', deadlineAt = '' } = status?.operation ?? {}
  return Date.parse(finishedAt) < Date.parse(deadlineAt)
}

/** Writes the audit entries of requests that start no operation, like a new title. */
export const auditRequests = (
  { metadata: { uid = '' } }: KubeObject,
  requests: readonly KubernetesRequest[],
): readonly AuditAction[] =>
  requests.map(({ action, username, generation, changes }) =>
    auditAction({
      action,
      actor: editorActor(username),
      requestId: derivedId(`${uid}/${generation}/${action}`),
      changes,
    }),
  )

const USER = 'user:'

/** Whether a person started the operation with an edit, not with a request. */
export const isEditOfPerson = (operation: OperationStanza): boolean =>
  hasNoRequest(operation) && operation.actor.startsWith(USER)

/** The actor of an operation that a user of Kubernetes started. */
export const editorActor = (username: string): string => `${USER}${username}`.slice(0, ACTOR_LENGTH_MAXIMUM)

/** Who requested the operation, as admission recorded it; undefined when it did not. */
export function requesterOf(requests: readonly KubernetesRequest[], kind: OperationKind): string | undefined {
  const request = requests.find(({ action }) => action === kind)
  return request && editorActor(request.username)
}

/** The last writer of the field, from the object in the store: cached objects have no managedFields. */
export const findEditor = async (store: Store, type: ResourceType, root: KubeObject, field: string): Promise<string> =>
  lastWriterOf((await store.get(type, keyOf(root)))?.metadata ?? root.metadata, field)

/** The field manager that last wrote a spec field (or anything, for an empty field), as an actor. */
export function lastWriterOf(metadata: ObjectMeta, field: string): string {
  const writers = (metadata.managedFields ?? []).filter(
    (entry) => entry.subresource === undefined && (field === '' || owns(entry.fieldsV1, field)),
  )
  const latest = writers.toSorted((a, b) => ((a.time ?? '') < (b.time ?? '') ? -1 : 1)).at(-1)
  return field === '' || latest?.manager === undefined ? `${USER}kubernetes` : `${USER}${latest.manager}`
}

const owns = (fields: unknown, field: string): boolean => {
  // The FieldsV1 format.
  const spec = (fields as { readonly 'f:spec'?: Readonly<Record<string, unknown>> } | undefined)?.['f:spec']
  return spec !== undefined && `f:${field}` in spec
}
