/** The tables of the second migration: second factors, invitations, identities, organisations, coupons, support, staff.
 */
import type { ColumnType, Generated } from 'kysely'

type Instant = ColumnType<Date, Date, Date>
type OptionalInstant = ColumnType<Date | null, Date | null | undefined, Date | null>
type Count = ColumnType<number, number | undefined, number>

export interface IdentityTables {
  second_factor: {
    user_id: string
    sealed_secret: string
    created_at: Instant
    expires_at: OptionalInstant
    enabled_at: OptionalInstant
    last_step: number | null
  }
  recovery_code: { user_id: string; code_hash: Buffer; used_at: OptionalInstant }
  invitation: {
    id: string
    account_id: string
    email: string
    role: 'admin' | 'member' | 'viewer'
    state: 'pending' | 'accepted' | 'revoked'
    secret_hash: Buffer
    invited_by_email: string
    created_at: Instant
    expires_at: Instant
    decided_at: OptionalInstant
  }
  linked_identity: {
    id: string
    user_id: string
    issuer: string
    subject: string
    provider: string
    linked_at: Instant
    last_login_at: OptionalInstant
  }
  coupon: {
    id: string
    code: string
    label: string
    amount_cents: Count
    valid_from: OptionalInstant
    valid_until: OptionalInstant
    max_redemptions: number | null
    redemptions: Generated<number>
    credit_days: number | null
    is_active: Generated<boolean>
    created_at: Instant
  }
  coupon_attempt: { id: string; account_id: string; at: Instant; code_hint: string; outcome: string }
  support_consent: {
    id: string
    account_id: string
    mode: 'read_only' | 'elevated'
    granted_by_email: string
    reference: string | null
    created_at: Instant
    expires_at: Instant
    revoked_at: OptionalInstant
  }
  support_session: {
    id: string
    account_id: string
    consent_id: string | null
    staff_id: string
    staff_email: string
    staff_name: string
    mode: 'read_only' | 'elevated'
    reason: string
    ticket: string | null
    code_hash: Buffer
    code_expires_at: Instant
    secret_hash: Buffer | null
    created_at: Instant
    redeemed_at: OptionalInstant
    expires_at: Instant
    ended_at: OptionalInstant
    user_id: string
  }
  staff_user: {
    id: string
    email: string
    name: string
    role: 'support' | 'finance' | 'operations'
    password_hash: string | null
    password_generation: Generated<number>
    sealed_secret: string | null
    enabled_at: OptionalInstant
    last_step: number | null
    disabled_at: OptionalInstant
    created_at: Instant
  }
  staff_session: {
    id: string
    secret_hash: Buffer
    staff_id: string
    created_at: Instant
    last_seen_at: Instant
    expires_at: Instant
  }
  organisation: {
    id: string
    name: string
    account_id: string | null
    linked_at: OptionalInstant
    is_synced: Generated<boolean>
  }
  organisation_membership: {
    organisation_id: string
    user_id: string
    platform_role: string
    role: 'owner' | 'admin' | 'member' | 'viewer'
    confirmed_at: Instant
    is_listed: Generated<boolean>
  }
}
