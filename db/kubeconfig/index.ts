/** Credentials in kubeconfigs. Each belongs to one person, token or support session, and to one control plane, where it
 *  is a service account: with that id in control planes that the platform hosts, with that uid in dev clusters, which
 *  create their own. A row records what the credential depends on and its end: `ended_at` is recorded first and
 *  audited, then the service account is removed; `removed_at` is the time of the last removal. */
import { type Insertable, type Selectable, sql, type Transaction } from 'kysely'
import type { Role } from '../../domain/permissions.ts'
import { isTokenLive } from '../identity/index.ts'
import type { Queries } from '../kit/open.ts'
import { isSupportOpen } from '../staff/index.ts'
import type { Tables } from '../tables.ts'
import { selectWhere, updateWhere } from '../kit/where.ts'

export interface NewKubeconfigGrant {
  readonly id: string
  readonly accountId: string
  readonly resourceType: 'kubernetes_cluster' | 'playground' | 'dev_cluster'
  readonly resourceId: string
  readonly region: string
  readonly controlPlaneId: string
  /** Its holder is exactly one of these: the token, the support session, else the person. */
  readonly userId: string
  readonly tokenId?: string | undefined
  readonly supportSessionId?: string | undefined
  /** Of the control plane. */
  readonly clusterRole: 'admin' | 'edit'
  /** Roles in the account: a person who no longer has any of them loses the credential. */
  readonly accountRoles: readonly Role[]
  readonly now: Date
  readonly expiresAt: Date
}

/** Records the credential before it is created, and returns its id: that of the holder's existing credential there with
 *  this role, whose lifetime is extended, or else the new one. */
export async function openKubeconfigGrant(queries: Queries, grant: NewKubeconfigGrant): Promise<string> {
  const { id } = await queries
    .insertInto('kubeconfig_grant')
    .values(rowOf(grant))
    .onConflict((conflict) =>
      conflict.columns(['control_plane_id', 'holder', 'cluster_role']).where('ended_at', 'is', null).doUpdateSet({
        expires_at: sql`greatest(kubeconfig_grant.expires_at, excluded.expires_at)`,
        removed_at: null,
      }),
    )
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

const holderOf = ({ tokenId, supportSessionId, userId }: Omit<NewKubeconfigGrant, 'id'>): string =>
  tokenId ?? supportSessionId ?? userId

const rowOf = (grant: NewKubeconfigGrant): Insertable<Tables['kubeconfig_grant']> => ({
  id: grant.id,
  account_id: grant.accountId,
  resource_type: grant.resourceType,
  resource_id: grant.resourceId,
  region: grant.region,
  control_plane_id: grant.controlPlaneId,
  holder: holderOf(grant),
  user_id: grant.userId,
  token_id: grant.tokenId ?? null,
  support_session_id: grant.supportSessionId ?? null,
  cluster_role: grant.clusterRole,
  account_roles: [...grant.accountRoles],
  created_at: grant.now,
  expires_at: grant.expiresAt,
})

/** Whether it has not ended. */
export const isKubeconfigGrantLive = async (queries: Queries, id: string): Promise<boolean> =>
  (await selectWhere(queries, 'kubeconfig_grant', { id })
    .select('id')
    .where('ended_at', 'is', null)
    .executeTakeFirst()) !== undefined

/** The same for a dev cluster, which has service accounts ready with the uids `ready`: a free one becomes the holder's.
 *  Undefined while none is free, or a used one is not removed yet. */
export async function takeKubeconfigGrant(
  tx: Transaction<Tables>,
  grant: Omit<NewKubeconfigGrant, 'id'>,
  ready: readonly string[],
): Promise<string | undefined> {
  // Two simultaneous holders get two.
  const { accountId, resourceId } = grant
  const cluster = selectWhere(tx, 'dev_cluster', { account_id: accountId }).select('id')
  await cluster.where('id', '=', resourceId).forUpdate().execute()
  const { rows } = await sql<{ id: string; is_own: boolean }>`select id, (holder = ${holderOf(grant)}
      and cluster_role = ${grant.clusterRole} and control_plane_id = ${grant.controlPlaneId} and ended_at is null
      and expires_at > ${grant.now}) as is_own from kubeconfig_grant where id = any (${[...ready]}::uuid[])`.execute(tx)
  const own = rows.find(({ is_own: isOwn }) => isOwn)?.id
  const id = own ?? ready.find((uid) => !rows.some((row) => row.id === uid))
  if (id === undefined) return undefined
  // The holder's previous credential there is over: expired, or of a service account that somebody in the cluster
  // removed.
  if (own === undefined)
    await updateWhere(tx, 'kubeconfig_grant', {
      control_plane_id: grant.controlPlaneId,
      holder: holderOf(grant),
      cluster_role: grant.clusterRole,
    })
      .set({ ended_at: grant.now })
      .where('ended_at', 'is', null)
      .execute()
  return await openKubeconfigGrant(tx, { ...grant, id })
}

export interface KubeconfigGrant {
  readonly id: string
  readonly accountId: string
  readonly resourceType: string
  readonly resourceId: string
  readonly region: string
  readonly controlPlaneId: string
  readonly userId: string
  readonly tokenId: string | null
  readonly clusterRole: 'admin' | 'edit'
}

const toGrant = (row: Selectable<Tables['kubeconfig_grant']>): KubeconfigGrant => ({
  id: row.id,
  accountId: row.account_id,
  resourceType: row.resource_type,
  resourceId: row.resource_id,
  region: row.region,
  controlPlaneId: row.control_plane_id,
  clusterRole: row.cluster_role,
  userId: row.user_id,
  tokenId: row.token_id,
})

/** Whether everything that the credential depends on exists: a user who is not disabled, whose membership is older than
 *  it and has one of its roles; and its token or support session, if it has one, while that is valid itself. */
const isHeld = (now: Date) => sql<boolean>`(
  exists (select 1 from membership join app_user on app_user.id = membership.user_id
    where membership.account_id = kubeconfig_grant.account_id and membership.user_id = kubeconfig_grant.user_id
      and membership.joined_at <= kubeconfig_grant.created_at
      and membership.role::text = any (kubeconfig_grant.account_roles) and app_user.disabled_at is null)
  and (token_id is null or exists (select 1 from api_token where api_token.id = kubeconfig_grant.token_id
    and ${isTokenLive(now)}))
  and (support_session_id is null or exists (select 1 from support_session
    where support_session.id = kubeconfig_grant.support_session_id and ${isSupportOpen(now)})))`

/** Whether a live credential has lost something that it depends on. */
export const hasLostKubeconfigs = async (queries: Queries, now: Date): Promise<boolean> =>
  (await queries
    .selectFrom('kubeconfig_grant')
    .select('id')
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where((where) => where.not(isHeld(now)))
    .executeTakeFirst()) !== undefined

/** Ends live credentials that have lost something that they depend on, some at a time, and returns them. */
export async function endLostKubeconfigs(
  tx: Transaction<Tables>,
  now: Date,
  limit: number,
): Promise<readonly KubeconfigGrant[]> {
  const rows = await tx
    .updateTable('kubeconfig_grant')
    .set({ ended_at: now })
    .where('id', 'in', (from) =>
      from
        .selectFrom('kubeconfig_grant')
        .select('id')
        .where('ended_at', 'is', null)
        .where('expires_at', '>', now)
        .where((where) => where.not(isHeld(now)))
        .orderBy('id')
        .limit(limit)
        .forUpdate(),
    )
    .returningAll()
    .execute()
  return rows.map(toGrant)
}

/** Ends the live credentials of an account, of a user, or of that user in that account. Returns how many there were. */
export async function endKubeconfigs(
  queries: Queries,
  of: { readonly account_id?: string; readonly user_id?: string },
  now: Date,
): Promise<number> {
  const ended = await queries
    .updateTable('kubeconfig_grant')
    .set({ ended_at: now })
    .where((where) => where.and(of))
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst()
  return Number(ended.numUpdatedRows)
}

const isOver = (now: Date) => sql<boolean>`(ended_at is not null or expires_at <= ${now})`

/** Its control plane exists. */
const isKept = sql<boolean>`(
  exists (select 1 from kubernetes_cluster where control_plane_id = kubeconfig_grant.control_plane_id)
  or exists (select 1 from playground where control_plane_id = kubeconfig_grant.control_plane_id
    and deleted_at is null)
  or exists (select 1 from dev_cluster where kubeconfig_grant.resource_type = 'dev_cluster'
    and dev_cluster.account_id = kubeconfig_grant.account_id and dev_cluster.id = kubeconfig_grant.resource_id))`

/** Ids of credentials of the control plane that are over, ended or expired, until they are forgotten. */
export async function listOverKubeconfigs(
  queries: Queries,
  controlPlaneId: string,
  now: Date,
): Promise<readonly string[]> {
  const rows = await queries
    .selectFrom('kubeconfig_grant')
    .select('id')
    .where(sql<boolean>`control_plane_id::text = ${controlPlaneId}`)
    .where(isOver(now))
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

/** Credentials that are over, whose service account may exist: never removed; or removed before `again`, because a
 *  restored snapshot may have brought it back while a token of it lives. Those of deleted control planes are left
 *  out. */
export async function listKubeconfigsToRemove(
  queries: Queries,
  { now, again, limit }: { readonly now: Date; readonly again: Date; readonly limit: number },
): Promise<readonly KubeconfigGrant[]> {
  const rows = await queries
    .selectFrom('kubeconfig_grant')
    .selectAll()
    .where(isOver(now))
    .where((where) =>
      where.or([
        where('removed_at', 'is', null),
        where.and([where('removed_at', '<', again), where('expires_at', '>', now)]),
      ]),
    )
    .where(isKept)
    .orderBy('removed_at', (order) => order.asc().nullsFirst())
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(toGrant)
}

/** Records that the service account is removed. */
export async function noteKubeconfigRemoved(queries: Queries, id: string, now: Date): Promise<void> {
  await updateWhere(queries, 'kubeconfig_grant', { id }).set({ removed_at: now }).execute()
}

/** Forgets credentials that expired before this and have no live token: once their service account is removed, or
 *  deleted with its control plane. */
export async function forgetKubeconfigs(queries: Queries, before: Date): Promise<void> {
  await queries
    .deleteFrom('kubeconfig_grant')
    .where('expires_at', '<', before)
    .where((where) => where.or([where('removed_at', 'is not', null), where.not(isKept)]))
    .execute()
}

export interface KubeconfigsAwaiting {
  readonly count: number
  /** When the first of them ended; absent when there is none. */
  readonly since?: Date
}

/** Counts credentials that were ended before they expired, and may still work: their control plane exists, and their
 *  service account was not removed yet. */
export async function countKubeconfigsAwaiting(queries: Queries, now: Date): Promise<KubeconfigsAwaiting> {
  const { count, since } = await queries
    .selectFrom('kubeconfig_grant')
    .select(sql<string>`count(*)`.as('count'))
    .select(sql<Date | null>`min(ended_at)`.as('since'))
    .where('removed_at', 'is', null)
    .where('ended_at', 'is not', null)
    .where('expires_at', '>', now)
    .where(isKept)
    .executeTakeFirstOrThrow()
  return { count: Number(count), ...(since === null ? {} : { since }) }
}
