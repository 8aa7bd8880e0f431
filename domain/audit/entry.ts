/** The content of an audit entry before it is sealed into its account's chain. Names are the contract's. */

export interface AuditChange {
  readonly field: string
  readonly before: unknown
  readonly after: unknown
}

export type AuditOutcome = 'success' | 'denied' | 'failed'
export type AuditActorKind = 'user' | 'token' | 'staff' | 'operator' | 'system'

/** Everything but what sealing adds (id, sequence, time, hashes). `detail` is strings only and never a secret. */
export interface UnsealedAuditEntry {
  readonly account_id: string
  /** The person; the operator's identity string for operator actions; `system:<component>` for the platform. */
  readonly actor_email: string
  readonly actor_kind: AuditActorKind
  readonly user_id: string | null
  readonly staff_id: string | null
  readonly token_id: string | null
  readonly token_name: string | null
  readonly action: string
  readonly resource_type: string
  readonly resource_id: string
  readonly detail: Readonly<Record<string, string>>
  readonly outcome: AuditOutcome
  /** Empty for platform events. */
  readonly source_ip: string
  readonly user_agent: string
  /** Empty for platform events. At most one entry of an action exists for each request id of an account. */
  readonly request_id: string
  readonly changes: readonly AuditChange[]
}
