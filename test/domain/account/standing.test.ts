import { expect, test } from 'vitest'
import { checkStanding, type StandingFacts, standingOf } from '../../../domain/account/standing.ts'

const AT = new Date('2026-01-01T00:00:00Z')
const facts = (more: Partial<StandingFacts>): StandingFacts => ({
  suspendedForPaymentAt: null,
  suspendedByStaffAt: null,
  requiresBillingApproval: false,
  hasPaymentMethod: true,
  hasLiveCredit: false,
  ...more,
})

test.each<readonly [string, Partial<StandingFacts>, string | null]>([
  ['with a payment method', {}, null],
  ['without one', { hasPaymentMethod: false }, 'payment_method_required'],
  ['with credit instead', { hasPaymentMethod: false, hasLiveCredit: true }, null],
  ['that needs approval', { requiresBillingApproval: true }, 'owner_approval_required'],
  ['that needs approval and has credit', { requiresBillingApproval: true, hasLiveCredit: true }, null],
  [
    'that needs approval and a payment method',
    { requiresBillingApproval: true, hasPaymentMethod: false },
    'payment_method_required',
  ],
  ['that has not paid', { suspendedForPaymentAt: AT }, 'account_suspended'],
  ['that the staff has suspended', { suspendedByStaffAt: AT }, 'account_suspended'],
  ['that is suspended and has credit', { suspendedByStaffAt: AT, hasLiveCredit: true }, 'account_suspended'],
])('an account %s', (_which, more, reason) => {
  const standing = standingOf(facts(more))
  expect(standing).toEqual({ canCreateResources: reason === null, reason })
  const check = () => checkStanding(standing)
  if (reason === null) expect(check).not.toThrow()
  else expect(check).toThrow(expect.objectContaining({ status: 402, members: { reason } }))
})
