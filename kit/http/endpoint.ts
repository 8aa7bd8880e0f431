/** A route with the function that answers it. Pipelines and projections are built from lists of these. */
import { forbidden } from '../../domain/problem.ts'
import type { Caller, Customer, Handler, Operator } from './call.ts'
import type { Route } from './route.ts'

export interface Endpoint {
  readonly route: Route
  readonly handle: Handler<Route, Caller>
}

/** For customer routes: the pipeline admits only signed-in callers. */
export const customerEndpoint = <R extends Route>(route: R, handle: Handler<R, Customer>): Endpoint =>
  erase(route, handle)

/** For routes that also, or only, answer callers without credentials. */
export const publicEndpoint = <R extends Route>(route: R, handle: Handler<R, Caller>): Endpoint => erase(route, handle)

/** For operator routes: the pipeline of their listener admits only operators. */
export const operatorEndpoint = <R extends Route>(route: R, handle: Handler<R, Operator>): Endpoint =>
  publicEndpoint(route, (call) => {
    if (call.caller.kind !== 'operator') throw forbidden('This is for operators.')
    return handle({ ...call, caller: call.caller })
  })

const erase = <R extends Route, C extends Caller>(route: R, handle: Handler<R, C>): Endpoint => ({
  route,
  // the pipeline parses params, query and body with this very route's schemas before it calls the handler
  handle: handle as unknown as Endpoint['handle'],
})
