/** What an account's standing is judged by. */
import type { StandingFacts } from '../../domain/standing.ts'
import type { Queries } from '../open.ts'

/** The account must be there. */
export async function readStanding(queries: Queries, accountId: string, now: Date): Promise<StandingFacts> {
  const account = await queries
    .selectFrom('account')
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
    .where('id', '=', accountId)
    .executeTakeFirstOrThrow()
  return {
    suspendedForPaymentAt: account.suspended_for_payment_at,
    suspendedByStaffAt: account.suspended_by_staff_at,
    requiresBillingApproval: account.requires_billing_approval,
    isBillingApproved: false,
    hasPaymentMethod: false,
    hasLiveCredit: Boolean(account.has_live_credit),
  }
}
