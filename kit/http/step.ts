/** One request on its way through the steps. A step reads the results of earlier ones, adds its own, and refuses by
 *  throwing a Problem. */
import type { Clock } from '../sys/clock.ts'
import type { Call, Caller, Customer, Operator, RequestFacts } from './call.ts'
import type { HttpRequest } from './exchange.ts'
import type { BudgetState, Budget, CountRequest } from './rates.ts'
import type { OperatorAccess, Route } from './route.ts'

/** The access of a stream of events or of a request that waits, after its caller was admitted. */
export interface LastingAccess {
  /** The request as the handler gets it: its signal also aborts when the access is lost. */
  readonly request: RequestFacts
  /** Checks it now. Throws a Problem (401, 403) when it is lost. */
  confirm(): Promise<void>
  /** The answer is complete: stops the checks. */
  end(): void
}

export interface StepContext {
  readonly route: Route
  readonly incoming: HttpRequest
  readonly request: RequestFacts
  readonly rawParams: Readonly<Record<string, string | undefined>>
  /** Without the question mark. */
  readonly rawQuery: string
  /** Public until the caller is authenticated. */
  caller: Caller
  params: unknown
  query: unknown
  body: unknown
  /** Of a stream of events or a request that waits, once the caller was admitted. */
  lasting: LastingAccess | undefined
  /** The audit log's name of the request. */
  readonly audited: Call['audited']
  /** Sent with every answer. */
  readonly headers: Record<string, string>
}

/** Synchronous steps return undefined, which costs nothing for a plain read. */
export type Step = (context: StepContext) => void | Promise<void>

/** What the steps need from the application. */
export interface StepParts {
  readonly clock: Clock
  /** The caller whose credentials the request has; undefined without any. Throws a Problem (401, 403) for invalid
   *  ones. */
  readonly authenticate: (request: RequestFacts) => Promise<Caller | undefined>
  /** Throws a Problem (402) when the account may not create billable resources now. */
  readonly requireStanding: (customer: Customer) => Promise<void>
  /** Throws a Problem (403) unless the management cluster allows it; required only for routes that use it. */
  readonly requireAccess?: (operator: Operator, access: OperatorAccess, namespace?: string) => Promise<void>
  readonly countRequest: CountRequest
  /** The service's own origins, as browsers name them; none by default. */
  readonly origins?: readonly string[]
  readonly takeBudget: (budget: Budget, key: string) => BudgetState
}

/** Builds a step for a route; undefined when the route does not need it. */
export type StepMaker = (route: Route, parts: StepParts) => Step | undefined

/** Whether a customer calls, with any credentials. */
export const isSignedIn = (caller: Caller): caller is Customer => caller.kind === 'session' || caller.kind === 'token'
/** Whether the request may change something. */
export const isUnsafe = (route: Route): boolean => route.method !== 'GET'
