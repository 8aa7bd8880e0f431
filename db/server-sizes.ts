/** Changes of a server's size. While one is under way the server holds the larger of both sizes in every respect, so that it can end either
 *  way without asking anybody again: what it was cannot have been sold meanwhile, and what it shall be is there. */
import type { Transaction } from 'kysely'
import type { Room } from '../domain/placement.ts'
import { conflict, Unavailable } from '../domain/problem.ts'
import { serverQuota, storageQuota } from '../domain/quota.ts'
import type { Queries } from './open.ts'
import { addRoom, findPlacement, giveBackRoom, noCapacity } from './placement.ts'
import { changeQuotas } from './quotas.ts'
import { serverHolder, storageHolder } from './server-holders.ts'
import type { Tables } from './tables.ts'

interface SizeChangeId {
  readonly accountId: string
  readonly serverId: string
  readonly operationId: string
}

export interface SizeChange {
  readonly operationId: string
  readonly before: Room
  readonly after: Room
}

/** Takes what the server needs to have the plan's cores and memory and a boot storage of at least `storageGibibytes`, once: an earlier
 *  beginning of the operation is the answer as it stands. The boot storage never shrinks. The room is taken on the server's own node.
 *  Throws the Problems `state_not_allowed` (409) while another change is under way or the server holds nothing, `quota_exceeded` (422) and
 *  `no_capacity` (503). */
export async function beginSizeChange(tx: Transaction<Tables>, { cpuPool, ...change }: SizeChangeId & Room & { readonly cpuPool?: string | undefined }, now: Date): Promise<SizeChange> {
  const known = await findSizeChange(tx, change)
  if (known?.operationId === change.operationId) return known
  const resource = { type: 'server', id: change.serverId }
  const busy = conflict('state_not_allowed', 'The plan of the server is being changed. Try again in a minute.', { resource })
  if (known !== undefined) throw busy
  const placement = await findPlacement(tx, change)
  if (placement === undefined) throw conflict('state_not_allowed', 'The server was never made whole.', { resource })
  const before = roomOf(placement)
  const after = { ...roomOf(change), storageGibibytes: Math.max(before.storageGibibytes, change.storageGibibytes) }
  const held = largest(before, after)
  await holdQuotas(tx, change, held) // first of all, as everywhere: whoever locks quotas later may wait for one who waits for it
  const begun = await tx.insertInto('size_change').values({
    account_id: change.accountId, server_id: change.serverId, operation_id: change.operationId, began_at: now,
    cores_before: before.cores, memory_mebibytes_before: before.memoryMebibytes, storage_gibibytes_before: before.storageGibibytes,
    cores_after: after.cores, memory_mebibytes_after: after.memoryMebibytes, storage_gibibytes_after: after.storageGibibytes,
  }).onConflict((conflicting) => conflicting.doNothing()).executeTakeFirst()
  if (begun.numInsertedOrUpdatedRows === 0n) throw busy
  const { numUpdatedRows } = await tx.updateTable('placement').set(columnsOf(held)).where('account_id', '=', change.accountId).where('server_id', '=', change.serverId)
    .where('node', '=', placement.node).where('cores', '=', before.cores).where('memory_mebibytes', '=', before.memoryMebibytes).where('storage_gibibytes', '=', before.storageGibibytes).executeTakeFirst()
  if (numUpdatedRows === 0n) throw busy
  // With the placement's row locked: a move holds room by the size that the server had.
  const isMoving = await tx.selectFrom('placement_target').select('operation_id').where('account_id', '=', change.accountId).where('server_id', '=', change.serverId).executeTakeFirst()
  if (isMoving !== undefined) throw busy
  if (!(await addRoom(tx, placement.node, difference(held, before), cpuPool))) throw noCapacity(placement.zone)
  return { operationId: change.operationId, before, after }
}

/** The server has its new size, or its old one again; what it holds beyond is given back. Free when that was done before.
 *  `grownGibibytes` is what the boot storage has come to all the same. */
export async function endSizeChange(tx: Transaction<Tables>, { isDone, grownGibibytes = 0, ...id }: SizeChangeId & { readonly isDone: boolean; readonly grownGibibytes?: number | undefined }): Promise<void> {
  const change = await findSizeChange(tx, id)
  if (change?.operationId !== id.operationId) return
  const held = largest(change.before, change.after)
  const size = isDone ? change.after : { ...change.before, storageGibibytes: Math.min(held.storageGibibytes, Math.max(change.before.storageGibibytes, grownGibibytes)) }
  await holdQuotas(tx, id, size)
  const ended = await tx.deleteFrom('size_change').where('account_id', '=', id.accountId).where('server_id', '=', id.serverId).where('operation_id', '=', id.operationId).executeTakeFirst()
  if (ended.numDeletedRows === 0n) throw new Unavailable('the room of the server') // somebody ended it in this moment
  const placement = await tx.updateTable('placement').set(columnsOf(size)).where('account_id', '=', id.accountId).where('server_id', '=', id.serverId).returning('node').executeTakeFirstOrThrow()
  await giveBackRoom(tx, placement.node, difference(held, size))
}

async function findSizeChange(db: Queries, { accountId, serverId }: Pick<SizeChangeId, 'accountId' | 'serverId'>): Promise<SizeChange | undefined> {
  const row = await db.selectFrom('size_change').select(SIZE_CHANGE_COLUMNS).where('account_id', '=', accountId).where('server_id', '=', serverId).executeTakeFirst()
  return row && toSizeChange(row)
}

/** What `toSizeChange` reads, under names that go together with other tables. */
export const SIZE_CHANGE_COLUMNS = [
  'size_change.operation_id as size_operation', 'size_change.cores_before', 'size_change.memory_mebibytes_before', 'size_change.storage_gibibytes_before',
  'size_change.cores_after', 'size_change.memory_mebibytes_after', 'size_change.storage_gibibytes_after',
] as const

type SizeColumns = { readonly [Name in `${'cores' | 'memory_mebibytes' | 'storage_gibibytes'}_${'before' | 'after'}`]: number | null } & { readonly size_operation: string | null }

/** Undefined when no change was joined. */
export const toSizeChange = (row: SizeColumns): SizeChange | undefined => row.size_operation === null ? undefined : {
  operationId: row.size_operation,
  before: { cores: row.cores_before ?? 0, memoryMebibytes: row.memory_mebibytes_before ?? 0, storageGibibytes: row.storage_gibibytes_before ?? 0 },
  after: { cores: row.cores_after ?? 0, memoryMebibytes: row.memory_mebibytes_after ?? 0, storageGibibytes: row.storage_gibibytes_after ?? 0 },
}

const holdQuotas = async (tx: Transaction<Tables>, { accountId, serverId }: Pick<SizeChangeId, 'accountId' | 'serverId'>, size: Room): Promise<void> => {
  await changeQuotas(tx, { accountId, holder: serverHolder(serverId), amounts: serverQuota(size) })
  await changeQuotas(tx, { accountId, holder: storageHolder(serverId), amounts: storageQuota(size.storageGibibytes) })
}

const roomOf = ({ cores, memoryMebibytes, storageGibibytes }: Room): Room => ({ cores, memoryMebibytes, storageGibibytes })
const columnsOf = (room: Room) => ({ cores: room.cores, memory_mebibytes: room.memoryMebibytes, storage_gibibytes: room.storageGibibytes })
const combine = (one: Room, other: Room, by: (a: number, b: number) => number): Room => ({
  cores: by(one.cores, other.cores), memoryMebibytes: by(one.memoryMebibytes, other.memoryMebibytes), storageGibibytes: by(one.storageGibibytes, other.storageGibibytes),
})
const largest = (one: Room, other: Room): Room => combine(one, other, Math.max)
const difference = (larger: Room, smaller: Room): Room => combine(larger, smaller, (a, b) => a - b)
