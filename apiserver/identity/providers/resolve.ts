/** Resolves the person whom a provider vouches for to a user of ours, in the contract's order: a linked subject, a user
 *  with the same address (both sides verified), a pending invitation, a new account. The order protects accounts from a
 *  person who signed up with somebody else's address first. */
import type { Transaction } from 'kysely'
import type { CouponOutcome } from '../../../domain/billing/coupon.ts'
import {
  addMember,
  createAccount,
  decideInvitation,
  findPendingInvitation,
  findUserByEmail,
  lockUser,
  redeemCoupon,
  type UserRow,
} from '../../../db/account/index.ts'
import { appendAudit } from '../../../db/audit/index.ts'
import { findIdentity, linkIdentity, markIdentityUsed } from '../../../db/identity/index.ts'
import type { Tables } from '../../../db/tables.ts'
import type { RequestFacts } from '../../../kit/http/call.ts'
import { newUuid } from '../../../kit/sys/random.ts'
import { auditEntry, userActor, userEntry } from '../../kit/change/audit.ts'
import { keepLanguage } from '../language.ts'
import type { IdentityParts } from '../parts.ts'
import { type Person, type Provider, SignInFailed } from './protocol.ts'

export interface Resolution {
  readonly user: UserRow
  readonly isNewAccount: boolean
  /** The result of the coupon that came with the sign-in; undefined without one, and for a known identity. */
  readonly couponOutcome: CouponOutcome | undefined
}

export interface Resolving {
  readonly person: Person
  readonly provider: Provider
  readonly request: RequestFacts
  readonly coupon: string | undefined
}

/** Throws SignInFailed: the caller must roll back then. */
export async function resolvePerson(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  resolving: Resolving,
): Promise<Resolution> {
  const { person, provider } = resolving
  const now = parts.clock.now()
  const known = (user: UserRow): Resolution => ({ user, isNewAccount: false, couponOutcome: undefined })
  const linked = await findIdentity(tx, person.issuer, person.subject)
  if (linked !== undefined) {
    await markIdentityUsed(tx, linked.id, now)
    return known(await lockUser(tx, linked.userId))
  }
  const isVouched = provider.configuration.vouches_for_email
  const sameEmail = await findUserByEmail(tx, person.email)
  if (sameEmail !== undefined) {
    if (!isVouched || sameEmail.email_verified_at === null) throw new SignInFailed('account_exists')
    await link(tx, parts, resolving, sameEmail)
    return known(sameEmail)
  }
  const invitation = await findPendingInvitation(tx, person.email, now)
  if (invitation !== undefined) {
    if (!isVouched) throw new SignInFailed('email_unverified')
    if (!(await decideInvitation(tx, invitation.id, 'accepted', now))) throw new SignInFailed('provider_error')
    const userId = newUuid(parts.random)
    await insertUser(tx, { id: userId, person, accountId: invitation.accountId, now })
    await keepLanguage(tx, userId, resolving.request, now)
    await addMember(tx, { accountId: invitation.accountId, userId, role: invitation.role, now })
    const user = await lockUser(tx, userId)
    await appendAudit(
      tx,
      auditEntry(invitation.accountId, userActor(user), resolving.request, {
        action: 'account.member_joined',
        resourceType: 'user',
        resourceId: userId,
        detail: { invitation_id: invitation.id },
        changes: [{ field: 'role', before: null, after: invitation.role }],
      }),
      parts,
    )
    await link(tx, parts, resolving, user)
    return known(user)
  }
  return await openAccountFor(tx, parts, resolving, isVouched ? now : null)
}

async function insertUser(
  tx: Transaction<Tables>,
  draft: { readonly id: string; readonly person: Person; readonly accountId: string; readonly now: Date },
): Promise<void> {
  const added = await tx
    .insertInto('app_user')
    .values({
      id: draft.id,
      email: draft.person.email,
      name: draft.person.name,
      password_hash: null,
      email_verified_at: draft.now,
      own_account_id: null,
      active_account_id: draft.accountId,
      created_at: draft.now,
    })
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirst()
  if (added.numInsertedOrUpdatedRows === 0n) throw new SignInFailed('account_exists')
}

async function openAccountFor(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  resolving: Resolving,
  emailVerifiedAt: Date | null,
): Promise<Resolution> {
  const { person, coupon, request } = resolving
  const now = parts.clock.now()
  const ids = { accountId: newUuid(parts.random), userId: newUuid(parts.random), creditId: newUuid(parts.random) }
  const isCreated = await createAccount(tx, {
    ...ids,
    accountName: person.name ?? person.email,
    email: person.email,
    name: person.name,
    passwordHash: null,
    emailVerifiedAt,
    now,
  })
  if (!isCreated) throw new SignInFailed('account_exists')
  await keepLanguage(tx, ids.userId, request, now)
  const user = await lockUser(tx, ids.userId)
  const redeemed =
    coupon === undefined
      ? undefined
      : await redeemCoupon(tx, { accountId: ids.accountId, code: coupon, now, random: parts.random })
  await appendAudit(
    tx,
    auditEntry(ids.accountId, userActor(user), request, { action: 'account.created', resourceId: ids.accountId }),
    parts,
  )
  await link(tx, parts, resolving, user)
  return { user, isNewAccount: true, couponOutcome: redeemed?.outcome }
}

async function link(
  tx: Transaction<Tables>,
  parts: IdentityParts,
  { person, provider, request }: Resolving,
  user: UserRow,
): Promise<void> {
  const id = newUuid(parts.random)
  const isLinked = await linkIdentity(tx, {
    id,
    userId: user.id,
    issuer: person.issuer,
    subject: person.subject,
    provider: provider.configuration.name,
    now: parts.clock.now(),
  })
  // the same identity signed in at the same moment; the next attempt finds it linked
  if (!isLinked) throw new SignInFailed('provider_error')
  await appendAudit(
    tx,
    userEntry(user, request, {
      action: 'account.identity_linked',
      resourceType: 'identity',
      resourceId: id,
      detail: { provider: provider.configuration.name },
    }),
    parts,
  )
}
