/** What a snapshot's state allows, and what a storage's state allows for its snapshots: the same for every interface.
 *  Refusals come in the contract's order: operation_in_progress, in_use, state_not_allowed, zone_capability_missing. */
import type { OperationKind } from '../operations.ts'
import { conflict, operationInProgress, zoneLacks } from '../problem.ts'
import type { ServerFacts } from '../server/rules.ts'
import { requireIdleStorage, type StorageFacts } from '../storage/rules.ts'

export interface SnapshotFacts {
  readonly id: string
  readonly state: 'creating' | 'online' | 'error' | 'deleting'
  readonly activeOperation: { readonly id: string; readonly kind: OperationKind } | undefined
}

const referenceOf = ({ id }: SnapshotFacts) => ({ type: 'snapshot', id })

/** Throws 409 unless a snapshot of the storage can be created. */
export function requireSnapshottable(storage: StorageFacts, tier: string): void {
  requireIdleStorage(storage)
  if (storage.state !== 'online')
    throw conflict(
      'state_not_allowed',
      `The storage is in state ${storage.state}; snapshots are taken of one that is online.`,
      { resource: { type: 'storage', id: storage.id } },
    )
  requireSnapshotTier(tier)
}

/** Throws 409 when a deletion or a rebuild of the server removes its boot disk, or when the server no longer boots from
 *  the disk. */
export function requireStaying(
  storageId: string,
  server:
    | (Pick<ServerFacts, 'id' | 'isDeleting' | 'activeOperation'> & { readonly bootStorageId: string | undefined })
    | undefined,
): void {
  const { id = '', activeOperation, isDeleting = true } = server ?? {}
  if (activeOperation?.kind === 'server.delete' || activeOperation?.kind === 'server.rebuild')
    throw operationInProgress(activeOperation.id, { type: 'server', id })
  if (isDeleting || (server?.bootStorageId ?? id) !== storageId)
    throw conflict('state_not_allowed', 'The storage goes: its server is deleted, or boots from another by now.', {
      resource: { type: 'storage', id: storageId },
    })
}

/** Throws 409 for a tier without snapshots of disks: they would bind servers to the host. */
export function requireSnapshotTier(tier: string): void {
  if (tier === 'local-nvme') throw zoneLacks('snapshots', 'Storages of tier local-nvme have no snapshots.')
}

/** Throws 409 unless the snapshot can be read. */
export function requireReadableSnapshot(snapshot: SnapshotFacts): void {
  if (snapshot.activeOperation !== undefined)
    throw operationInProgress(snapshot.activeOperation.id, referenceOf(snapshot))
  if (snapshot.state !== 'online')
    throw conflict(
      'state_not_allowed',
      `The snapshot is in state ${snapshot.state}; only one that is online can be used.`,
      { resource: referenceOf(snapshot) },
    )
}

/** Throws 409 unless the snapshot can be deleted. One that is still being created can: its creation is cancelled. */
export function requireDeletableSnapshot(snapshot: SnapshotFacts, isCloned: boolean): void {
  const { activeOperation, state } = snapshot
  if (activeOperation !== undefined && activeOperation.kind !== 'snapshot.create')
    throw operationInProgress(activeOperation.id, referenceOf(snapshot))
  if (isCloned)
    throw conflict('in_use', 'A storage or an image is being made from the snapshot. Delete it when that is online.', {
      resource: referenceOf(snapshot),
    })
  if (state === 'deleting')
    throw conflict('state_not_allowed', 'The snapshot is being deleted.', { resource: referenceOf(snapshot) })
}
