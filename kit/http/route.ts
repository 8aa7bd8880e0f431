/** A route as pure data: what the API offers, who may request it, what it audits and starts. Knows no noun. The router,
 *  OpenAPI, MCP tools, CLI commands and the permission tests are projections of these values. */
import { z } from 'zod'
import type { OperationKind } from '../../domain/operations.ts'
import type { ClusterScope, Permission, StaffRule } from '../../domain/permissions.ts'

export type Credential = 'token' | 'session' | 'public' | 'operator'

/** The right in the management cluster that an operator's token needs: the verb on the resource of `svccloud.dev`, as
 *  kubectl needs it. */
export interface OperatorAccess {
  readonly verb: 'get' | 'list' | 'create' | 'update' | 'delete'
  readonly resource: string
  /** `account`: in the namespace of the target's account, which the handler finds and checks. */
  readonly scope: 'cluster' | 'account'
}

/** A limit of requests: `perMinute` for each value of the key. */
export interface RateRule {
  readonly name: string
  readonly by: 'address' | 'email' | 'user' | 'account'
  readonly perMinute?: number
  readonly perHour?: number
}

export interface Route<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
> {
  /** The operationId: names the operation in every interface. Never renamed. */
  readonly id: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for parameters. */
  readonly path: string
  readonly summary: string
  readonly description?: string
  readonly audience: 'customer' | 'operator'
  readonly credentials: readonly Credential[]
  /** Null for public routes. */
  readonly permission: Permission | null
  /** The staff role that is required; null for customer routes, and for public ones. */
  readonly staffRole: StaffRule | null
  /** What decides instead of the staff role for a token of the management cluster; null when the staff role applies to
   *  tokens too. */
  readonly access: OperatorAccess | null
  /** Open to tokens of clusters for one of these areas; routes without an area are closed to all of them. */
  readonly clusterScopes: readonly ClusterScope[]
  /** A path parameter: when it is the caller's own user id, `self` is enough. */
  readonly selfParameter: string | null
  /** Reads a credential or a live view: refused to read-only tokens and read-only support sessions, always audited. */
  readonly isCredentialRead: boolean
  /** Top-level fields of its answers that contain secrets. They are removed from stored answers, and so from repeated
   *  ones; an answer to a GET is not stored, and with secrets it is not compressed. Credential reads need not name
   *  them. */
  readonly secretFields: readonly string[]
  /** Support sessions are refused in every mode. */
  readonly isRefusedToSupport: boolean
  readonly requiresVerifiedEmail: boolean
  /** Creates billable resources: 402 when the account's standing forbids it. */
  readonly requiresStanding: boolean
  /** The audit action of a mutation or credential read; null for plain reads. */
  readonly audit: string | null
  readonly starts: readonly OperationKind[]
  /** Why a change takes no dry run, for people: it has effects outside of PostgreSQL and Kubernetes, or acts on the
   *  credentials of the caller. Null for changes that take one, and for reads. Changes that API tokens cannot request
   *  have none, and their reason by default. */
  readonly noDryRun: string | null
  /** Accepts `?dry_run=true`. */
  readonly takesDryRun: boolean
  readonly isDestructive: boolean
  /** Set when the route will be removed: when that was announced, and when it starts to answer 410. At least six months
   *  apart. */
  readonly deprecation: { readonly at: Date; readonly sunsetAt: Date } | null
  readonly params: Params
  readonly query: Query
  /** Query parameters of a list that select items by the field of the same name, and `q` by their texts. */
  readonly filters: readonly string[]
  readonly body: Body | null
  /** A body that works, for the documents; null where an empty one does. */
  readonly example: z.input<Body> | null
  /** JSON is parsed and checked. Bytes are read by the handler, regardless of their content type, and the schema only
   *  documents them. */
  readonly readsBodyAs: 'json' | 'bytes'
  /** Refuses requests that a browser sends from pages of other origins. */
  readonly isSameOriginOnly: boolean
  /** Largest accepted body. */
  readonly bodyBytesMaximum: number
  /** Status to response schema; null for an empty body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>
  /** Media type of a success, when it is not JSON. */
  readonly mediaType: 'application/json' | 'application/x-ndjson' | 'text/event-stream' | 'text/html'
  /** For a stream of events: the data of each event, by name. */
  readonly events: Readonly<Record<string, z.ZodType>> | null
  /** Specific problem statuses; 401, 403, 429 and 500 are shared. */
  readonly refuses: readonly number[]
  readonly rates: readonly RateRule[]
  /** Which bucket the request counts against. */
  readonly budget: 'requests' | 'operation_reads' | 'mcp' | 'console' | 'none'
}

/** Who may call. An operator route without a staff role does not compile. Neither does a customer route without a
 *  permission that does not state the accepted credentials. */
export type AccessRule =
  | { readonly audience?: 'customer'; readonly permission: Permission; readonly credentials?: readonly Credential[] }
  | {
      readonly audience?: 'customer'
      readonly permission: null
      readonly credentials:
        | readonly ['public']
        | readonly ['session', 'public']
        | readonly ['session' | 'token']
        | readonly ['token', 'session']
    }
  | {
      readonly audience: 'operator'
      readonly permission: null
      readonly credentials: readonly ['public'] | readonly ['operator', 'public']
    }
  | {
      readonly audience: 'operator'
      readonly permission: null
      readonly credentials: readonly ['operator']
      readonly staffRole: StaffRule
      readonly access?: OperatorAccess
    }

export type RouteInput<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> = AccessRule &
  Pick<Route, 'id' | 'method' | 'path' | 'summary' | 'answers'> &
  Partial<
    Omit<
      Route,
      | 'params'
      | 'query'
      | 'body'
      | 'example'
      | 'takesDryRun'
      | keyof AccessRule
      | 'credentials'
      | 'staffRole'
      | 'access'
    >
  > & {
    readonly params?: Params
    readonly query?: Query
    readonly body?: Body
    readonly example?: NoInfer<z.input<Body>>
  }

/** Bodies are small; the few larger ones declare it. */
export const BODY_BYTES_MAXIMUM = 1_048_576

export const NoParameters = z.strictObject({})

/** The query parameter of routes that take dry runs. */
const DryRunParameter = z
  .enum(['true', 'false'])
  .optional()
  .describe('Answer what the request would do, or why it would be refused, and change nothing.')

/** Why a route takes no dry run; undefined for one that does unless it says why not. */
function noDryRunOf({ method, audience, credentials, audit, noDryRun }: Route): string | null | undefined {
  if (method === 'GET' || noDryRun !== null) return noDryRun
  if (audience === 'operator') return 'operators have none'
  if (!credentials.includes('token')) return 'programs cannot request it: API tokens are refused'
  if (audit === null) return 'it changes nothing'
  return undefined
}

/** Defaults are as strict as possible: no body, signed-in customers only, answers as JSON. */
export function route<
  Params extends z.ZodType = typeof NoParameters,
  Query extends z.ZodType = typeof NoParameters,
  Body extends z.ZodType = z.ZodNull,
>(input: RouteInput<Params, Query, Body>): Route<Params, Query, Body> {
  const query = input.query ?? NoParameters
  const complete: Route = {
    audience: 'customer',
    credentials: ['token', 'session'],
    clusterScopes: [],
    selfParameter: null,
    staffRole: null,
    access: null,
    isCredentialRead: false,
    secretFields: [],
    isRefusedToSupport: false,
    requiresVerifiedEmail: false,
    requiresStanding: false,
    audit: null,
    starts: [],
    noDryRun: null,
    takesDryRun: false,
    isDestructive: false,
    deprecation: null,
    filters: [],
    readsBodyAs: 'json',
    isSameOriginOnly: false,
    bodyBytesMaximum: BODY_BYTES_MAXIMUM,
    mediaType: 'application/json',
    events: null,
    refuses: [],
    rates: [],
    budget: 'requests',
    ...input,
    params: input.params ?? NoParameters,
    query,
    body: input.body ?? null,
    example: input.example ?? null,
  }
  const noDryRun = noDryRunOf(complete)
  const takesDryRun = noDryRun === undefined
  if (takesDryRun && !(query instanceof z.ZodObject))
    throw new TypeError(`${input.id} takes dry runs, and its query is no object`)
  return {
    ...complete,
    noDryRun: noDryRun ?? null,
    takesDryRun,
    ...(takesDryRun ? { query: (query as z.ZodObject).extend({ dry_run: DryRunParameter }) } : {}), // checked above
    // the default type parameters are the types of the defaults, and handlers never see `dry_run`
  } as unknown as Route<Params, Query, Body>
}

/** Parsed inputs of a route, as its handler gets them. */
export type ParamsOf<R> = R extends Route<infer P, z.ZodType, z.ZodType> ? z.infer<P> : never
export type QueryOf<R> = R extends Route<z.ZodType, infer Q, z.ZodType> ? z.infer<Q> : never
export type BodyOf<R> = R extends Route<z.ZodType, z.ZodType, infer B> ? z.infer<B> : never

/** The key for the fields of which a body needs exactly one: in its metadata, and in the OpenAPI document. `oneOf`
 *  would say it too, but then programs that generate clients make types of one field. */
export const EXACTLY_ONE = 'x-exactly-one'

/** The object with exactly one of these fields, which are optional in it; null counts as absent. Name the schema after
 *  this call. */
export function exactlyOneOf<Schema extends z.ZodObject>(
  schema: Schema,
  fields: readonly (keyof Schema['shape'] & string)[],
): Schema {
  const check = z.superRefine<z.infer<Schema>>(
    (body, context) => {
      const [one, second] = fields.filter((field) => isGiven(body, field))
      const [first = '', ...others] = fields
      if (one === undefined)
        context.addIssue({
          code: 'custom',
          path: [first],
          message: `is required, unless ${others.join(' or ')} is given`,
        })
      else if (second !== undefined)
        context.addIssue({ code: 'custom', path: [second], message: `cannot be given together with ${one}` })
    },
    // reported together with other errors: a caller learns everything at once
    { when: ({ value }) => typeof value === 'object' && value !== null },
  )
  return schema.check(check).meta({ [EXACTLY_ONE]: fields })
}

/** Whether a body has a value for the field. */
export const isGiven = (body: object, field: string): boolean => {
  const value: unknown = Reflect.get(body, field)
  return value !== undefined && value !== null
}

/** The fields of which a body needs exactly one; empty when there are none. */
export const exactlyOneIn = (schema: z.ZodType | null): readonly string[] =>
  (schema?.meta()?.[EXACTLY_ONE] as readonly string[] | undefined) ?? [] // as `exactlyOneOf` put it there
