/** The first tables: accounts and people, credentials, mail, limits, audit, operations, quotas and claims. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await sql.raw(statement).execute(db)
}

const STATEMENTS = [
  `create table account (
     id uuid primary key,
     name text not null,
     created_at timestamptz not null,
     suspended_for_payment_at timestamptz,
     suspended_by_staff_at timestamptz,
     requires_billing_approval boolean not null default false,
     requires_second_factor boolean not null default false
   )`,
  `create table app_user (
     id uuid primary key,
     email text not null unique check (email = lower(email)),
     name text,
     password_hash text,
     password_generation integer not null default 0,
     email_verified_at timestamptz,
     disabled_at timestamptz,
     own_account_id uuid references account (id),
     active_account_id uuid not null references account (id),
     created_at timestamptz not null
   )`,
  `create table membership (
     account_id uuid not null references account (id) on delete cascade,
     user_id uuid not null references app_user (id) on delete cascade,
     role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
     joined_at timestamptz not null,
     last_active_at timestamptz,
     primary key (account_id, user_id)
   )`,
  `create index membership_user on membership (user_id)`,
  // Sessions and tokens are found by the SHA-256 of the secret; the secret itself is nowhere.
  `create table session (
     id uuid primary key,
     secret_hash bytea not null unique,
     user_id uuid not null references app_user (id) on delete cascade,
     created_at timestamptz not null,
     last_seen_at timestamptz not null,
     expires_at timestamptz not null,
     user_agent text not null default '',
     source_ip text not null default ''
   )`,
  `create index session_of_user on session (user_id)`,
  `create table api_token (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     user_id uuid not null references app_user (id) on delete cascade,
     name text not null,
     secret_hash bytea not null unique,
     token_hint text not null,
     scope jsonb not null,
     allowed_cidrs jsonb not null default '[]',
     created_at timestamptz not null,
     expires_at timestamptz,
     last_used_at timestamptz,
     last_used_ip text,
     revoked_at timestamptz
   )`,
  `create unique index api_token_name on api_token (account_id, name) where revoked_at is null`,
  `create table email_token (
     secret_hash bytea primary key,
     user_id uuid not null references app_user (id) on delete cascade,
     purpose text not null check (purpose in ('verify_email', 'reset_password')),
     email text not null,
     created_at timestamptz not null,
     expires_at timestamptz not null,
     used_at timestamptz
   )`,
  `create table email_outbox (
     id uuid primary key,
     recipient text not null,
     subject text not null,
     body text not null,
     created_at timestamptz not null,
     next_attempt_at timestamptz not null,
     attempts integer not null default 0,
     last_error text,
     sent_at timestamptz
   )`,
  `create index email_outbox_due on email_outbox (next_attempt_at) where sent_at is null`,
  `create table credit (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     label text not null,
     source text not null check (source in ('sign_up', 'coupon', 'staff')),
     amount_cents bigint not null check (amount_cents > 0),
     created_at timestamptz not null,
     expires_at timestamptz,
     revoked_at timestamptz
   )`,
  `create index credit_account on credit (account_id)`,
  // Failed sign-ins per address and email, and other windows that must hold across replicas.
  `create table rate_limit (key text primary key, points integer not null default 0, expire bigint)`,
  `create table lockout (
     subject text primary key,
     failures integer not null,
     window_started_at timestamptz not null,
     locks integer not null default 0,
     locked_until timestamptz
   )`,
  `create table audit_head (
     account_id uuid primary key,
     sequence bigint not null default 0,
     entry_hash text not null,
     pruned_through_sequence bigint not null default 0,
     pruned_through_hash text not null,
     verified_through_sequence bigint not null default 0,
     verified_through_hash text not null,
     verified_at timestamptz,
     break_sequence bigint,
     break_id uuid,
     break_reason text
   )`,
  `create table audit_entry (
     account_id uuid not null,
     sequence bigint not null,
     id uuid not null unique,
     at timestamptz not null,
     action text not null,
     request_id text not null,
     body text not null,
     previous_hash text not null,
     entry_hash text not null,
     primary key (account_id, sequence)
   )`,
  // One entry for each action of a request, however often it is retried.
  `create unique index audit_entry_once on audit_entry (account_id, request_id, action) where request_id <> ''`,
  `create table account_quota (
     account_id uuid not null references account (id) on delete cascade,
     name text not null,
     "limit" bigint not null check ("limit" >= 0),
     used bigint not null default 0 check (used >= 0),
     primary key (account_id, name)
   )`,
  // What a resource holds of its account's quotas; deleting the row gives it back, once.
  `create table quota_holding (
     account_id uuid not null,
     holder text not null,
     name text not null,
     amount bigint not null check (amount > 0),
     primary key (account_id, holder, name)
   )`,
  // Nodes as placement sees them: a mirror of the Node objects with what is claimed on them.
  `create table node_capacity (
     node text primary key,
     zone text not null,
     rack text not null,
     cpu_pool text,
     dedicated_account_id uuid,
     is_schedulable boolean not null,
     cores bigint not null,
     memory_mebibytes bigint not null,
     storage_gibibytes bigint not null,
     cores_used bigint not null default 0 check (cores_used >= 0),
     memory_mebibytes_used bigint not null default 0 check (memory_mebibytes_used >= 0),
     storage_gibibytes_used bigint not null default 0 check (storage_gibibytes_used >= 0)
   )`,
  `create index node_capacity_zone on node_capacity (zone)`,
  // What a server holds on its node. Taken before the server exists; kept until its host side is removed.
  `create table placement (
     account_id uuid not null,
     server_id text not null,
     zone text not null,
     node text not null references node_capacity (node),
     cores bigint not null,
     memory_mebibytes bigint not null,
     storage_gibibytes bigint not null,
     claimed_at timestamptz not null,
     primary key (account_id, server_id)
   )`,
  `create index placement_node on placement (node)`,
  // Addresses and names that nobody else may have: mac, hostname (scope = account and zone), later IPv4 and /64.
  `create table address_claim (
     kind text not null,
     scope text not null,
     value text not null,
     account_id uuid not null,
     holder text not null,
     claimed_at timestamptz not null,
     primary key (kind, scope, value)
   )`,
  `create index address_claim_holder on address_claim (account_id, holder)`,
  // A change that was accepted here and is about to be written to Kubernetes. Removed with its audit entry; what is
  // left over after a crash is settled by looking whether the write happened.
  `create table change_intent (
     operation_id uuid primary key,
     account_id uuid not null,
     resource_type text not null,
     resource_id text not null,
     created_at timestamptz not null,
     audit jsonb not null
   )`,
  `create index change_intent_age on change_intent (created_at)`,
  // What replicas of the API server catch up with before they answer lists.
  `create table recent_write (
     account_id uuid not null,
     resource_type text not null,
     resource_id text not null,
     resource_version bigint not null,
     written_at timestamptz not null,
     primary key (account_id, resource_type, resource_id)
   )`,
  // Who asked the Kubernetes API for a change that the webhook let pass.
  `create table kubernetes_request (
     uid text not null,
     action text not null,
     generation bigint not null,
     username text not null,
     requested_at timestamptz not null,
     changes jsonb not null,
     primary key (uid, action, generation)
   )`,
  `create index kubernetes_request_age on kubernetes_request (requested_at)`,
  `create table operation_history (
     id uuid primary key,
     account_id uuid,
     kind text not null,
     status text not null,
     target_type text not null,
     target_id text not null,
     created_at timestamptz not null,
     finished_at timestamptz not null,
     body jsonb not null
   )`,
  `create index operation_history_account on operation_history (account_id, created_at desc, id)`,
  `create table ssh_key (
     id uuid primary key,
     account_id uuid not null references account (id) on delete cascade,
     name text not null,
     public_key text not null,
     fingerprint text not null,
     created_at timestamptz not null,
     unique (account_id, name),
     unique (account_id, fingerprint)
   )`,
  // Console sessions whose first input has been audited.
  `create table console_session (
     account_id uuid not null references account (id) on delete cascade,
     server_id text not null,
     session_id uuid not null,
     opened_at timestamptz not null,
     primary key (account_id, server_id, session_id)
   )`,
  `create index console_session_age on console_session (opened_at)`,
  // Requests that may be sent twice, and what they were answered; without a status they are open.
  `create table idempotency_key (
     account_id uuid not null references account (id) on delete cascade,
     key uuid not null,
     request_hash text not null,
     created_at timestamptz not null,
     status integer,
     body text,
     primary key (account_id, key)
   )`,
  `create index idempotency_key_age on idempotency_key (created_at)`,
  // Keys that the deployment makes for itself on first start (cursor signing, CSRF, sealing), wrapped by configuration
  // when given.
  `create table deployment_secret (name text primary key, value bytea not null, created_at timestamptz not null)`,
]
