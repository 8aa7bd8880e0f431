/** Whether an account may create billable resources. */
import { Problem } from '../problem.ts'

export interface StandingFacts {
  readonly suspendedForPaymentAt: Date | null
  readonly suspendedByStaffAt: Date | null
  /** The owner has yet to approve paid usage: a saved card is not enough. */
  readonly requiresBillingApproval: boolean
  readonly hasPaymentMethod: boolean
  /** A credit that is neither spent nor expired nor revoked. */
  readonly hasLiveCredit: boolean
}

export interface Standing {
  readonly canCreateResources: boolean
  readonly reason: 'payment_method_required' | 'owner_approval_required' | 'account_suspended' | null
}

/** Whether the account may create billable resources. Suspension takes precedence over everything, and credit replaces
 *  a payment method. */
export function standingOf(facts: StandingFacts): Standing {
  const reason =
    facts.suspendedByStaffAt !== null || facts.suspendedForPaymentAt !== null
      ? 'account_suspended'
      : facts.hasLiveCredit
        ? null
        : !facts.hasPaymentMethod
          ? 'payment_method_required'
          : facts.requiresBillingApproval
            ? 'owner_approval_required'
            : null
  return { canCreateResources: reason === null, reason }
}

const DETAILS = {
  payment_method_required: 'The account has no payment method and no credit. Add a payment method or redeem a coupon.',
  owner_approval_required: 'The owner of the account has to approve paid usage first.',
  account_suspended:
    'The account is suspended: pay the overdue invoice, or contact support. Nothing that runs is stopped.',
} as const

/** Throws 402 unless the account may create billable resources. */
export function checkStanding(standing: Standing): void {
  if (standing.reason !== null) throw new Problem(402, DETAILS[standing.reason], { reason: standing.reason })
}
