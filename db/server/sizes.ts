/** Changes of a server's size. While one is in progress the server holds the larger of both sizes in every respect, so
 *  that it can succeed or be rolled back without another claim. */
import { sql, type Transaction } from 'kysely'
import { defined } from '../../domain/defined.ts'
import { remainingRoom, largest, type Room } from '../../domain/node/placement.ts'
import { conflict, Unavailable } from '../../domain/problem.ts'
import { serverQuota, storageQuota } from '../../domain/account/quota.ts'
import { UNMADE } from '../../domain/server/rules.ts'
import { reserveTarget } from './moves.ts'
import { addRoom, columnsOf, findPlacement, releaseRoom, roomOf } from '../placement/index.ts'
import { changeQuotas } from '../account/index.ts'
import { serverHolder, storageHolder } from './holders.ts'
import { findSizeChange, type SizeChange } from './size-changes.ts'
import type { Tables } from '../tables.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

interface SizeChangeId {
  readonly accountId: string
  readonly serverId: string
  readonly operationId: string
}

type SizeChangeRequest = SizeChangeId &
  Room & {
    readonly cpuPool?: string | undefined
    /** Nodes that the server cannot be moved to. */
    readonly excludedNodes?: readonly string[]
  }

/** Claims what the server needs for the plan's cores and memory and a boot storage of at least `storageGibibytes`,
 *  once: what the operation claimed before is returned as it is. The boot storage never shrinks. The room is claimed on
 *  the server's own node, or reserved on another of its zone that is not excluded: then the operation moves the server
 *  there, and the server keeps its size until cutover. Throws the Problems `state_not_allowed` (409) while another
 *  change is under way or the server holds nothing, `quota_exceeded` (422) and `no_capacity` (503) when no node of the
 *  zone has the room. */
export async function beginSizeChange(
  tx: Transaction<Tables>,
  { cpuPool, excludedNodes, ...change }: SizeChangeRequest,
  now: Date,
): Promise<SizeChange> {
  const known = await findSizeChange(tx, change)
  if (known?.operationId === change.operationId) return known
  const resource = { type: 'server', id: change.serverId }
  const busy = conflict('state_not_allowed', 'The plan of the server is being changed. Try again in a minute.', {
    resource,
  })
  if (known !== undefined) throw busy
  const placement = await findPlacement(tx, change)
  if (placement === undefined) throw conflict('state_not_allowed', UNMADE, { resource })
  const before = roomOnly(placement)
  const after = { ...roomOnly(change), storageGibibytes: Math.max(before.storageGibibytes, change.storageGibibytes) }
  const held = largest(before, after)
  // first of all, as everywhere: locking quotas later could deadlock
  await holdQuotas(tx, change, held)
  const begun = await tx
    .insertInto('size_change')
    .values({
      account_id: change.accountId,
      server_id: change.serverId,
      operation_id: change.operationId,
      began_at: now,
      cores_before: before.cores,
      memory_mebibytes_before: before.memoryMebibytes,
      storage_gibibytes_before: before.storageGibibytes,
      cores_after: after.cores,
      memory_mebibytes_after: after.memoryMebibytes,
      storage_gibibytes_after: after.storageGibibytes,
    })
    .onConflict((conflicting) => conflicting.doNothing())
    .executeTakeFirst()
  if (begun.numInsertedOrUpdatedRows === 0n) throw busy
  const { numUpdatedRows } = await updateWhere(tx, 'placement', {
    account_id: change.accountId,
    server_id: change.serverId,
    node: placement.node,
    cores: before.cores,
    memory_mebibytes: before.memoryMebibytes,
    storage_gibibytes: before.storageGibibytes,
  })
    .set(columnsOf(held))
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throw busy
  // The placement's row is locked: a move reserved room by the size that the server had.
  const isMoving = await selectWhere(tx, 'placement_target', {
    account_id: change.accountId,
    server_id: change.serverId,
  })
    .select('operation_id')
    .executeTakeFirst()
  if (isMoving !== undefined) throw busy
  if (!(await addRoom(tx, placement.node, remainingRoom(held, before), { cpuPool }))) {
    await updateWhere(tx, 'placement', { account_id: change.accountId, server_id: change.serverId })
      .set(columnsOf(before))
      .execute()
    await reserveTarget(tx, { ...change, cpuPool, ...defined({ excludedNodes }) }, now)
  }
  return { operationId: change.operationId, before, after }
}

/** As `beginSizeChange` when the server's own node has the room. When only other nodes have it, nothing is claimed: the
 *  operation finds out which of them reach the disk. Throws what `beginSizeChange` does. */
export async function acceptSizeChange(
  tx: Transaction<Tables>,
  change: SizeChangeRequest,
  now: Date,
): Promise<SizeChange> {
  await sql`savepoint size_change`.execute(tx)
  const begun = await beginSizeChange(tx, change, now)
  const elsewhere = await selectWhere(tx, 'placement_target', {
    account_id: change.accountId,
    server_id: change.serverId,
  })
    .select('node')
    .executeTakeFirst()
  await (elsewhere === undefined ? sql`release savepoint size_change` : sql`rollback to savepoint size_change`).execute(
    tx,
  )
  return begun
}

/** The server has its new size, or its old one again: releases what it holds beyond that. Idempotent. `grownGibibytes`
 *  is the size that the boot storage has reached in either case. */
export async function endSizeChange(
  tx: Transaction<Tables>,
  {
    isDone,
    grownGibibytes = 0,
    ...id
  }: SizeChangeId & { readonly isDone: boolean; readonly grownGibibytes?: number | undefined },
): Promise<void> {
  const change = await findSizeChange(tx, id)
  if (change?.operationId !== id.operationId) return
  const placement = await selectWhere(tx, 'placement', { account_id: id.accountId, server_id: id.serverId })
    .selectAll()
    .executeTakeFirstOrThrow()
  const held = largest(change.before, change.after)
  const size = isDone
    ? change.after
    : {
        ...change.before,
        storageGibibytes: Math.min(held.storageGibibytes, Math.max(change.before.storageGibibytes, grownGibibytes)),
      }
  await holdQuotas(tx, id, size)
  const ended = await deleteWhere(tx, 'size_change', {
    account_id: id.accountId,
    server_id: id.serverId,
    operation_id: id.operationId,
  }).executeTakeFirst()
  if (ended.numDeletedRows === 0n) throw new Unavailable('the room of the server') // ended concurrently
  const { numUpdatedRows } = await updateWhere(tx, 'placement', {
    account_id: id.accountId,
    server_id: id.serverId,
    node: placement.node,
    cores: placement.cores,
    memory_mebibytes: placement.memory_mebibytes,
    storage_gibibytes: placement.storage_gibibytes,
  })
    .set(columnsOf(size))
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throw new Unavailable('the room of the server') // moved concurrently
  await releaseRoom(tx, placement.node, remainingRoom(roomOf(placement), size))
}

const holdQuotas = async (
  tx: Transaction<Tables>,
  { accountId, serverId }: Pick<SizeChangeId, 'accountId' | 'serverId'>,
  size: Room,
): Promise<void> => {
  await changeQuotas(tx, { accountId, holder: serverHolder(serverId), amounts: serverQuota(size) })
  await changeQuotas(tx, { accountId, holder: storageHolder(serverId), amounts: storageQuota(size.storageGibibytes) })
}

const roomOnly = ({ cores, memoryMebibytes, storageGibibytes }: Room): Room => ({
  cores,
  memoryMebibytes,
  storageGibibytes,
})
