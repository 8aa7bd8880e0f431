/** One request on its way through the steps. A step reads what earlier ones found, adds its own, and refuses by
 *  throwing a Problem. */
import type { Clock } from '../sys/clock.ts'
import type { Call, Caller, Customer, Operator, RequestFacts } from './call.ts'
import type { HttpRequest } from './exchange.ts'
import type { BudgetState, Budget, CountRequest } from './rates.ts'
import type { OperatorAccess, Route } from './route.ts'

/** What a stream of events may still do, once its caller was let through. */
export interface LastingAccess {
  /** The request as the handler gets it: its signal aborts too when the access is lost. */
  readonly request: RequestFacts
  /** The answer is complete: nothing is asked any more. */
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
  /** Of a route that answers with a stream of events, once the caller was let through. */
  lasting: LastingAccess | undefined
  /** What the audit log calls the request. */
  readonly audited: Call['audited']
  /** Sent with the answer, whatever it is. */
  readonly headers: Record<string, string>
}

/** Undefined answers of synchronous steps cost nothing on the way of a plain read. */
export type Step = (context: StepContext) => void | Promise<void>

/** What the steps ask of the application. */
export interface StepParts {
  readonly clock: Clock
  /** Who the credential of the request belongs to; undefined without one. Throws a Problem (401, 403) for one that is
   *  not good. */
  readonly authenticate: (request: RequestFacts) => Promise<Caller | undefined>
  /** Throws a Problem (402) when the account may not create billable resources now. */
  readonly requireStanding: (customer: Customer) => Promise<void>
  /** Throws a Problem (403) unless the management cluster allows it; without it there are no routes that ask. */
  readonly requireAccess?: (operator: Operator, access: OperatorAccess, namespace?: string) => Promise<void>
  readonly countRequest: CountRequest
  /** The service's own origins, as browsers name them; none by default. */
  readonly origins?: readonly string[]
  readonly takeBudget: (budget: Budget, key: string) => BudgetState
}

/** Builds a step for a route; undefined when the route has no use for it. */
export type StepMaker = (route: Route, parts: StepParts) => Step | undefined

/** Whether a customer calls, by whichever credential. */
export const isSignedIn = (caller: Caller): caller is Customer => caller.kind === 'session' || caller.kind === 'token'
/** Whether the request may change something. */
export const isUnsafe = (route: Route): boolean => route.method !== 'GET'
