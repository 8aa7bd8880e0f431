/** Credentials in kubeconfigs. Each belongs to one person, token or support session, and to one control plane, where
 *  it is a service account of that id. A row says what it hangs on and what has become of it: `ended_at` is noted first
 *  and audited, then the host removes the service account, and `removed_at` says when it did last. */
import { type Selectable, sql, type Transaction } from 'kysely'
import type { Role } from '../../domain/permissions.ts'
import type { Queries } from '../open.ts'
import type { Tables } from '../tables.ts'

export interface NewKubeconfigGrant {
  readonly id: string
  readonly accountId: string
  readonly resourceType: 'kubernetes_cluster' | 'playground'
  readonly resourceId: string
  readonly region: string
  readonly controlPlaneId: string
  /** Exactly one of these has it: the token, the support session, else the person. */
  readonly userId: string
  readonly tokenId?: string | undefined
  readonly supportSessionId?: string | undefined
  /** Of the control plane. */
  readonly clusterRole: 'admin' | 'edit'
  /** In the account: whoever has none of them any longer loses the credential. */
  readonly accountRoles: readonly Role[]
  readonly now: Date
  readonly expiresAt: Date
}

/** Notes the credential before it is made, and answers its id: that of the one which the holder has there with this
 *  role, which lives longer then, else the new one. */
export async function openKubeconfigGrant(queries: Queries, made: NewKubeconfigGrant): Promise<string> {
  const { id } = await queries
    .insertInto('kubeconfig_grant')
    .values({
      id: made.id,
      account_id: made.accountId,
      resource_type: made.resourceType,
      resource_id: made.resourceId,
      region: made.region,
      control_plane_id: made.controlPlaneId,
      holder: made.tokenId ?? made.supportSessionId ?? made.userId,
      user_id: made.userId,
      token_id: made.tokenId ?? null,
      support_session_id: made.supportSessionId ?? null,
      cluster_role: made.clusterRole,
      account_roles: [...made.accountRoles],
      created_at: made.now,
      expires_at: made.expiresAt,
    })
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
  ...{ id: row.id, accountId: row.account_id, resourceType: row.resource_type, resourceId: row.resource_id },
  ...{ region: row.region, controlPlaneId: row.control_plane_id, clusterRole: row.cluster_role },
  ...{ userId: row.user_id, tokenId: row.token_id },
})

/** Whether what the credential hangs on is there: a user who is not disabled, whose membership is older than it and has
 *  one of its roles; its token or support session, if it has one. */
const isHeld = sql<boolean>`(
  exists (select 1 from membership join app_user on app_user.id = membership.user_id
    where membership.account_id = kubeconfig_grant.account_id and membership.user_id = kubeconfig_grant.user_id
      and membership.joined_at <= kubeconfig_grant.created_at
      and membership.role::text = any (kubeconfig_grant.account_roles) and app_user.disabled_at is null)
  and (token_id is null or exists (select 1 from api_token where api_token.id = kubeconfig_grant.token_id
    and api_token.revoked_at is null))
  and (support_session_id is null or exists (select 1 from support_session
    where support_session.id = kubeconfig_grant.support_session_id and support_session.ended_at is null)))`

/** Whether a live credential has lost what it hangs on. */
export const hasLostKubeconfigs = async (queries: Queries, now: Date): Promise<boolean> =>
  (await queries
    .selectFrom('kubeconfig_grant')
    .select('id')
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where((where) => where.not(isHeld))
    .executeTakeFirst()) !== undefined

/** Ends live credentials whose holder lost what they hang on, some at a time, and answers those. */
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
        .where((where) => where.not(isHeld))
        .orderBy('id')
        .limit(limit)
        .forUpdate(),
    )
    .returningAll()
    .execute()
  return rows.map(toGrant)
}

/** Ends the live credentials of an account, of a user, or of that user in that account. Answers how many there were. */
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

/** Credentials that are over, ended or expired, whose service account may be there: never removed; or removed before
 *  `again`, as a snapshot that was restored may have brought it back while a token of it lives. Those of control planes
 *  that are gone are none. */
export async function listKubeconfigsToRemove(
  queries: Queries,
  { now, again, limit }: { readonly now: Date; readonly again: Date; readonly limit: number },
): Promise<readonly KubeconfigGrant[]> {
  const rows = await queries
    .selectFrom('kubeconfig_grant')
    .selectAll()
    .where((where) => where.or([where('ended_at', 'is not', null), where('expires_at', '<=', now)]))
    .where((where) =>
      where.or([
        where('removed_at', 'is', null),
        where.and([where('removed_at', '<', again), where('expires_at', '>', now)]),
      ]),
    )
    .where(
      sql<boolean>`(exists (select 1 from kubernetes_cluster where control_plane_id = kubeconfig_grant.control_plane_id)
        or exists (select 1 from playground where control_plane_id = kubeconfig_grant.control_plane_id
          and deleted_at is null))`,
    )
    .orderBy('removed_at', (order) => order.asc().nullsFirst())
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(toGrant)
}

/** The service account is gone. */
export async function noteKubeconfigRemoved(queries: Queries, id: string, now: Date): Promise<void> {
  await queries.updateTable('kubeconfig_grant').set({ removed_at: now }).where('id', '=', id).execute()
}

/** Forgets those that expired before this: no token of them lives. */
export async function forgetKubeconfigs(queries: Queries, before: Date): Promise<void> {
  await queries.deleteFrom('kubeconfig_grant').where('expires_at', '<', before).execute()
}
