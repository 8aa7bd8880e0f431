/** Changes that a storage's state allows: one rule per verb, the same for every interface. Refusals come in the
 *  contract's order: operation_in_progress, protected, in_use, state_not_allowed. */
import type { OperationKind } from '../operations.ts'
import { badField, conflict, operationInProgress } from '../problem.ts'

/** The largest disk. */
export const STORAGE_GIBIBYTES_MAXIMUM = 16_384

/** Throws 400 for a size that no disk can have. */
export function requireDiskSize(sizeGibibytes: number, field: string): void {
  if (sizeGibibytes > STORAGE_GIBIBYTES_MAXIMUM) throw badField(field, `must be at most ${STORAGE_GIBIBYTES_MAXIMUM}`)
}

/** In addition to the boot storage: each uses one of the guest's slots for disks that are attached and detached. */
export const DATA_STORAGES_PER_SERVER_MAXIMUM = 8

export interface StorageFacts {
  readonly id: string
  readonly state: 'creating' | 'online' | 'restoring' | 'error' | 'deleting'
  readonly isBoot: boolean
  readonly isProtected: boolean
  /** The object itself is being deleted, by any client. */
  readonly isDeleting: boolean
  /** Its server; undefined while it is detached. */
  readonly serverId: string | undefined
  readonly sizeGibibytes: number
  readonly activeOperation: { readonly id: string; readonly kind: OperationKind } | undefined
}

const referenceOf = ({ id }: StorageFacts) => ({ type: 'storage', id })
const stateNotAllowed = (storage: StorageFacts, detail: string) =>
  conflict('state_not_allowed', detail, { resource: referenceOf(storage) })

/** Throws 409 while another change runs. */
export function requireIdleStorage(storage: StorageFacts): void {
  if (storage.activeOperation !== undefined) throw operationInProgress(storage.activeOperation.id, referenceOf(storage))
  if (storage.isDeleting || storage.state === 'deleting')
    throw stateNotAllowed(storage, 'The storage is being deleted.')
  if (storage.state === 'restoring') throw stateNotAllowed(storage, 'A backup is being restored to the storage.')
}

function requireOnline(storage: StorageFacts): void {
  if (storage.state !== 'online')
    throw stateNotAllowed(storage, `The storage is in state ${storage.state}; only one that is online can be changed.`)
}

/** Throws 409 unless the storage can be moved, with its server or alone. */
export function requireMovableStorage(storage: StorageFacts): void {
  requireIdleStorage(storage)
  requireOnline(storage)
}

/** Throws 409 unless another storage can be created as a copy of it. */
export function requireReadableStorage(storage: StorageFacts): void {
  requireIdleStorage(storage)
  requireOnline(storage)
}

/** Throws 409 unless the storage can be attached to a server. */
export function requireAttachable(storage: StorageFacts): void {
  requireIdleStorage(storage)
  if (storage.serverId !== undefined)
    throw conflict('in_use', `The storage is attached to server ${storage.serverId}. Detach it first.`, {
      resource: referenceOf(storage),
    })
  requireOnline(storage)
}

/** Throws 409 unless the storage can be detached from its server; by force also while a detachment is under way. */
export function requireDetachable(storage: StorageFacts, isForced: boolean): void {
  if (!(isForced && storage.activeOperation?.kind === 'storage.detach')) requireIdleStorage(storage)
  if (storage.isBoot)
    throw conflict('in_use', 'Its server boots from the storage. It goes with the server.', {
      resource: referenceOf(storage),
    })
  if (storage.serverId === undefined) throw stateNotAllowed(storage, 'The storage is attached to no server.')
}

/** Throws 409 unless the storage can grow, and 400 for a size that is not larger. */
export function requireResizable(storage: StorageFacts, sizeGibibytes: number): void {
  requireIdleStorage(storage)
  requireOnline(storage)
  if (sizeGibibytes <= storage.sizeGibibytes)
    throw badField('sizeGibibytes', `must be larger than ${storage.sizeGibibytes}: a storage never shrinks`)
}

/** Throws 409 unless the storage can be deleted. One that is still being created can: its creation is cancelled. */
export function requireDeletableStorage(storage: StorageFacts): void {
  if (storage.activeOperation?.kind !== 'storage.create') requireIdleStorage(storage)
  else if (storage.isDeleting) throw stateNotAllowed(storage, 'The storage is being deleted.')
  if (storage.isProtected)
    throw conflict('protected', 'The storage is protected. Set is_protected to false first.', {
      resource: referenceOf(storage),
    })
  if (storage.isBoot)
    throw conflict('in_use', 'Its server boots from the storage. It goes with the server.', {
      resource: referenceOf(storage),
    })
  if (storage.serverId !== undefined)
    throw conflict('in_use', `The storage is attached to server ${storage.serverId}. Detach it first.`, {
      resource: referenceOf(storage),
    })
}
