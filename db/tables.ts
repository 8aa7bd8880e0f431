/** The tables as kysely sees them. Names and columns are those of the migrations. */
import type { ColumnType, Generated } from 'kysely'
import type { AddressFamily } from '../domain/network/addresses.ts'
import type { AuditChange } from '../domain/audit/entry.ts'
import type { DatabaseOrigin } from '../domain/database/rules.ts'
import type { ClusterScope } from '../domain/permissions.ts'
import type { EndReason } from '../domain/playground/rules.ts'
import type { PrivateCloudState } from '../domain/private-cloud/rules.ts'
import type { QuotaRequestState } from '../domain/quota-request/rules.ts'
import type { PublicPoolState, PoolUse } from '../domain/public-pool/rules.ts'
import type { IdentityTables } from './identity-tables.ts'

/** timestamptz: read as Date, written as Date. */
type Instant = ColumnType<Date, Date, Date>
type OptionalInstant = ColumnType<Date | null, Date | null | undefined, Date | null>
/** bigint: read as number (the pool parses it; every count here stays below 2^53). */
type Count = ColumnType<number, number | undefined, number>
/** Computed by PostgreSQL from other columns of the row. */
type ComputedColumn = ColumnType<number, never, never>
/** The progress of the move of an object storage, for the process that continues it. */
export interface ObjectStorageMove {
  readonly operationId: string
  /** Copied while clients write; frozen, until no request is under way; compared; cleaned of deleted objects; compared
   *  again; and verified. */
  readonly phase: 'live' | 'frozen' | 'exact' | 'prune' | 'check' | 'verified'
  /** Passes of the phase `live` that have started. */
  readonly pass: number
  /** The position of the pass. */
  readonly place: { readonly bucket: string; readonly after: string }
  /** By the clock of the source: when the previous pass started, if there was one, and when this one did. */
  readonly since: string | null
  readonly begunAt: string
  /** Differences found by the pass, and what the move has copied altogether. */
  readonly changed: number
  readonly objects: number
  readonly bytes: number
  readonly frozenAt: string | null
  /** Increases with each step. */
  readonly version: number
}
type Json<T> = ColumnType<T, string, string>

/** Null: not measured. */
type MaybeCount = ColumnType<number | null, number | null | undefined, number | null>

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
    /** When it was requested; null otherwise. */
    second_factor_required_since: OptionalInstant
    /** Since when it has its namespace in Kubernetes; null until that is created. */
    namespace_made_at: OptionalInstant
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
    /** A second factor was verified in it. */
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
    /** What the mail is about; null in the mails of earlier releases, like those that follow. */
    name: ColumnType<string | null, string, string>
    fields: ColumnType<string | null, string, string | null>
    /** For somebody who has chosen none. */
    language: ColumnType<string | null, string | null, never>
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
    has_backups: Generated<boolean>
    cores: Count
    memory_mebibytes: Count
    storage_gibibytes: Count
    cores_used: Count
    memory_mebibytes_used: Count
    storage_gibibytes_used: Count
    /** The room of guests there without claims; it counts as used. */
    cores_forgotten: Count
    memory_mebibytes_forgotten: Count
    storage_gibibytes_forgotten: Count
    cores_free: ComputedColumn
    memory_mebibytes_free: ComputedColumn
    storage_gibibytes_free: ComputedColumn
    /** Sum of the free fractions of the three. */
    free_share: ComputedColumn
  }
  placement: {
    account_id: string
    server_id: string
    zone: string
    node: string
    cores: Count
    memory_mebibytes: Count
    storage_gibibytes: Count
    /** Of the attached storages, apart from the boot storage. */
    attached_gibibytes: ColumnType<number, number | undefined, number>
    claimed_at: Instant
    group_id: ColumnType<string | null, string | null | undefined, never>
    managed_by: ColumnType<string | null, string | null | undefined, never>
  }
  shared_address: {
    account_id: string
    network_id: string
    holder: string
    ipv4_address: string
    ipv6_address: string
  }
  storage_claim: {
    account_id: string
    storage_id: string
    zone: string
    size_gibibytes: Count
    phase: 'detached' | 'arriving' | 'attached' | 'leaving'
    node: string | null
    server_id: string | null
    volume: string | null
    slot: ColumnType<number | null, number | null | undefined, number | null>
    /** Room on the node is held for it in addition to that of its server. */
    has_room: ColumnType<boolean, boolean | undefined, boolean>
    is_forced: ColumnType<boolean, boolean | undefined, boolean>
    /** For a detached one that moves: the node where room is held for it until its data have arrived. */
    target_node: ColumnType<string | null, string | null | undefined, string | null>
    claimed_at: Instant
  }
  storage_hold: {
    account_id: string
    holder: string
    storage_id: string
    /** For a boot storage. */
    server_id: string | null
    is_shared: boolean
  }
  object_storage: {
    account_id: string
    id: string
    zone: string
    access_key_id: string
    sealed_secret: string
    bucket_prefix: string
    backend: 'rgw' | 'svc-s3-single'
    /** While it moves to the gateway. */
    move: ColumnType<ObjectStorageMove | null, string | null | undefined, string | null>
    /** When the gateway became its backend, if it was on the single host before. */
    moved_at: ColumnType<Date | null, Date | null | undefined, Date | null>
    used_bytes: Count
    object_count: Count
    usage_measured_at: ColumnType<Date | null, Date | null | undefined, Date | null>
    /** Increases with every change, from 1. */
    generation: Count
    created_at: Instant
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
  webhook_account: {
    account_id: string
    audit_sequence: Count
    standing: string | null
    /** The states of its resources were noted once: one without a state is new. */
    has_states: ColumnType<boolean, boolean | undefined, boolean>
    /** Since when its events are found. */
    created_at: Instant
  }
  webhook: {
    account_id: string
    id: string
    name: string
    url: string
    events: readonly string[]
    enabled: boolean
    created_at: Instant
    /** Null until somebody rotates it: a webhook that was created by kubectl, or whose row was lost. */
    sealed_secret: string | null
    sealed_previous_secret: string | null
    previous_secret_until: OptionalInstant
    failing_since: OptionalInstant
    paused_at: OptionalInstant
    pause_reason: string | null
    delivered_at: OptionalInstant
    /** Set while its deletion is accepted and not complete. */
    removed_at: OptionalInstant
  }
  audit_sink: {
    account_id: string
    id: string
    name: string
    type: 'https' | 's3'
    url: string
    /** Null for a collector, like those that follow. */
    bucket: string | null
    prefix: string | null
    region: string | null
    access_key_id: string | null
    sealed_access_key: string | null
    /** Signs batches. */
    sealed_secret: string
    enabled: boolean
    /** Increases with every change, from 1. */
    generation: Count
    created_at: Instant
    /** The last entry that has arrived, or was skipped. */
    sent_sequence: Count
    /** The last entry of the batch that was begun; null when none was. */
    batch_through: number | null
    skipped_entries: Count
    failures: Count
    failing_since: OptionalInstant
    /** When the owners were informed of the failures. */
    noticed_at: OptionalInstant
    error: string | null
    response_status: number | null
    next_attempt_at: Instant
    /** A process is sending the batch until then. */
    leased_until: OptionalInstant
    sent_at: OptionalInstant
  }
  webhook_ended_operation: { number: Generated<number>; account_id: string; operation_id: string }
  webhook_state: { account_id: string; resource_type: string; resource_id: string; state: string }
  webhook_event: {
    account_id: string
    id: string
    /** In the order in which events of an account were found. */
    number: Generated<number>
    type: string
    resource_type: string | null
    resource_id: string | null
    body: string
  }
  webhook_delivery: {
    account_id: string
    webhook_id: string
    event_id: string
    /** Of the event. */
    number: Count
    /** Events of one resource are delivered in their order; empty for an event that waits for no other. */
    resource: string
    state: 'pending' | 'delivered' | 'failed'
    attempts: Count
    /** Since it was queued: attempts of processes that were killed are none. */
    failures: Count
    created_at: Instant
    /** Null when it has ended. Processes of the release before also know by it what waits behind another one. */
    next_attempt_at: OptionalInstant
    /** Waits until another delivery of its resource has ended. */
    is_behind: Generated<boolean>
    /** Is sent to webhooks that are disabled or paused, too. */
    is_test: Generated<boolean>
    /** A process is sending it until then. */
    leased_until: OptionalInstant
    attempted_at: OptionalInstant
    ended_at: OptionalInstant
    response_status: number | null
    error: string | null
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
  network: {
    account_id: string
    id: string
    zone: string
    name: string
    ipv4_cidr: string
    ipv6_prefix: string
    is_ending: Generated<boolean>
  }
  /** At most one row. */
  database_authority: { id: Generated<number>; certificate: string; sealed_key: string }
  database: {
    account_id: string
    id: string
    zone: string
    name: string
    network_id: string
    sealed_password: string
    password_generation: Count
    certificate: string | null
    sealed_key: string | null
    /** Address that the certificate is for. */
    certificate_host: string | null
    certificate_expires_at: ColumnType<Date | null, Date | null | undefined, Date | null>
    /** Increases with every change, from 1. */
    generation: Count
  }
  /** What the platform itself stores in object storage. */
  internal_tenant: {
    purpose: 'backups' | 'clusters' | 'audit'
    /** Id of the account or cluster that owns the content; `platform` for the platform's own. */
    owner: string
    zone: string
    backend: 'rgw' | 'svc-s3-single'
    access_key_id: string
    sealed_secret: string
    bucket_prefix: string
    created_at: Date
    /** When the store first had it. */
    told_at: OptionalInstant
  }
  database_archive: {
    account_id: string
    /** Of the database, which it may outlive. */
    id: string
    zone: string
    access_key_id: string
    sealed_secret: string
    sealed_cipher_key: string
    bucket_prefix: string
    /** For an archive whose database is deleted: a description of the database. */
    origin: ColumnType<DatabaseOrigin | null, null | undefined, string>
    /** It is kept at least until then. */
    kept_until: OptionalInstant
    /** Its store is being emptied: nobody can restore from it. */
    is_ending: Generated<boolean>
  }
  /** At most one row. */
  kubernetes_issuer: {
    id: Generated<number>
    public_key: ColumnType<Readonly<Record<string, string>>, string, never>
    sealed_key: string
  }
  kubernetes_host: {
    region: string
    id: string
    created_at: Instant
    /** For a host that the platform creates: the authority of its certificate, in PEM, and its credentials; null
     *  before. */
    authority: string | null
    sealed_secrets: string | null
    /** Its address, since it answers; null before. */
    url: string | null
    registered_at: OptionalInstant
  }
  playground: {
    account_id: string
    id: string
    name: string
    region: string
    control_plane_id: string
    release: string
    app_domain: string
    endpoint: string | null
    certificate_authority: string | null
    created_at: Instant
    expires_at: Instant
    ready_at: OptionalInstant
    ended_at: OptionalInstant
    /** Nothing of it is left. */
    deleted_at: OptionalInstant
    end_reason: EndReason | null
    failure_reason: string | null
  }
  kubeconfig_grant: {
    id: string
    account_id: string
    resource_type: string
    resource_id: string
    region: string
    control_plane_id: string
    /** The token, the support session or the user. */
    holder: string
    user_id: string
    token_id: string | null
    support_session_id: string | null
    cluster_role: 'admin' | 'edit'
    account_roles: string[]
    created_at: Instant
    expires_at: Instant
    ended_at: OptionalInstant
    /** When its service account was last removed. */
    removed_at: OptionalInstant
  }
  kubernetes_token: {
    id: string
    account_id: string
    cluster_id: string
    /** Of the add-on that has it. */
    program: string
    secret_hash: Buffer
    scopes: Json<readonly ClusterScope[]>
    created_at: Instant
    expires_at: Instant
  }
  kubernetes_cluster: {
    account_id: string
    id: string
    zone: string
    region: string
    name: string
    network_id: string
    /** Its id at the host of control planes. */
    control_plane_id: string
    replicas: number
    /** The release that its control plane must run. */
    release: string
    pod_cidr: string
    service_cidr: string
  }
  kubernetes_snapshot: {
    account_id: string
    cluster_id: string
    id: string
    kind: string
    release: string
    size_bytes: number
    created_at: Instant
  }
  node_pool: { account_id: string; id: string; cluster_id: string; name: string }
  dev_cluster: { account_id: string; id: string; name: string }
  load_balancer: { account_id: string; id: string; zone: string; name: string; network_id: string }
  load_balancer_certificate: {
    account_id: string
    load_balancer_id: string
    id: string
    certificate: string
    sealed_key: string
    created_at: Instant
  }
  router: {
    account_id: string
    id: string
    zone: string
    name: string
    nat_enabled: boolean
    is_ending: Generated<boolean>
  }
  edge: {
    account_id: string
    id: string
    zone: string
    network_id: string
    /** The network's gateway to the IPv4 Internet. */
    gateway_ipv4: string | null
    gateway_ipv6: string | null
    /** The key by which clients know its bastion; both are set, or neither. */
    host_key: Generated<string | null>
    sealed_host_key: Generated<string | null>
  }
  router_network: { account_id: string; network_id: string; router_id: string; is_ending: Generated<boolean> }
  network_interface: {
    id: string
    account_id: string
    server_id: string
    network_id: string
    network_uid: string
    slot: number
    mac_address: string
    ipv4_address: string
    ipv6_address: string
    is_leaving: Generated<boolean>
    created_at: Instant
  }
  floating_ip: {
    account_id: string
    id: string
    zone: string
    server_id: string | null
    network_id: string | null
  }
  change_intent: {
    operation_id: string
    account_id: string
    resource_type: string
    resource_id: string
    created_at: Instant
    audit: Json<object>
  }
  sealing_key: { id: string; check_value: string; state: 'in_use' | 'lost'; made_at: Instant }
  process: { id: string; component: string; version: string; level: string; seen_at: Instant }
  look: { id: boolean; database: string; writer: string; at: Instant }
  host_use: {
    kind: string
    scope: string
    value: string
    account_id: string
    holder: string
    uid: string
    seen_at: Instant
  }
  removal: {
    id: string
    kind: string
    namespace: string
    name: string
    uid: string
    reason: 'deleted' | 'operator'
    ordered_at: Instant
    confirmed_at: OptionalInstant
  }
  absence: { kind: string; namespace: string; name: string; found_at: Instant; stops_sweeps: boolean }
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
    generation: Count
    created_at: Instant
  }
  backup_key: {
    account_id: string
    sealed_key: string
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
  /** Of an account, or of an operator. */
  idempotency_key: {
    account_id: string | null
    operator: string | null
    key: string
    request_hash: string
    created_at: Instant
    status: number | null
    body: string | null
  }
  /** External systems, and which process may write to each until when. */
  turn: { name: string; holder: string; ends_at: Date }
  usage_reading: CounterColumns & { epoch: string; seen_at: Instant; cpu_milliseconds: MaybeCount }
  server_metric: CounterColumns & {
    server_uid: string
    step_seconds: number
    at: Instant
    cpu_milliseconds: MaybeCount
    memory_used_bytes: MaybeCount
  }
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
    state: PublicPoolState
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
  price: { resource_type: string; plan: string; valid_from: Instant; unit_millicents: Count }
  billed_resource: {
    id: Generated<number>
    account_id: string
    resource_type: string
    uid: string
    resource_id: string
    name: string
  }
  billed_life: {
    id: Generated<number>
    resource: Count
    account_id: string
    plan: string
    quantity: Count
    since: Instant
    until: OptionalInstant
    metered_until: Instant
  }
  usage_hour: { resource: Count; hour: Instant; life: Count; monthly_cents: Count }
  usage_day: {
    account_id: string
    date: ColumnType<Date, string, string>
    life: Count
    monthly_cents: Count
    resource: Count
    first_hour: number
    hours: number
  }
  metering: {
    is_only: Generated<boolean>
    looked_at: OptionalInstant
    metered_through: OptionalInstant
    closed_until: Instant
  }
  invoice: {
    id: string
    account_id: string
    period: string
    period_start: Instant
    period_end: Instant
    currency: string
    total_cents: Count
    credit_applied_cents: Count
    payment_status: 'unbilled' | 'open' | 'paid' | 'overdue'
    hosted_invoice_url: ColumnType<string | null, string | null | undefined, string | null>
    created_at: Instant
    /** Of the invoice at the payment processor. */
    processor_id: ColumnType<string | null, string | null | undefined, string | null>
    /** Since the first failed charge; null unless the status is overdue. */
    overdue_since: OptionalInstant
  }
  invoice_line: {
    invoice_id: string
    position: number
    kind: 'usage' | 'credit'
    resource_type: string
    resource_id: string
    name: string
    plan: string
    hours: number
    amount_cents: Count
    cap_cents: Count
  }
  credit_application: { invoice_id: string; credit_id: string; amount_cents: Count }
  invoice_run: { period: string; account_count: number; started_at: Instant; finished_at: OptionalInstant }
  invoice_task: {
    period: string
    account_id: string
    attempts: Generated<number>
    next_attempt_at: Instant
    last_error: string | null
  }
  payment_customer: {
    account_id: string
    customer_id: string
    default_method_id: ColumnType<string | null, string | null | undefined, string | null>
    default_method_expires_at: OptionalInstant
    created_at: Instant
  }
  invoice_push: {
    invoice_id: string
    key_generation: Generated<number>
    key_since: OptionalInstant
    attempts: Generated<number>
    next_attempt_at: Instant
    last_error: ColumnType<string | null, string | null | undefined, string | null>
  }
  payment_event: {
    id: string
    type: string
    processor_invoice_id: string | null
    customer_id: string | null
    received_at: Instant
    processed_at: OptionalInstant
    attempts: Generated<number>
    next_attempt_at: Instant
    last_error: ColumnType<string | null, string | null | undefined, string | null>
  }
  payment_comparison: { is_only: Generated<boolean>; compared_at: OptionalInstant; due_at: Instant }
  payment_difference: { subject: string; kind: string; detail: string; found_at: Instant }
  private_cloud_request: {
    id: string
    account_id: string
    state: PrivateCloudState
    vcpus: number
    memory_gibibytes: number
    disk_gigabytes: number
    region: string | null
    notes: string
    staff_reason: ColumnType<string | null, string | null | undefined, string | null>
    requested_by_email: string
    created_at: Instant
    updated_at: Instant
    decided_at: OptionalInstant
  }
  quota_request: {
    id: string
    account_id: string
    state: QuotaRequestState
    name: string
    limit: Count
    reason: string
    granted_limit: ColumnType<number | null, number | null | undefined, number | null>
    staff_reason: ColumnType<string | null, string | null | undefined, string | null>
    requested_by_email: string
    created_at: Instant
    updated_at: Instant
    decided_at: OptionalInstant
  }
  /** What a person has set for the portal, as JSON. */
  user_preference: { user_id: string; preferences: string; generation: Count; updated_at: Instant }
  notice_dismissal: { user_id: string; account_id: string; notice_id: string; dismissed_at: Instant }
  /** Nodes that were assigned to an account and whose objects do not show it yet. */
  node_dedication: { node: string; account_id: string }
  deployment_secret: { name: string; value: Buffer; created_at: Instant }
}
