/** The storage's plan: pure, synchronous, total. A boot storage follows its server and has one operation of its own, to
 *  grow; every other one is made, attached, detached, resized and deleted by operations. */
import { isEdit } from '../../db/request/index.ts'
import { clonedFrom } from '../../resources/operation/index.ts'
import { Storage, type StorageStatus } from '../../resources/storage/index.ts'
import { auditRequests, type DirectEdit } from '../operation/direct-edit.ts'
import { planOperations } from '../operation/plan.ts'
import type { StorageAction } from './actions.ts'
import { type Decision, reconciling, type ReconcileInput, toActions, unchanged } from './decision.ts'
import { attach, create, detach, overdue, remove, resize } from './flows.ts'
import { move, releaseUnusedMove } from './move.ts'
import { removeTransferKeys } from './keys.ts'
import { layOut, removeVolumes } from './layout.ts'
import type { Observed } from './observed.ts'
import { planSchedule } from './schedule.ts'
import type { StorageObject } from './volumes.ts'

/** What is to be done about the storage now. Edits are audited whatever else happens. */
export const plan = planOperations<StorageObject, Observed, ReconcileInput, Decision, StorageAction>({
  label: 'A storage',
  // One that goes with its server waits for nothing.
  endedByDeletion: ({ kind }, { spec }, observed) =>
    kind === 'storage.create' || spec.isBoot || observed.isServerDeletedWithStorages === true,
  flows: {
    'storage.create': create,
    'storage.attach': attach,
    'storage.detach': detach,
    'storage.resize': resize,
    'storage.move': move,
    'storage.delete': remove,
  },
  inputOf: (storage, observed, now) => ({ storage, observed, now }),
  unchanged,
  always: (input) => [
    ...auditRequests(input.storage, (input.observed.requests ?? []).filter(isEdit)),
    ...removeUsedKeys(input),
    ...releaseUnusedMove(input),
    ...planSchedule(input),
  ],
  guard,
  detectEdit(input) {
    const edit = detectEdit(input)
    return edit && { ...edit, actor: input.observed.editor ?? '' }
  },
  idle,
  overdue,
  toActions,
})

const HELD_SECONDS = 20

/** A boot storage goes with its server, by no operation of its own; one that was deleted through the API is deleted in
 *  Kubernetes first. */
function guard(input: ReconcileInput): readonly StorageAction[] | undefined {
  const { storage, observed } = input
  const { metadata, spec } = storage
  if (spec.isBoot && metadata.deletionTimestamp !== undefined && !observed.isInUse && observed.isHeld === true)
    return toActions(input, {
      ...layOut(storage, observed),
      ...reconciling('deleting', 'Held', 'It has snapshots, or is being copied.'),
      waitFor: 'its snapshots to be deleted',
      waitSeconds: HELD_SECONDS,
    })
  if (spec.isBoot && metadata.deletionTimestamp !== undefined && !observed.isInUse)
    return toActions(
      input,
      removeVolumes(storage, observed) ?? { ...reconciling('deleting', 'Deleting'), isGone: true },
    )
  const isRequested = spec.operation?.kind === 'storage.delete' || isGoneWithServer(input)
  return isRequested && metadata.deletionTimestamp === undefined
    ? [{ do: 'remove', type: Storage, key: { namespace: metadata.namespace ?? '', name: metadata.name } }]
    : undefined
}

/** Its server is deleted with its storages. */
const isGoneWithServer = ({ storage: { spec }, observed }: ReconcileInput): boolean =>
  !spec.isBoot &&
  !spec.isProtected &&
  observed.isHeld !== true &&
  spec.serverId !== undefined &&
  observed.isServerDeletedWithStorages === true

/** The data have come to another node: the key of the copy is of no use any more. */
const removeUsedKeys = ({ storage, observed: { node } }: ReconcileInput): readonly StorageAction[] => {
  const before = storage.status?.nodeName
  return storage.spec.isBoot || before === undefined || node === undefined || before === node
    ? []
    : removeTransferKeys(storage, [before, node])
}

/** Undefined when the spec and the operations agree. */
export function detectEdit({ storage, observed }: ReconcileInput): DirectEdit | undefined {
  const { metadata, spec, status } = storage
  const isActive = spec.operation !== undefined && status?.operation?.id !== spec.operation.id
  if (spec.operation?.kind === 'storage.delete') return undefined
  if (!spec.isBoot && metadata.deletionTimestamp !== undefined)
    return spec.isProtected ? undefined : { kind: 'storage.delete', field: '' }
  const isOver =
    status?.operation === undefined || ['succeeded', 'failed', 'cancelled'].includes(status.operation.status)
  if (isActive || !isOver || spec.isBoot) return undefined
  if (spec.operation === undefined && status?.state === undefined)
    return { kind: 'storage.create', field: 'sizeGibibytes', ...clonedFrom(spec.source) }
  if (status?.state !== 'online') return undefined
  const { claim } = observed
  if (claim === undefined) return undefined
  if (claim.serverId !== undefined && claim.serverId !== spec.serverId)
    return { kind: 'storage.detach', field: 'serverId', arguments: { force: 'false', server_id: claim.serverId } }
  if (spec.serverId !== undefined && claim.serverId === undefined && !observed.isServerGone)
    return { kind: 'storage.attach', field: 'serverId' }
  return spec.sizeGibibytes > claim.sizeGibibytes ? { kind: 'storage.resize', field: 'sizeGibibytes' } : undefined
}

/** A boot disk that takes longer gets a status that says so. */
const STATUS_DELAY_SECONDS = 60

/** Most boot disks are ready before anybody could read that they are being made: their first status is `online`.
 *  What the host reports meanwhile is written at once. */
function deferStatus({ storage: { metadata, spec, status }, now }: ReconcileInput, decision: Decision): Decision {
  const isMoreKnown = decision.detail !== undefined || decision.waitFor !== undefined
  if (!spec.isBoot || status?.state !== undefined || decision.reason !== 'Creating' || isMoreKnown) return decision
  const seconds = (now.getTime() - Date.parse(metadata.creationTimestamp ?? '')) / 1_000
  return seconds >= 0 && seconds < STATUS_DELAY_SECONDS
    ? { ...decision, isStatusDeferred: true, waitFor: 'its host', waitSeconds: STATUS_DELAY_SECONDS - seconds }
    : decision
}

const isCreationFailed = ({ operation }: StorageStatus): boolean =>
  operation?.kind === 'storage.create' && operation.status !== 'succeeded'

/** Its volumes follow; the storage of a server that is gone is detached. */
function idle(input: ReconcileInput): Decision {
  const { storage, observed } = input
  const { metadata, spec, status } = storage
  // Its deletion succeeded, and whoever said so ended before it let the object go.
  if (metadata.deletionTimestamp !== undefined && spec.operation?.kind === 'storage.delete')
    return removeVolumes(storage, observed) ?? { ...reconciling('deleting', 'Deleting'), isGone: true }
  if (!spec.isBoot && observed.claim === undefined) return unchanged(input)
  const decision = deferStatus(input, layOut(storage, observed))
  if (!spec.isBoot && status?.state === 'error' && isCreationFailed(status)) return unchanged(input)
  return !spec.isBoot && spec.serverId !== undefined && observed.claim?.phase === 'detached' && observed.isServerGone
    ? { ...decision, actions: [...(decision.actions ?? []), { do: 'change', patch: { spec: { serverId: null } } }] }
    : decision
}
