/** A route with the function that answers it. Pipelines and projections are built from lists of these. */
import type { Caller, Customer, Handler } from './call.ts'
import type { Route } from './route.ts'

export interface Endpoint {
  readonly route: Route
  readonly handle: Handler<Route, Caller>
}

/** For customer routes: the pipeline lets only signed-in callers through to them. */
export const customerEndpoint = <R extends Route>(route: R, handle: Handler<R, Customer>): Endpoint => erase(route, handle)

/** For routes that also, or only, answer callers without a credential. */
export const publicEndpoint = <R extends Route>(route: R, handle: Handler<R, Caller>): Endpoint => erase(route, handle)

/** The pipeline parses params, query and body with this very route's schemas before it calls the handler. */
const erase = <R extends Route, C extends Caller>(route: R, handle: Handler<R, C>): Endpoint =>
  ({ route, handle: handle as unknown as Endpoint['handle'] })
