/** Edits that no operation stands for: made with kubectl or GitOps, or due by a rule of the platform. They get their
 *  operation here,
 *  so that the operation log and the audit log are complete whichever door was used. */
import type { OperationKind } from '../../domain/operations.ts'
import { isEdit } from '../../db/request/index.ts'
import type { ObjectMeta } from '../../kit/kube/object.ts'
import type { Action } from '../../kit/reconcile/action.ts'
import type { OperationStanza } from '../../resources/shapes.ts'
import { activeOperation, derivedId, derivedStanza, hasNoRequest } from '../operation/stanza.ts'
import type { ReconcileInput } from './decision.ts'
import { uidOf } from './drafts.ts'
import { hasBegun, type InstanceObject, isDeleting, type ServerObject } from './observed.ts'

/** What an edit asks for; undefined when the spec and the operations agree. `field` is the one that was edited. */
export function detectEdit(
  server: ServerObject,
  instance: InstanceObject | undefined,
): { readonly kind: OperationKind; readonly field: string } | undefined {
  const { spec, status, metadata } = server
  const active = activeOperation(server)
  if (isDeleting(server)) return undefined
  if (
    metadata.deletionTimestamp !== undefined &&
    !spec.isProtected &&
    (active === undefined || active.kind === 'server.create')
  )
    return { kind: 'server.delete', field: '' }
  if (active !== undefined) return undefined
  if (spec.operation === undefined && status?.state === undefined) return { kind: 'server.create', field: 'hostname' }
  if (status?.state === 'stopped' && spec.desiredPower === 'running')
    return { kind: 'server.start', field: 'desiredPower' }
  const mayRun = status?.state === 'started' || (status?.state === 'error' && instance?.spec.power === 'running')
  if (mayRun && spec.desiredPower === 'stopped') return { kind: 'server.stop', field: 'desiredPower' }
  const isToldOtherwise = instance !== undefined && instance.spec.metadata.isEnabled !== spec.metadataEnabled
  return isToldOtherwise && (status?.state === 'started' || status?.state === 'stopped')
    ? { kind: 'server.metadata', field: 'metadataEnabled' }
    : undefined
}

/** The platform itself, when one of its rules asks for an operation. */
export const SYSTEM_ACTOR = 'system:controllers'

/** Puts the operation beside the edit. Its id follows from the generation that was seen, so that trying again is the
 *  same operation. */
export function adopt({ server, now }: ReconcileInput, kind: OperationKind, actor: string): Action {
  const operation = derivedStanza(kind, { seed: `${uidOf(server)}/${server.metadata.generation ?? 0}`, actor, now })
  // A merge patch keeps the members of the stanza before: those that this one lacks are taken out.
  return { do: 'change', patch: { spec: { operation: { ...operation, arguments: null } } } }
}

/** Writes the audit entry of an adopted operation, once, before the operation begins. */
export function auditAdopted({ server }: ReconcileInput, operation: OperationStanza): readonly Action[] {
  if (!hasNoRequest(operation) || hasBegun(server, operation)) return []
  return [
    {
      do: 'effect',
      name: 'audit',
      input: { action: operation.kind, actor: operation.actor, requestId: operation.requestId },
    },
  ]
}

/** Writes the audit entries of edits that start no operation, like a new title. */
export const auditEdits = ({ server, observed }: ReconcileInput): readonly Action[] =>
  observed.requests.filter(isEdit).map(({ action, username, generation, changes }) => ({
    do: 'effect',
    name: 'audit',
    input: {
      action,
      actor: userActor(username),
      requestId: derivedId(`${uidOf(server)}/${generation}/${action}`),
      changes,
    },
  }))

const ACTOR_LENGTH_MAXIMUM = 512
/** The actor of an operation that a user of Kubernetes began. */
export const userActor = (username: string): string => `user:${username}`.slice(0, ACTOR_LENGTH_MAXIMUM)

/** Who asked for the operation, as admission saw it; undefined when it did not. */
export function requesterOf(requests: ReconcileInput['observed']['requests'], kind: OperationKind): string | undefined {
  const request = requests.find(({ action }) => action === kind)
  return request && userActor(request.username)
}

/** The field manager that wrote a spec field last (or wrote at all, for an empty field), as an actor. */
export function editorOf(metadata: ObjectMeta, field: string): string {
  const writers = (metadata.managedFields ?? []).filter(
    (entry) => entry.subresource === undefined && (field === '' || owns(entry.fieldsV1, field)),
  )
  const latest = writers.toSorted((a, b) => ((a.time ?? '') < (b.time ?? '') ? -1 : 1)).at(-1)
  return field === '' || latest?.manager === undefined ? 'user:kubernetes' : `user:${latest.manager}`
}

const owns = (fields: unknown, field: string): boolean => {
  // the FieldsV1 format
  const spec = (fields as { readonly 'f:spec'?: Readonly<Record<string, unknown>> } | undefined)?.['f:spec']
  return spec !== undefined && `f:${field}` in spec
}
