/** Init scripts of accounts. Ids that are not UUIDs are unknown. */
import { isUuid } from '../../domain/uuid.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface InitScriptRow {
  readonly id: string
  readonly name: string
  readonly content: string
  /** Increases with every change, from 1. */
  readonly generation: number
  readonly created_at: Date
  readonly updated_at: Date
}

const COLUMNS = ['id', 'name', 'content', 'generation', 'created_at', 'updated_at'] as const

/** Newest first, after the given position. */
export async function listInitScriptRows(
  queries: Queries,
  accountId: string,
  after: ListPlace | undefined,
  limit: number,
): Promise<InitScriptRow[]> {
  return newestFirst(
    selectWhere(queries, 'init_script', { account_id: accountId }).select(COLUMNS),
    after,
    limit,
  ).execute()
}

/** Undefined for unknown ids and those of another account. */
export async function findInitScript(
  queries: Queries,
  accountId: string,
  id: string,
): Promise<InitScriptRow | undefined> {
  if (!isUuid(id)) return undefined
  return selectWhere(queries, 'init_script', { account_id: accountId, id }).select(COLUMNS).executeTakeFirst()
}

/** Another script of the account with the same name. */
export async function findInitScriptNamed(
  queries: Queries,
  accountId: string,
  script: Pick<InitScriptRow, 'id' | 'name'>,
): Promise<Pick<InitScriptRow, 'id'> | undefined> {
  return selectWhere(queries, 'init_script', { account_id: accountId, name: script.name })
    .select('id')
    .where('id', '<>', script.id)
    .executeTakeFirst()
}

/** The name must be free: the caller holds the quota's lock. */
export async function insertInitScript(queries: Queries, accountId: string, row: InitScriptRow): Promise<void> {
  await queries
    .insertInto('init_script')
    .values({ account_id: accountId, ...row })
    .execute()
}

/** Updates the mutable columns; the name must be free, see `insertInitScript`. */
export async function updateInitScriptRow(
  queries: Queries,
  accountId: string,
  { id, name, content, generation, updated_at }: InitScriptRow,
): Promise<void> {
  await updateWhere(queries, 'init_script', { account_id: accountId, id })
    .set({ name, content, generation, updated_at })
    .execute()
}

/** The row that was deleted. */
export async function deleteInitScriptRow(
  queries: Queries,
  accountId: string,
  id: string,
): Promise<InitScriptRow | undefined> {
  if (!isUuid(id)) return undefined
  return deleteWhere(queries, 'init_script', { account_id: accountId, id }).returning(COLUMNS).executeTakeFirst()
}
