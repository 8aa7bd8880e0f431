/** The input and output of a handler. Knows no noun: `transaction` is the transaction type of the application's
 *  database. */
import type { ClusterScope, Permission, Role, StaffRole, SupportMode } from '../../domain/permissions.ts'
import type { BodyOf, ParamsOf, QueryOf, Route } from './route.ts'

/** The caller, after authentication. */
export type Caller = { readonly kind: 'public' } | Customer | Operator

/** A person who operates the cloud: with a token of the management cluster, or a member of the staff with a session. */
export interface Operator {
  readonly kind: 'operator'
  readonly name: string
  readonly actor: string
  readonly roles: readonly StaffRole[]
  /** From the management cluster; empty for staff sessions. */
  readonly groups: readonly string[]
  /** Set for staff sessions. */
  readonly staff?: {
    readonly id: string
    readonly email: string
    readonly name: string
    readonly sessionId: string
    readonly csrfToken: string
  }
}

export interface Customer {
  readonly kind: 'session' | 'token'
  readonly accountId: string
  /** Empty for a cluster, as its address is. */
  readonly userId: string
  readonly email: string
  readonly role: Role
  readonly permissions: readonly Permission[]
  readonly isEmailVerified: boolean
  /** Set for API tokens. */
  readonly token?: {
    readonly id: string
    readonly name: string
    readonly scope: 'read' | 'read_write' | readonly Permission[]
  }
  /** Set when a cluster calls with its own token: the areas that the token is for. It represents no person. */
  readonly clusterScopes?: readonly ClusterScope[]
  /** Set for portal sessions. */
  readonly session?: { readonly id: string; readonly csrfToken: string; readonly expiresAt: Date }
  /** Set for support sessions. */
  readonly support?: {
    readonly staffId: string
    readonly staffEmail: string
    readonly staffName: string
    readonly reason: string
    readonly mode: SupportMode
    readonly expiresAt: Date
  }
  /** In the form of operations: `user:<id>` or `token:<name>`. */
  readonly actor: string
}

export interface RequestFacts {
  readonly requestId: string
  /** Takes trusted proxies into account. */
  readonly sourceIp: string
  readonly userAgent: string
  /** A header by its lower-case name. */
  header(name: string): string | undefined
  cookie(name: string): string | undefined
  /** Aborts when the client disconnects or the server stops. */
  readonly signal: AbortSignal
}

export interface Call<R extends Route = Route, C extends Caller = Caller> {
  readonly route: R
  readonly caller: C
  readonly params: ParamsOf<R>
  readonly query: QueryOf<R>
  readonly body: BodyOf<R>
  readonly request: RequestFacts
  readonly now: Date
  /** The audit log's name of the request, accepted or refused: the route's action, until the handler knows which of the
   *  route's changes it is. */
  readonly audited: { as: string | null }
}

/** The answer of a handler. `body` is checked against the route's schema in tests. */
export type Answer =
  | {
      readonly status: number
      readonly body?: unknown
      readonly headers?: AnswerHeaders
      readonly cookies?: readonly Cookie[]
    }
  /** JSON that is encoded already: lists are joined from fragments that were encoded once per object. */
  | { readonly status: 200; readonly json: Uint8Array; readonly headers?: AnswerHeaders }
  /** A stream of bytes (console stream, export), in the route's media type. */
  | { readonly status: 200; readonly stream: AsyncIterable<string | Uint8Array>; readonly headers?: AnswerHeaders }

/** Names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string>>

export interface Cookie {
  readonly name: string
  readonly value: string
  readonly maxAgeSeconds: number
  readonly isHttpOnly: boolean
}

export type Handler<R extends Route = Route, C extends Caller = Caller> = (call: Call<R, C>) => Promise<Answer>
