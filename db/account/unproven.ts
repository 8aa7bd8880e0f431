/** What was created with an address before anybody proved that it is theirs. */
import type { Transaction } from 'kysely'
import { endSessionsOfUser, removeSecondFactor, revokeTokensOfAccount, revokeTokensOfUser } from '../identity/index.ts'
import { endKubeconfigs } from '../kubeconfig/index.ts'
import type { Tables } from '../tables.ts'
import type { UserRow } from './accounts.ts'
import { removeMembership, resolveActiveAccount } from './members.ts'
import { deleteWhere, updateWhere } from '../kit/where.ts'

/** Records that the address of the user is proven. `isHolder`: the person who proves it has shown, by the user's
 *  session or password, that the user was theirs before. Otherwise everything created before the proof is removed,
 *  because somebody else may have created it. The caller has locked the user. Returns what was removed, as counts by
 *  name. */
export async function proveAddress(
  tx: Transaction<Tables>,
  user: UserRow,
  { now, isHolder }: { readonly now: Date; readonly isHolder: boolean },
): Promise<Readonly<Record<string, number>>> {
  if (user.email_verified_at !== null) return {}
  await updateWhere(tx, 'app_user', { id: user.id }).set({ email_verified_at: now }).execute()
  return isHolder ? {} : await dropUnproven(tx, user, now)
}

/** Removes everything by which somebody else could get into what the address's owner takes over: sessions, tokens, the
 *  second factor, sign-ins by providers, other accounts that the user was added to, and of the user's own account all
 *  other members, invitations, tokens and SSH keys, which new servers get by default. The caller has locked the user.
 *  Returns what was removed, as counts by name. */
async function dropUnproven(
  tx: Transaction<Tables>,
  { id: userId, own_account_id: own }: UserRow,
  now: Date,
): Promise<Readonly<Record<string, number>>> {
  await endSessionsOfUser(tx, userId, now)
  await removeSecondFactor(tx, userId)
  let tokens = await revokeTokensOfUser(tx, userId, now)
  let kubeconfigs = await endKubeconfigs(tx, { user_id: userId }, now)
  const identities = await deleteWhere(tx, 'linked_identity', { user_id: userId }).executeTakeFirst()
  if (own === null) return { tokens, kubeconfigs, identities: Number(identities.numDeletedRows) }
  const others = await tx
    .selectFrom('membership')
    .select(['account_id', 'user_id'])
    .where((where) =>
      where.or([
        where.and([where('account_id', '=', own), where('user_id', '<>', userId)]),
        where.and([where('account_id', '<>', own), where('user_id', '=', userId)]),
      ]),
    )
    .execute()
  for (const { account_id, user_id } of others) await removeMembership(tx, account_id, user_id, now)
  tokens += await revokeTokensOfAccount(tx, own, now)
  kubeconfigs += await endKubeconfigs(tx, { account_id: own }, now)
  const invitations = await updateWhere(tx, 'invitation', { account_id: own, state: 'pending' })
    .set({ state: 'revoked', decided_at: now })
    .executeTakeFirst()
  const keys = await deleteWhere(tx, 'ssh_key', { account_id: own }).executeTakeFirst()
  await resolveActiveAccount(tx, userId)
  return {
    tokens,
    kubeconfigs,
    identities: Number(identities.numDeletedRows),
    memberships: others.length,
    invitations: Number(invitations.numUpdatedRows),
    ssh_keys: Number(keys.numDeletedRows),
  }
}
