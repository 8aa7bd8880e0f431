/** Second factors, invitations, linked identities, organisations, coupons, support sessions, staff. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  // One authenticator per person: pending until its first code, then enabled. `last_step` is the newest time step that
  // was accepted.
  `create table second_factor (
     user_id uuid primary key references app_user (id) on delete cascade,
     sealed_secret text not null,
     created_at timestamptz not null,
     expires_at timestamptz,
     enabled_at timestamptz,
     last_step bigint
   )`,
  `create table recovery_code (
     user_id uuid not null references app_user (id) on delete cascade,
     code_hash bytea not null,
     used_at timestamptz,
     primary key (user_id, code_hash)
   )`,
  `create table invitation (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     email text not null check (email = lower(email)),
     role text not null check (role in ('admin', 'member', 'viewer')),
     state text not null check (state in ('pending', 'accepted', 'revoked')),
     secret_hash bytea not null unique,
     invited_by_email text not null,
     created_at timestamptz not null,
     expires_at timestamptz not null,
     decided_at timestamptz
   )`,
  `create index invitation_account on invitation (account_id, created_at desc)`,
  `create index invitation_email on invitation (email) where state = 'pending'`,
  `create table linked_identity (
     id uuid primary key,
     user_id uuid not null references app_user (id) on delete cascade,
     issuer text not null,
     subject text not null,
     provider text not null,
     linked_at timestamptz not null,
     last_login_at timestamptz,
     unique (issuer, subject)
   )`,
  `create index linked_identity_user on linked_identity (user_id)`,
  `create table coupon (
     id uuid primary key,
     code text not null unique check (code = lower(code)),
     label text not null,
     amount_cents bigint not null check (amount_cents > 0),
     valid_from timestamptz,
     valid_until timestamptz,
     max_redemptions integer,
     redemptions integer not null default 0,
     credit_days integer,
     is_active boolean not null default true,
     created_at timestamptz not null
   )`,
  `alter table credit add column coupon_id uuid references coupon (id)`,
  'alter table credit add column spent_cents bigint not null default 0 check (spent_cents >= 0 and spent_cents ' +
    '<= amount_cents)',
  `create unique index credit_coupon_once on credit (account_id, coupon_id) where coupon_id is not null`,
  `create table coupon_attempt (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     at timestamptz not null,
     code_hint text not null,
     outcome text not null
   )`,
  `create index coupon_attempt_account on coupon_attempt (account_id, at desc)`,
  `create table support_consent (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     mode text not null check (mode in ('read_only', 'elevated')),
     granted_by_email text not null,
     reference text,
     created_at timestamptz not null,
     expires_at timestamptz not null,
     revoked_at timestamptz
   )`,
  `create index support_consent_account on support_consent (account_id, created_at desc)`,
  `create table staff_user (
     id uuid primary key,
     email text not null unique check (email = lower(email)),
     name text not null,
     role text not null check (role in ('support', 'finance', 'operations')),
     password_hash text,
     password_generation integer not null default 0,
     sealed_secret text,
     enabled_at timestamptz,
     last_step bigint,
     disabled_at timestamptz,
     created_at timestamptz not null
   )`,
  `create table staff_session (
     id uuid primary key,
     secret_hash bytea not null unique,
     staff_id uuid not null references staff_user (id) on delete cascade,
     created_at timestamptz not null,
     last_seen_at timestamptz not null,
     expires_at timestamptz not null
   )`,
  // Issued with a code, active from its redemption, ended by expiry, staff, the customer or itself. It acts as the
  // owner.
  `create table support_session (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     user_id uuid not null references app_user (id) on delete cascade,
     consent_id uuid references support_consent (id),
     staff_id uuid not null,
     staff_email text not null,
     staff_name text not null,
     mode text not null check (mode in ('read_only', 'elevated')),
     reason text not null,
     ticket text,
     code_hash bytea not null unique,
     code_expires_at timestamptz not null,
     secret_hash bytea unique,
     created_at timestamptz not null,
     redeemed_at timestamptz,
     expires_at timestamptz not null,
     ended_at timestamptz
   )`,
  `create index support_session_account on support_session (account_id, created_at desc)`,
  `create table staff_audit_entry (
     id uuid primary key,
     at timestamptz not null,
     actor_email text not null,
     actor_kind text not null,
     staff_id uuid,
     account_id uuid,
     action text not null,
     body jsonb not null
   )`,
  `create index staff_audit_entry_at on staff_audit_entry (at desc, id desc)`,
  `create table organisation (
     id uuid primary key,
     name text not null,
     account_id uuid unique references account (id) on delete set null,
     linked_at timestamptz,
     is_synced boolean not null default false
   )`,
  // What the platform said about a person at their last sign-in with it.
  `create table organisation_membership (
     organisation_id uuid not null references organisation (id) on delete cascade,
     user_id uuid not null references app_user (id) on delete cascade,
     platform_role text not null,
     role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
     confirmed_at timestamptz not null,
     is_listed boolean not null default true,
     primary key (organisation_id, user_id)
   )`,
  `create index organisation_membership_user on organisation_membership (user_id)`,
]
