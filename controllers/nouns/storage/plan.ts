/** The storage's plan: pure, synchronous, total. A boot storage follows its server and has only one operation, to grow;
 *  every other storage is created, attached, detached, resized and deleted by operations. */
import { storageChanges } from '../../../changes/storage.ts'
import { isEdit } from '../../../db/request/index.ts'
import { Storage, type StorageSpec, type StorageStatus } from '../../../resources/storage/index.ts'
import { detectChange, startOf } from '../../kit/detect-change.ts'
import { auditRequests, type DirectEdit } from '../../kit/operation/direct-edit.ts'
import { planOperations } from '../../kit/operation/plan.ts'
import type { StorageAction } from './actions.ts'
import { type Decision, reconciling, type ReconcileInput, toActions, unchanged } from './decision.ts'
import { attach, create, detach, overdue, remove, resize } from './flows.ts'
import { move, releaseUnusedMove } from './move.ts'
import { removeTransferKeys } from './keys.ts'
import { layOut, removeVolumes } from './layout.ts'
import type { Observed } from './observed.ts'
import { planSchedule } from './schedule.ts'
import type { StorageObject } from './volumes.ts'

/** What to do about the storage now. Edits are audited whatever the decision. */
export const plan = planOperations<StorageObject, Observed, ReconcileInput, Decision, StorageAction>({
  label: 'A storage',
  // A storage that is deleted with its server waits for nothing.
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

/** A boot storage is deleted with its server, without an operation; a storage that is deleted through the API is
 *  deleted in Kubernetes first. */
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

/** The data has arrived on another node: the key of the copy is no longer needed. */
const removeUsedKeys = ({ storage, observed: { node } }: ReconcileInput): readonly StorageAction[] => {
  const before = storage.status?.nodeName
  return storage.spec.isBoot || before === undefined || node === undefined || before === node
    ? []
    : removeTransferKeys(storage, [before, node])
}

/** Undefined when the spec and the operations agree. Boot storages are changed by their servers. */
export function detectEdit({ storage, observed }: ReconcileInput): DirectEdit | undefined {
  const { metadata, spec } = storage
  if (spec.isBoot || (metadata.deletionTimestamp !== undefined && spec.isProtected)) return undefined
  const serverId = observed.claim?.serverId
  const root = serverId === undefined || serverId === spec.serverId ? storage : withoutServer(storage, serverId)
  const change = detectChange(storageChanges, root, appliedOf(storage, observed))
  if (change === undefined) return undefined
  const { name, sets: [field = ''] = name === 'create' ? ['sizeGibibytes'] : [] } = change
  return { ...startOf(storageChanges, root, change), field }
}

/** It must leave its server before it can have another. */
const withoutServer = ({ status, ...storage }: StorageObject, serverId: string): StorageObject => ({
  ...storage,
  spec: { ...storage.spec, serverId: undefined },
  ...(status === undefined ? {} : { status: { ...status, serverId } }),
})

/** The spec as claimed; undefined before the storage was created. Only a storage that is online is changed. */
function appliedOf({ spec, status }: StorageObject, { claim, isServerGone }: Observed): StorageSpec | undefined {
  if (status?.state === undefined) return undefined
  if (status.state !== 'online' || claim === undefined) return spec
  return {
    ...spec,
    serverId: claim.serverId ?? (isServerGone === true ? spec.serverId : undefined),
    sizeGibibytes: Math.min(spec.sizeGibibytes, claim.sizeGibibytes),
  }
}

/** A boot disk that takes longer gets a status that says so. */
const STATUS_DELAY_SECONDS = 60

/** Most boot disks are ready before anybody could read that they are being created: their first status is `online`.
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

/** Its volumes follow; a storage whose server was deleted is detached. */
function idle(input: ReconcileInput): Decision {
  const { storage, observed } = input
  const { metadata, spec, status } = storage
  // Its deletion succeeded, but the controller that recorded that stopped before it removed the finalizer.
  if (metadata.deletionTimestamp !== undefined && spec.operation?.kind === 'storage.delete')
    return removeVolumes(storage, observed) ?? { ...reconciling('deleting', 'Deleting'), isGone: true }
  if (!spec.isBoot && observed.claim === undefined) return unchanged(input)
  const decision = deferStatus(input, layOut(storage, observed))
  if (!spec.isBoot && status?.state === 'error' && isCreationFailed(status)) return unchanged(input)
  const isLeft = spec.serverId !== undefined && observed.claim?.phase === 'detached' && observed.isServerGone === true
  return !spec.isBoot && isLeft && observed.isServerRemovalOrdered === true
    ? { ...decision, actions: [...(decision.actions ?? []), { do: 'change', patch: { spec: { serverId: null } } }] }
    : decision
}
