/** Refusals: everything that the service refuses is a Problem, built by a named function here and rendered once (RFC
 *  9457). Texts are for people and safe to show; `reason` is for programs and comes from the closed set below. */

export type Reason =
  // 402
  | 'payment_method_required'
  | 'owner_approval_required'
  | 'account_suspended'
  // 403
  | 'email_unverified'
  | 'read_only_token_cannot_read_credentials'
  | 'sign_in_with_platform_required'
  | 'allowance_used'
  | 'second_factor_invalid'
  | 'second_factor_required'
  | 'address_not_allowed'
  // 409
  | 'operation_in_progress'
  | 'protected'
  | 'server_not_stopped'
  | 'in_use'
  | 'state_not_allowed'
  | 'name_taken'
  | 'zone_capability_missing'
  | 'server_stopped'
  // 422
  | 'quota_exceeded'
  | 'idempotency_key_reused'
  | 'coupon_unknown'
  | 'coupon_inactive'
  | 'coupon_not_yet_valid'
  | 'coupon_expired'
  | 'coupon_exhausted'
  | 'coupon_already_redeemed'
  // 429
  | 'rate_limited'
  // 503
  | 'no_capacity'
  | 'no_distinct_failure_domain'
  | 'no_free_address'
  | 'host_unreachable'
  | 'not_configured'

export interface FieldError {
  /** Dotted path of the field in the body, or the name of the query or path parameter. */
  readonly field: string
  readonly detail: string
}

export interface ResourceReference {
  readonly type: string
  readonly id: string
}

/** Members besides title, status and detail. */
export interface ProblemMembers {
  readonly reason?: Reason
  readonly errors?: readonly FieldError[]
  readonly resource?: ResourceReference
  readonly active_operation_id?: string
  readonly quota?: { readonly name: string; readonly limit: number; readonly used: number; readonly requested: number }
  readonly alternatives?: readonly { readonly zone: string; readonly plan: string }[]
  /** The capability that the zone lacks. */
  readonly capability?: string
  readonly blocking_servers?: readonly string[]
  /** Whole seconds; also sent as Retry-After. */
  readonly retryAfterSeconds?: number
  /** Methods of the path; sent as Allow with 405. */
  readonly allow?: readonly string[]
}

export const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
} as const

export type ProblemStatus = keyof typeof TITLES

export class Problem extends Error {
  readonly status: ProblemStatus
  readonly members: ProblemMembers
  constructor(status: ProblemStatus, detail: string, members: ProblemMembers = {}, cause?: unknown) {
    super(detail, cause === undefined ? undefined : { cause })
    this.name = 'Problem'
    this.status = status
    this.members = members
  }

  /** The problem document of the interface specification. */
  toDocument(): Record<string, unknown> {
    const { retryAfterSeconds: _retryAfter, allow: _allow, ...members } = this.members
    return { type: 'about:blank', title: TITLES[this.status], status: this.status, detail: this.message, ...members }
  }
}

/** A dependency does not answer now: reconcilers back off until the deadline, handlers answer 503. */
export class Unavailable extends Error {
  readonly what: string
  constructor(what: string, cause?: unknown) {
    super(`${what} is not available`, cause === undefined ? undefined : { cause })
    this.name = 'Unavailable'
    this.what = what
  }
}

export const badRequest = (detail: string, errors?: readonly FieldError[]) =>
  new Problem(400, detail, errors === undefined ? {} : { errors })
export const badField = (field: string, detail: string) => badRequest(`${field}: ${detail}`, [{ field, detail }])
export const unauthenticated = (detail = 'Sign in, or send a valid API token.') => new Problem(401, detail)
export const forbidden = (detail: string, reason?: Reason) =>
  new Problem(403, detail, reason === undefined ? {} : { reason })
export const emailUnverified = () =>
  forbidden(
    'Verify your email address first: open the link in the mail that was sent at sign-up, or ask for a new one.',
    'email_unverified',
  )
/** The same answer for unknown, deleted and foreign ids. */
export const notFound = (noun: string) => new Problem(404, `No such ${noun}.`)
export const conflict = (
  reason: Exclude<Reason, 'zone_capability_missing' | 'name_taken'>,
  detail: string,
  members: ProblemMembers = {},
) => new Problem(409, detail, { reason, ...members })
/** 409: another object has the name. It is named, so that a caller can use that one; undefined where there is none yet,
 *  or none any longer. */
export const nameTaken = (detail: string, resource: ResourceReference | undefined) =>
  new Problem(409, detail, { reason: 'name_taken', ...(resource && { resource }) })
/** 409: the zone does not offer what was requested. On a route that has no 409 it is 503 (`asListed`). */
export const zoneLacks = (capability: string, detail: string, members: ProblemMembers = {}) =>
  new Problem(409, detail, { reason: 'zone_capability_missing', capability, ...members })
/** The problem as a route with these refusals answers it: a zone that lacks something is 503 `not_configured` where 409
 *  is not among them. */
export const asListed = (problem: Problem, refuses: readonly number[]): Problem =>
  problem.members.reason === 'zone_capability_missing' && !refuses.includes(409)
    ? new Problem(503, problem.message, { ...problem.members, reason: 'not_configured' }, problem.cause)
    : problem
export const operationInProgress = (operationId: string, resource: ResourceReference) =>
  conflict(
    'operation_in_progress',
    'Another operation runs on this resource. Wait until it has ended, then try again.',
    {
      active_operation_id: operationId,
      resource,
    },
  )
export const quotaExceeded = (quota: NonNullable<ProblemMembers['quota']>) =>
  new Problem(
    422,
    `The account's limit of ${quota.limit} ${quota.name} would be exceeded: ${quota.used} are used and ` +
      `${quota.requested} more were asked for. Delete what is not needed, or ask for a higher limit.`,
    {
      reason: 'quota_exceeded',
      quota,
    },
  )
export const rateLimited = (retryAfterSeconds: number, detail = 'Too many requests. Wait, then try again.') =>
  new Problem(429, detail, { reason: 'rate_limited', retryAfterSeconds })
/** This process has as much to do as it can; another may have less. */
export const fullForNow = (retryAfterSeconds: number, detail: string) => new Problem(503, detail, { retryAfterSeconds })
/** Known, but not available in this installation. */
export const notImplemented = (detail: string) => new Problem(501, detail)
export const unavailable = (reason: Reason, detail: string, members: ProblemMembers = {}) =>
  new Problem(503, detail, { reason, ...members })
