/** The change of a server's size in progress. `db/server/sizes.ts` starts and ends it. */
import type { Room } from '../../domain/node/placement.ts'
import type { Queries } from '../kit/open.ts'
import { selectWhere } from '../kit/where.ts'

export interface SizeChange {
  readonly operationId: string
  readonly before: Room
  readonly after: Room
}

/** Undefined while the size of the server is not being changed. */
export async function findSizeChange(
  db: Queries,
  { accountId, serverId }: { readonly accountId: string; readonly serverId: string },
): Promise<SizeChange | undefined> {
  const row = await selectWhere(db, 'size_change', { account_id: accountId, server_id: serverId })
    .select(SIZE_CHANGE_COLUMNS)
    .executeTakeFirst()
  return row && toSizeChange(row)
}

/** The columns that `toSizeChange` reads, under names that can be combined with other tables. */
export const SIZE_CHANGE_COLUMNS = [
  'size_change.operation_id as size_operation',
  'size_change.cores_before',
  'size_change.memory_mebibytes_before',
  'size_change.storage_gibibytes_before',
  'size_change.cores_after',
  'size_change.memory_mebibytes_after',
  'size_change.storage_gibibytes_after',
] as const

export type SizeColumns = {
  readonly [Name in `${'cores' | 'memory_mebibytes' | 'storage_gibibytes'}_${'before' | 'after'}`]: number | null
} & { readonly size_operation: string | null }

/** Undefined when no change was joined. */
export const toSizeChange = (row: SizeColumns): SizeChange | undefined =>
  row.size_operation === null
    ? undefined
    : {
        operationId: row.size_operation,
        before: {
          cores: row.cores_before ?? 0,
          memoryMebibytes: row.memory_mebibytes_before ?? 0,
          storageGibibytes: row.storage_gibibytes_before ?? 0,
        },
        after: {
          cores: row.cores_after ?? 0,
          memoryMebibytes: row.memory_mebibytes_after ?? 0,
          storageGibibytes: row.storage_gibibytes_after ?? 0,
        },
      }
