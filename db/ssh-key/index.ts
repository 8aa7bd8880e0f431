/** SSH keys of accounts. Ids that are not UUIDs are unknown. */
import { isUuid } from '../../domain/uuid.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface SshKeyRow {
  readonly id: string
  readonly name: string
  readonly public_key: string
  readonly fingerprint: string
  /** Increases with every change, from 1. */
  readonly generation: number
  readonly created_at: Date
}

const COLUMNS = ['id', 'name', 'public_key', 'fingerprint', 'generation', 'created_at'] as const

/** Newest first, after the given position. */
export async function listSshKeyRows(
  queries: Queries,
  accountId: string,
  after: ListPlace | undefined,
  limit: number,
): Promise<SshKeyRow[]> {
  return newestFirst(selectWhere(queries, 'ssh_key', { account_id: accountId }).select(COLUMNS), after, limit).execute()
}

/** Undefined for unknown ids and those of another account. */
export async function findSshKey(queries: Queries, accountId: string, id: string): Promise<SshKeyRow | undefined> {
  if (!isUuid(id)) return undefined
  return selectWhere(queries, 'ssh_key', { account_id: accountId, id }).select(COLUMNS).executeTakeFirst()
}

/** Another key of the account with the same name or, failing that, the same fingerprint. */
export async function findTakenBy(
  queries: Queries,
  accountId: string,
  key: Pick<SshKeyRow, 'id' | 'name' | 'fingerprint'>,
): Promise<SshKeyRow | undefined> {
  const rows = await selectWhere(queries, 'ssh_key', { account_id: accountId })
    .select(COLUMNS)
    .where('id', '<>', key.id)
    .where((where) => where.or([where('name', '=', key.name), where('fingerprint', '=', key.fingerprint)]))
    .execute()
  return rows.find((row) => row.name === key.name) ?? rows[0]
}

/** Updates the name; it must be free, see `insertSshKey`. */
export async function updateSshKeyRow(
  queries: Queries,
  accountId: string,
  { id, name, generation }: SshKeyRow,
): Promise<void> {
  await updateWhere(queries, 'ssh_key', { account_id: accountId, id }).set({ name, generation }).execute()
}

/** Name and fingerprint must be free: the caller holds the quota's lock. */
export async function insertSshKey(queries: Queries, accountId: string, row: SshKeyRow): Promise<void> {
  await queries
    .insertInto('ssh_key')
    .values({ account_id: accountId, ...row })
    .execute()
}

/** The row that was deleted. */
export async function deleteSshKeyRow(queries: Queries, accountId: string, id: string): Promise<SshKeyRow | undefined> {
  if (!isUuid(id)) return undefined
  return deleteWhere(queries, 'ssh_key', { account_id: accountId, id }).returning(COLUMNS).executeTakeFirst()
}
