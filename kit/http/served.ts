/** A route together with the handler that answers it. */
import type { z } from 'zod'
import type { Caller, Handler } from './call.ts'
import type { Route } from './route.ts'

export interface Served {
  readonly route: Route
  readonly handle: Handler
}

/** Pairs a route with its handler. The handler names the callers that the route's credentials admit (`Customer`, most often). */
export const serve = <P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, C extends Caller>(
  route: Route<P, Q, B>, handle: Handler<Route<P, Q, B>, C>,
): Served => ({
  route,
  handle: handle as unknown as Handler, // the pipeline has parsed the input and authenticated the caller as the route says
})
