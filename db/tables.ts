/** The tables as kysely sees them. Names and columns are those of the migrations. */
import type { ColumnType, Generated } from 'kysely'
import type { AddressFamily } from '../domain/addresses.ts'
import type { AuditChange } from '../domain/audit.ts'
import type { PoolState, PoolUse } from '../domain/public-pool.ts'
import type { IdentityTables } from './identity-tables.ts'

/** timestamptz: read as Date, written as Date. */
type Instant = ColumnType<Date, Date, Date>
type OptionalInstant = ColumnType<Date | null, Date | null | undefined, Date | null>
/** bigint: read as number (the pool parses it; every count here stays below 2^53). */
type Count = ColumnType<number, number | undefined, number>
type Json<T> = ColumnType<T, string, string>

interface CounterColumns {
  network_received_bytes: Count
  network_transmitted_bytes: Count
  disk_read_bytes: Count
  disk_written_bytes: Count
  disk_read_operations: Count
  disk_write_operations: Count
}

export interface Tables extends IdentityTables {
  account: {
    id: string
    name: string
    created_at: Instant
    suspended_for_payment_at: OptionalInstant
    suspended_by_staff_at: OptionalInstant
    requires_billing_approval: Generated<boolean>
    requires_second_factor: Generated<boolean>
    /** When it was asked for; null while it is not. */
    second_factor_required_since: OptionalInstant
  }
  app_user: {
    id: string
    email: string
    name: string | null
    password_hash: string | null
    password_generation: Generated<number>
    email_verified_at: OptionalInstant
    disabled_at: OptionalInstant
    own_account_id: string | null
    active_account_id: string
    created_at: Instant
  }
  membership: {
    account_id: string
    user_id: string
    role: 'owner' | 'admin' | 'member' | 'viewer'
    joined_at: Instant
    last_active_at: OptionalInstant
  }
  session: {
    id: string
    secret_hash: Buffer
    user_id: string
    created_at: Instant
    last_seen_at: Instant
    expires_at: Instant
    user_agent: Generated<string>
    source_ip: Generated<string>
    /** A second factor was proven in it. */
    has_second_factor: Generated<boolean>
  }
  api_token: {
    id: string
    account_id: string
    user_id: string
    name: string
    secret_hash: Buffer
    token_hint: string
    scope: Json<'read' | 'read_write' | string[]>
    allowed_cidrs: ColumnType<string[], string | undefined, string>
    created_at: Instant
    expires_at: OptionalInstant
    last_used_at: OptionalInstant
    last_used_ip: string | null
    revoked_at: OptionalInstant
  }
  email_token: {
    secret_hash: Buffer
    user_id: string
    purpose: 'verify_email' | 'reset_password'
    email: string
    created_at: Instant
    expires_at: Instant
    used_at: OptionalInstant
  }
  email_outbox: {
    id: string
    recipient: string
    subject: string
    body: string
    created_at: Instant
    next_attempt_at: Instant
    attempts: Generated<number>
    last_error: string | null
    sent_at: OptionalInstant
  }
  credit: {
    id: string
    account_id: string
    label: string
    source: 'sign_up' | 'coupon' | 'staff'
    amount_cents: Count
    created_at: Instant
    expires_at: OptionalInstant
    revoked_at: OptionalInstant
    coupon_id: ColumnType<string | null, string | null | undefined, string | null>
    spent_cents: Count
  }
  rate_limit: { key: string; points: Generated<number>; expire: number | null }
  lockout: {
    subject: string
    failures: number
    window_started_at: Instant
    locks: Generated<number>
    locked_until: OptionalInstant
  }
  audit_head: {
    account_id: string
    sequence: Count
    entry_hash: string
    pruned_through_sequence: Count
    pruned_through_hash: string
    verified_through_sequence: Count
    verified_through_hash: string
    verified_at: OptionalInstant
    break_sequence: number | null
    break_id: string | null
    break_reason: string | null
  }
  audit_entry: {
    account_id: string
    sequence: Count
    id: string
    at: Instant
    action: string
    request_id: string
    body: string
    previous_hash: string
    entry_hash: string
  }
  account_quota: { account_id: string; name: string; limit: Count; used: Count }
  quota_holding: { account_id: string; holder: string; name: string; amount: Count }
  node_capacity: {
    node: string
    zone: string
    rack: string
    cpu_pool: string | null
    dedicated_account_id: string | null
    is_schedulable: boolean
    cores: Count
    memory_mebibytes: Count
    storage_gibibytes: Count
    cores_used: Count
    memory_mebibytes_used: Count
    storage_gibibytes_used: Count
  }
  placement: {
    account_id: string
    server_id: string
    zone: string
    node: string
    cores: Count
    memory_mebibytes: Count
    storage_gibibytes: Count
    claimed_at: Instant
    group_id: ColumnType<string | null, string | null | undefined, never>
  }
  server_group: {
    account_id: string
    id: string
    name: string
    zone: string | null
    region: string
    spread: 'host' | 'rack' | 'zone'
    is_strict: boolean
    generation: Count
    created_at: Instant
  }
  size_change: {
    account_id: string
    server_id: string
    operation_id: string
    cores_before: Count
    memory_mebibytes_before: Count
    storage_gibibytes_before: Count
    cores_after: Count
    memory_mebibytes_after: Count
    storage_gibibytes_after: Count
    began_at: Instant
  }
  placement_target: {
    account_id: string
    server_id: string
    operation_id: string
    zone: string
    node: string
    cores: Count
    memory_mebibytes: Count
    storage_gibibytes: Count
    reserved_at: Instant
  }
  address_claim: { kind: string; scope: string; value: string; account_id: string; holder: string; claimed_at: Instant }
  change_intent: {
    operation_id: string
    account_id: string
    resource_type: string
    resource_id: string
    created_at: Instant
    audit: Json<object>
  }
  recent_write: {
    account_id: string
    resource_type: string
    resource_id: string
    resource_version: Count
    written_at: Instant
  }
  kubernetes_request: {
    uid: string
    action: string
    generation: Count
    username: string
    requested_at: Instant
    changes: Json<AuditChange[]>
  }
  operation_history: {
    id: string
    account_id: string | null
    kind: string
    status: string
    target_type: string
    target_id: string
    created_at: Instant
    finished_at: Instant
    body: Json<object>
  }
  ssh_key: {
    id: string
    account_id: string
    name: string
    public_key: string
    fingerprint: string
    created_at: Instant
  }
  init_script: {
    id: string
    account_id: string
    name: string
    content: string
    generation: Count
    created_at: Instant
    updated_at: Instant
  }
  console_session: { account_id: string; server_id: string; session_id: string; opened_at: Instant }
  idempotency_key: {
    account_id: string
    key: string
    request_hash: string
    created_at: Instant
    status: number | null
    body: string | null
  }
  usage_reading: CounterColumns & { epoch: string; seen_at: Instant }
  server_metric: CounterColumns & { server_uid: string; step_seconds: number; at: Instant }
  network_transfer: {
    account_id: string
    date: ColumnType<Date, string, string>
    server_id: string
    server_name: string
    received_bytes: Count
    transmitted_bytes: Count
  }
  public_pool: {
    id: string
    zone: string
    family: AddressFamily
    cidr: string
    use: PoolUse
    gateway: string | null
    state: PoolState
    total: Count
    next_index: Count
  }
  public_address: {
    pool_id: string
    index: Count
    use: PoolUse
    address: string
    account_id: string | null
    holder: string | null
    is_current: boolean
    released_number: ColumnType<number | null, never, number | null>
  }
  deployment_secret: { name: string; value: Buffer; created_at: Instant }
}
