/** Support sessions that are open. They are opened on the page of an account. */
import { LifeBuoy } from 'lucide-react'
import { noun } from '../../nouns/noun.ts'

export const supportSession = noun({
  name: 'support_session',
  area: 'accounts',
  icon: LifeBuoy,
  path: '/support-sessions',
  list: 'list_support_sessions',
  titleOf: ({ staff_email: email }) => email,
  columns: ['account_id', 'mode', 'reason', 'ticket', 'created_at', 'expires_at'],
  facts: ['account_id', 'staff_email', 'mode', 'reason', 'ticket', 'created_at', 'redeemed_at', 'expires_at'],
  actions: [{ operation: 'end_support_session', isFirst: true, confirm: {} }],
})
