/** The pages of settings, in the order of their tabs. */
import {
  CreditCard,
  Gauge,
  KeySquare,
  LifeBuoy,
  type LucideIcon,
  MonitorSmartphone,
  ShieldCheck,
  Users,
  Warehouse,
} from 'lucide-react'
import { t } from '../texts/index.ts'

export interface SettingsPage {
  readonly id: 'members' | 'tokens' | 'sessions' | 'security' | 'billing' | 'quotas' | 'support' | 'private-cloud'
  readonly path: `/settings/${string}`
  readonly name: () => string
  readonly icon: LucideIcon
}

export const SETTINGS_PAGES: readonly SettingsPage[] = [
  { id: 'members', path: '/settings/members', name: () => t().account.members, icon: Users },
  { id: 'tokens', path: '/settings/tokens', name: () => t().account.tokens, icon: KeySquare },
  { id: 'sessions', path: '/settings/sessions', name: () => t().account.sessions, icon: MonitorSmartphone },
  { id: 'security', path: '/settings/security', name: () => t().account.security, icon: ShieldCheck },
  { id: 'billing', path: '/settings/billing', name: () => t().account.billing, icon: CreditCard },
  { id: 'quotas', path: '/settings/quotas', name: () => t().account.quotas, icon: Gauge },
  { id: 'support', path: '/settings/support', name: () => t().account.support, icon: LifeBuoy },
  { id: 'private-cloud', path: '/settings/private-cloud', name: () => t().account.privateCloud, icon: Warehouse },
]
