/** Tokens of clusters, with which their add-ons call the platform: found by the SHA-256 of their text. Each is of one
 *  add-on, for some areas, and is deleted with the cluster. */
import { sql } from 'kysely'
import type { ClusterScope } from '../../domain/permissions.ts'
import { hashSecret } from '../identity/index.ts'
import type { Queries } from '../kit/open.ts'
import type { ClusterId } from './claims.ts'
import { deleteWhere, selectWhere, updateWhere } from '../kit/where.ts'

export interface ClusterToken {
  readonly id: string
  readonly program: string
  readonly createdAt: Date
}

export interface NewClusterToken extends ClusterToken {
  readonly token: string
  readonly scopes: readonly ClusterScope[]
  readonly expiresAt: Date
}

/** The cluster must exist. */
export async function createClusterToken(
  db: Queries,
  { accountId, clusterId }: ClusterId,
  { id, program, token, scopes, createdAt, expiresAt }: NewClusterToken,
): Promise<void> {
  await db
    .insertInto('kubernetes_token')
    .values({
      id,
      account_id: accountId,
      cluster_id: clusterId,
      program,
      secret_hash: hashSecret(token),
      scopes: JSON.stringify(scopes),
      created_at: createdAt,
      expires_at: expiresAt,
    })
    .execute()
}

/** Newest first, including expired ones. */
export const listClusterTokens = async (
  db: Queries,
  { accountId, clusterId }: ClusterId,
): Promise<readonly ClusterToken[]> =>
  (
    await selectWhere(db, 'kubernetes_token', { account_id: accountId, cluster_id: clusterId })
      .select(['id', 'program', 'created_at'])
      .orderBy('created_at', 'desc')
      .execute()
  ).map(({ id, program, created_at: createdAt }) => ({ id, program, createdAt }))

/** From now on, no other token of the program is valid. */
export async function keepOneClusterToken(
  db: Queries,
  { accountId, clusterId }: ClusterId,
  { id, program }: Pick<ClusterToken, 'id' | 'program'>,
): Promise<void> {
  await deleteWhere(db, 'kubernetes_token', { account_id: accountId, cluster_id: clusterId, program })
    .where('id', '!=', id)
    .execute()
}

/** Every other token of the program stays valid until then, if it does not expire before. */
export async function endOtherClusterTokens(
  db: Queries,
  { accountId, clusterId }: ClusterId,
  { id, program, at }: Pick<ClusterToken, 'id' | 'program'> & { readonly at: Date },
): Promise<void> {
  await updateWhere(db, 'kubernetes_token', { account_id: accountId, cluster_id: clusterId, program })
    .set({ expires_at: at })
    .where('id', '!=', id)
    .where('expires_at', '>', at)
    .execute()
}

export interface LiveClusterToken extends ClusterId {
  readonly id: string
  readonly program: string
  readonly scopes: readonly ClusterScope[]
}

/** Those of the tokens with these hashes (see hashSecret) that are valid now. */
export async function findClusterTokens(
  db: Queries,
  secretHashes: readonly Buffer[],
  now: Date,
): Promise<readonly { readonly secretHash: Buffer; readonly token: LiveClusterToken }[]> {
  if (secretHashes.length === 0) return []
  const rows = await selectWhere(db, 'kubernetes_token', { secret_hash: sql<Buffer>`any(${secretHashes}::bytea[])` })
    .select(['id', 'account_id', 'cluster_id', 'program', 'scopes', 'secret_hash'])
    .where('expires_at', '>', now)
    .execute()
  return rows.map(({ id, account_id: accountId, cluster_id: clusterId, program, scopes, secret_hash: secretHash }) => ({
    secretHash,
    token: { id, accountId, clusterId, program, scopes },
  }))
}
