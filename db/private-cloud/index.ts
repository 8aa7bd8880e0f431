/** Requests for dedicated hosts, and the nodes that are dedicated to accounts. Ids that are not UUIDs are unknown. */
import { type Selectable, sql, type Transaction } from 'kysely'
import { badField, conflict, notFound } from '../../domain/problem.ts'
import {
  type PrivateCloudAmounts,
  type PrivateCloudState,
  requireEnoughNodes,
  requireStep,
} from '../../domain/private-cloud/rules.ts'
import { isUuid } from '../../domain/uuid.ts'
import type { Queries } from '../kit/open.ts'
import { type ListPlace, newestFirst } from '../kit/page.ts'
import type { Tables } from '../tables.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

export type PrivateCloudRequestRow = Selectable<Tables['private_cloud_request']>

interface RequestFilter {
  readonly accountId?: string
  readonly state?: PrivateCloudState | undefined
  readonly region?: string | undefined
}

/** Newest first, after the given position; of all accounts unless one is named. */
export async function listPrivateCloudRequests(
  queries: Queries,
  { accountId, state, region }: RequestFilter,
  after: ListPlace | undefined,
  limit: number,
): Promise<PrivateCloudRequestRow[]> {
  let query = queries.selectFrom('private_cloud_request').selectAll()
  if (accountId !== undefined) query = query.where('account_id', '=', accountId)
  if (state !== undefined) query = query.where('state', '=', state)
  if (region !== undefined) query = query.where('region', '=', region)
  return newestFirst(query, after, limit).execute()
}

/** Throws 404 for one that does not exist. */
export async function readPrivateCloudRequest(queries: Queries, id: string): Promise<PrivateCloudRequestRow> {
  const row = isUuid(id)
    ? await selectWhere(queries, 'private_cloud_request', { id }).selectAll().executeTakeFirst()
    : undefined
  if (row === undefined) throw notFound('private cloud request')
  return row
}

export interface NewPrivateCloudRequest extends PrivateCloudAmounts {
  readonly id: string
  readonly accountId: string
  readonly region: string | null
  readonly notes: string
  readonly requestedByEmail: string
  readonly now: Date
}

/** Throws 409 while another request of the account is open or in review. */
export async function insertPrivateCloudRequest(
  tx: Transaction<Tables>,
  request: NewPrivateCloudRequest,
): Promise<PrivateCloudRequestRow> {
  const row = await tx
    .insertInto('private_cloud_request')
    .values({
      id: request.id,
      account_id: request.accountId,
      state: 'open',
      vcpus: request.vcpus,
      memory_gibibytes: request.memoryGibibytes,
      disk_gigabytes: request.diskGigabytes,
      region: request.region,
      notes: request.notes,
      requested_by_email: request.requestedByEmail,
      created_at: request.now,
      updated_at: request.now,
    })
    .onConflict((clash) => clash.column('account_id').where('state', 'in', ['open', 'in_review']).doNothing())
    .returningAll()
    .executeTakeFirst()
  if (row === undefined)
    throw conflict('state_not_allowed', 'Another request of the account is open. Withdraw it, or wait for the answer.')
  return row
}

export interface PrivateCloudStep {
  readonly id: string
  /** The account that must own it; any account when absent. */
  readonly accountId?: string
  readonly state: Exclude<PrivateCloudState, 'open'>
  readonly staffReason?: string
  readonly now: Date
}

/** Changes the state of the request, locked until the transaction ends. Throws 404 for one that does not exist or is
 *  another account's, and 409 when its state does not allow it. */
export async function takeRequestOn(
  tx: Transaction<Tables>,
  { id, accountId, state, staffReason, now }: PrivateCloudStep,
): Promise<PrivateCloudRequestRow> {
  const before = isUuid(id)
    ? await selectWhere(tx, 'private_cloud_request', { id }).selectAll().forUpdate().executeTakeFirst()
    : undefined
  if (before === undefined || (accountId !== undefined && before.account_id !== accountId))
    throw notFound('private cloud request')
  requireStep(before.state, state)
  return updateWhere(tx, 'private_cloud_request', { id })
    .set({ state, staff_reason: staffReason ?? null, updated_at: now, decided_at: state === 'in_review' ? null : now })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Assigns the nodes to the account of the request: placement keeps others off from the end of the transaction. Throws
 *  400 for a node that does not exist or is elsewhere, and 409 for one that is not free, or when they are too small. */
export async function dedicateNodes(
  tx: Transaction<Tables>,
  request: PrivateCloudRequestRow,
  nodeIds: readonly string[],
  regionOf: (zone: string) => string | undefined,
): Promise<void> {
  const ids = [...new Set(nodeIds)].sort()
  const rows = await tx
    .selectFrom('node_capacity')
    .selectAll()
    .where('node', 'in', ids)
    .orderBy('node')
    .forUpdate()
    .execute()
  const missing = ids.find((id) => rows.every(({ node }) => node !== id))
  if (missing !== undefined) throw badField('node_ids', `there is no node ${missing} that takes servers`)
  const held = await heldNodes(tx, ids)
  requireEnoughNodes(
    {
      vcpus: request.vcpus,
      memoryGibibytes: request.memory_gibibytes,
      diskGigabytes: request.disk_gigabytes,
      region: request.region,
    },
    rows.map((row) => ({
      id: row.node,
      region: regionOf(row.zone),
      cores: row.cores,
      memoryMebibytes: row.memory_mebibytes,
      storageGibibytes: row.storage_gibibytes,
      dedicatedAccountId: row.dedicated_account_id,
      isEmpty: !held.has(row.node),
    })),
  )
  const account_id = request.account_id
  await tx.updateTable('node_capacity').set({ dedicated_account_id: account_id }).where('node', 'in', ids).execute()
  await tx
    .insertInto('node_dedication')
    .values(ids.map((node) => ({ node, account_id })))
    .onConflict((clash) => clash.column('node').doUpdateSet({ account_id }))
    .execute()
}

/** The nodes that hold a server or a disk, or wait for one. */
async function heldNodes(tx: Transaction<Tables>, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ node: string }>`
    select node from placement where node = any(${ids}::text[])
    union select node from placement_target where node = any(${ids}::text[])
    union select node from storage_claim where node = any(${ids}::text[])
    union select target_node from storage_claim where target_node = any(${ids}::text[])`.execute(tx)
  return new Set(rows.map(({ node }) => node))
}

export interface DedicatedNode {
  readonly node: string
  readonly zone: string
  readonly cores: number
  readonly coresUsed: number
  readonly memoryMebibytes: number
  readonly memoryMebibytesUsed: number
  readonly storageGibibytes: number
  readonly storageGibibytesUsed: number
  readonly serverIds: readonly string[]
}

/** The nodes of the account, by zone, with its servers on them. */
export async function listDedicatedNodes(queries: Queries, accountId: string): Promise<readonly DedicatedNode[]> {
  const { rows } = await sql<DedicatedNode>`
    select node, zone, cores, cores_used as "coresUsed", memory_mebibytes as "memoryMebibytes",
      memory_mebibytes_used as "memoryMebibytesUsed", storage_gibibytes as "storageGibibytes",
      storage_gibibytes_used as "storageGibibytesUsed",
      array(select server_id from placement where placement.node = node_capacity.node
        and placement.account_id = ${accountId}) as "serverIds"
    from node_capacity where dedicated_account_id = ${accountId} order by zone, node`.execute(queries)
  return rows
}
