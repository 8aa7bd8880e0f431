/** Coupons: codes that customers redeem for credit. */
import { Ticket } from 'lucide-react'
import { type FormField, noun } from '../../nouns/noun.ts'
import { o } from '../texts/index.ts'
import { EUROS } from './euros.tsx'

const never = (): string => o().account.never

const terms = [
  { name: 'max_redemptions' },
  { name: 'credit_days' },
  { name: 'valid_from', note: () => o().account.fromNow },
  { name: 'valid_until', note: never },
  { name: 'is_active' },
] as const satisfies readonly FormField[]

export const coupon = noun({
  name: 'coupon',
  area: 'accounts',
  icon: Ticket,
  path: '/coupons',
  list: 'list_coupons',
  create: 'create_coupon',
  member: 'coupon',
  titleOf: ({ code }) => code,
  stateOf: ({ is_active: isActive }) => (isActive ? 'active' : 'inactive'),
  looks: { active: 'good', inactive: 'off' },
  columns: ['amount_cents', 'redemptions', 'max_redemptions', 'valid_until', 'created_at'],
  facts: [
    'label',
    'amount_cents',
    'redemptions',
    'max_redemptions',
    'credit_days',
    'valid_from',
    'valid_until',
    'created_at',
  ],
  form: [{ name: 'code' }, { name: 'amount_cents', ...EUROS }, ...terms],
  initial: { is_active: true },
  actions: [
    {
      operation: 'update_coupon',
      form: terms,
      isFirst: true,
      initial: ({ max_redemptions, credit_days, valid_from, valid_until, is_active }) => ({
        max_redemptions,
        credit_days,
        valid_from,
        valid_until,
        is_active,
      }),
    },
  ],
})
