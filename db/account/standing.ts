/** The facts that decide an account's standing, and the rule of every interface without a user session. */
import { isPlatformAccount } from '../../domain/account/platform-account.ts'
import { emailUnverified } from '../../domain/problem.ts'
import { checkStanding, type StandingFacts, standingOf } from '../../domain/account/standing.ts'
import type { Queries } from '../kit/open.ts'
import { type AddressRules, hasVerifiedOwner } from './members.ts'
import { selectWhere } from '../kit/where.ts'

/** Throws 403 unless an owner's address is verified. */
export async function requireVerifiedOwner(queries: Queries, accountId: string, rules: AddressRules): Promise<void> {
  if (!(await hasVerifiedOwner(queries, accountId, rules))) throw emailUnverified()
}

/** Throws 403 unless an owner's address is verified, and 402 when the account may not create billable resources. */
export async function requireStanding(
  queries: Queries,
  accountId: string,
  { now, ...rules }: AddressRules & { readonly now: Date },
): Promise<void> {
  await requireVerifiedOwner(queries, accountId, rules)
  checkStanding(standingOf(await readStanding(queries, accountId, now)))
}

/** The account must exist. */
export async function readStanding(queries: Queries, accountId: string, now: Date): Promise<StandingFacts> {
  const account = await selectWhere(queries, 'account', { id: accountId })
    .select(['suspended_for_payment_at', 'suspended_by_staff_at', 'requires_billing_approval'])
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('credit')
          .select('credit.id')
          .whereRef('credit.account_id', '=', 'account.id')
          .where('revoked_at', 'is', null)
          .whereRef('spent_cents', '<', 'amount_cents')
          .where((where) => where.or([where('expires_at', 'is', null), where('expires_at', '>', now)])),
      ).as('has_live_credit'),
    )
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('payment_customer')
          .select('payment_customer.account_id')
          .whereRef('payment_customer.account_id', '=', 'account.id')
          .where('default_method_id', 'is not', null),
      ).as('has_payment_method'),
    )
    .executeTakeFirstOrThrow()
  return {
    suspendedForPaymentAt: account.suspended_for_payment_at,
    suspendedByStaffAt: account.suspended_by_staff_at,
    requiresBillingApproval: account.requires_billing_approval,
    hasPaymentMethod: Boolean(account.has_payment_method),
    hasLiveCredit: isPlatformAccount(accountId) || Boolean(account.has_live_credit),
  }
}
