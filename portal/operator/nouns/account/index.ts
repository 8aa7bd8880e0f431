/** Accounts of customers, as staff see them. */
import { Building2 } from 'lucide-react'
import { lazy } from 'react'
import { noun } from '../../../nouns/noun.ts'
import { o } from '../../texts/index.ts'
import { EUROS } from '../euros.tsx'

export const account = noun({
  name: 'account',
  area: 'accounts',
  icon: Building2,
  path: '/accounts',
  list: 'list_accounts_as_staff',
  read: 'get_account_as_staff',
  titleOf: ({ name }) => name,
  stateOf: ({ suspended_by_staff_at: byStaff, suspended_for_payment_at: forPayment }) =>
    byStaff !== null ? 'suspended_by_staff' : forPayment !== null ? 'suspended_for_payment' : 'good_standing',
  looks: { good_standing: 'good', suspended_by_staff: 'bad', suspended_for_payment: 'bad' },
  columns: ['owner_email', 'member_count', 'credit_balance_cents', 'created_at'],
  facts: [
    'owner_email',
    'member_count',
    'credit_balance_cents',
    'requires_second_factor',
    'suspended_by_staff_at',
    'suspended_for_payment_at',
    'created_at',
  ],
  actions: [
    {
      operation: 'grant_credit',
      isFirst: true,
      confirm: {},
      form: [
        { name: 'amount_cents', ...EUROS },
        { name: 'label' },
        { name: 'expires_at', note: () => o().account.never },
      ],
    },
    {
      operation: 'suspend_account',
      why: ({ suspended_by_staff_at: at }) => (at === null ? undefined : o().account.isSuspended),
      confirm: {
        type: ({ name }) => name,
        goes: () => [o().account.goesCreate],
        stays: () => [o().account.staysRunning],
      },
      form: [{ name: 'reason' }],
    },
    {
      operation: 'unsuspend_account',
      why: ({ suspended_by_staff_at: at }) => (at === null ? o().account.notSuspended : undefined),
      confirm: {},
    },
  ],
  // granting shows among the credits
  reads: ['list_account_credits'],
  tabs: [
    {
      id: 'people',
      name: () => o().account.people,
      view: lazy(async () => ({ default: (await import('./people.tsx')).AccountPeople })),
    },
    {
      id: 'credits',
      name: () => o().account.credits,
      view: lazy(async () => ({ default: (await import('./credits.tsx')).AccountCredits })),
    },
    {
      id: 'quotas',
      name: () => o().account.quotas,
      view: lazy(async () => ({ default: (await import('./parts.tsx')).AccountQuotas })),
    },
    {
      id: 'support',
      name: () => o().account.support,
      view: lazy(async () => ({ default: (await import('./parts.tsx')).AccountSupport })),
    },
  ],
})
