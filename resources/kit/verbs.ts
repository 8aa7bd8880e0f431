/** The routes of a noun. Their common parts are defined once: path, callers, answers and refusals. A route states only
 *  its differences. Its id is complete in the call, so that a text search finds it. */
import { z } from 'zod'
import type { OperationKind } from '../../domain/operations.ts'
import type { Permission, StaffRule } from '../../domain/permissions.ts'
import {
  type AccessRule,
  NoParameters,
  type OperatorAccess,
  type Route,
  type RouteInput,
} from '../../kit/http/route.ts'
import { OperationEnvelope, OperationView } from '../operation/index.ts'
import { route } from './define.ts'
import { ById, completeListOf, pageOf, PageQuery } from './shapes.ts'

type Rights = 'audience' | 'credentials' | 'permission' | 'staffRole' | 'access'
type Common = Partial<Omit<Route, Rights | 'id' | 'method' | 'path' | 'params' | 'query' | 'body' | 'example'>>

/** Callers of the routes of a group. Customers need the permission `read` to read and `operate` to change, unless the
 *  group names another. Otherwise the public, or operators by their staff role and their right in the management
 *  cluster. The verb of that right follows from the verb of the route. */
type Callers =
  | { readonly permission?: Permission; readonly credentials?: readonly ('token' | 'session')[] }
  | Extract<AccessRule, { permission: null }>
  | {
      readonly staff: StaffRule | { readonly reads: StaffRule; readonly changes: StaffRule }
      readonly access?: Pick<OperatorAccess, 'resource' | 'scope'>
    }

/** Routes under one path, with the defaults for each of them. */
type Group = Common & Callers & Pick<Route, 'path'>
/** Name in snake_case, as in answers and audit actions, and the view of the noun. */
type Noun = Group & { readonly noun: string; readonly view: z.ZodType }

/** Refuses members that a group does not have: the compiler infers any literal, and misspelt rights would be none. */
type Only<Given, Known> = Given & { readonly [Other in Exclude<keyof Given, MemberOf<Known>>]: never }
type MemberOf<Union> = Union extends unknown ? keyof Union : never

type OwnRights<G> = G extends { readonly staff: unknown }
  ? { readonly staffRole?: StaffRule; readonly access?: OperatorAccess }
  : { readonly permission?: Permission; readonly credentials?: readonly ('token' | 'session')[] }

/** The differences of a route. Defaults of `refuses`: 400 where a body or a query can be wrong, 404 where the path
 *  names an object, 409 where it changes an object. Default of `audit`: the operation that it starts. */
type Own<G, Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> = OwnRights<G> &
  Common &
  Pick<Route, 'summary'> & {
    /** `verified` requires a verified email; `standing` also requires the standing of the account. */
    readonly needs?: 'verified' | 'standing'
    /** Defaults to the `id` of `{id}`. */
    readonly params?: Params
    readonly query?: Query
    readonly body?: Body
    readonly example?: NoInfer<z.input<Body>>
  }
type AnswersOfVerb = { readonly starts: readonly OperationKind[] } | Pick<Route, 'answers'>

type None = typeof NoParameters
/** A route at a path below that of the group. */
interface Part<G, Rest> {
  <Params extends z.ZodType = typeof ById, Query extends z.ZodType = None, Body extends z.ZodType = z.ZodNull>(
    id: string,
    path: `${string}{${string}`,
    own: Own<G, Params, Query, Body> & Rest,
  ): Route<Params, Query, Body>
  <Query extends z.ZodType = None, Body extends z.ZodType = z.ZodNull>(
    id: string,
    path: string,
    own: Own<G, None, Query, Body> & Rest,
  ): Route<None, Query, Body>
}
type Place = Pick<Route, 'id' | 'method' | 'path'> & { readonly verb: OperatorAccess['verb'] }

/** Access rules that follow from the group. */
function rightsOf(
  group: Group,
  own: OwnRights<unknown> & OwnRights<{ staff: unknown }>,
  verb: Place['verb'],
): Partial<AccessRule> {
  const isRead = verb === 'get' || verb === 'list'
  if ('staff' in group) {
    const { staff } = group
    const access = own.access ?? (group.access && { verb, ...group.access })
    return {
      audience: 'operator',
      credentials: ['operator'],
      permission: null,
      staffRole: own.staffRole ?? (typeof staff === 'string' ? staff : isRead ? staff.reads : staff.changes),
      ...(access && { access }),
    }
  }
  if (group.permission === null && own.permission === undefined) return {}
  const credentials = own.credentials ?? group.credentials
  const permission = own.permission ?? group.permission ?? (isRead ? 'read' : 'operate')
  return { permission, ...(credentials && { credentials }) }
}

function routeIn<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  group: Group & Partial<Noun> & { readonly staff?: unknown },
  { verb, ...place }: Place,
  own: Own<unknown, Params, Query, Body>,
  defaults: Common & { readonly query?: z.ZodType },
): Route<Params, Query, Body> {
  const { path: base, noun: _noun, view: _view, staff: _staff, ...common } = group
  const { needs, ...settings } = own
  const path = base + place.path
  const [started = null] = own.starts ?? []
  return route({
    refuses: [
      ...(own.body === undefined && own.query === undefined ? [] : [400]),
      ...(path.includes('{') ? [404] : []),
      ...(place.method === 'GET' ? [] : [409]),
    ],
    requiresVerifiedEmail: needs !== undefined,
    requiresStanding: needs === 'standing',
    ...common,
    audit: started,
    ...(started === null ? {} : { answers: { 202: OperationEnvelope } }),
    ...(path.includes('{') ? { params: ById } : {}),
    ...defaults,
    ...settings,
    ...rightsOf(group, own, verb),
    ...place,
    path,
  } as RouteInput<Params, Query, Body>) // without `params` and `query` the defaults have the types of those parameters
}

const part =
  <G, Rest>(group: Group, method: Route['method'], verb: Place['verb']): Part<G, Rest> =>
  <Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
    id: string,
    path: string,
    own: Own<G, Params, Query, Body> & Rest,
  ): Route<Params, Query, Body> =>
    routeIn(group, { id, method, path, verb }, own, method === 'DELETE' ? withdrawing(own) : {})

const withdrawing = ({ starts }: Common): Common => ({
  isDestructive: true,
  answers: starts === undefined ? { 204: null } : { 202: OperationEnvelope },
})

/** Routes by method; `path` follows the path of the group. A route that starts an operation answers it with 202. */
export const routesUnder = <const G extends Group>(group: Only<G, Group>) => ({
  get: part<G, AnswersOfVerb>(group, 'GET', 'get'),
  post: part<G, AnswersOfVerb>(group, 'POST', 'update'),
  put: part<G, AnswersOfVerb>(group, 'PUT', 'update'),
  patch: part<G, AnswersOfVerb>(group, 'PATCH', 'update'),
  delete: part<G, unknown>(group, 'DELETE', 'delete'),
})

/** Routes of a noun with an `{id}`, and routes below its path by method. Audit actions are `<noun>.create`, `.update`
 *  and `.delete` unless a route names another. */
export function verbsOf<const N extends Noun>(noun: Only<N, Noun>) {
  const { noun: name, view } = noun
  const one = z.strictObject({ [name]: view })
  const started = one.extend({ operation: OperationView })
  const answersOf = (own: Common, without: Route['answers'], starting: Route['answers']) => ({
    answers: own.starts === undefined ? without : starting,
  })
  return {
    ...routesUnder(noun),
    /** A list with pages. */
    list: <Query extends z.ZodType = typeof PageQuery>(id: string, own: Own<N, None, Query, z.ZodNull>) =>
      routeIn<None, Query, z.ZodNull>(noun, { id, method: 'GET', path: '', verb: 'list' }, own, {
        answers: { 200: pageOf(view) },
        refuses: [400],
        query: PageQuery,
      }),
    /** A list in one answer. */
    listWhole: <Query extends z.ZodType = None>(id: string, own: Own<N, None, Query, z.ZodNull>) =>
      routeIn(noun, { id, method: 'GET', path: '', verb: 'list' }, own, { answers: { 200: completeListOf(view) } }),
    /** 201, or 202 with an operation. */
    create: <Body extends z.ZodType = z.ZodNull>(id: string, own: Own<N, None, None, Body>) =>
      routeIn(noun, { id, method: 'POST', path: '', verb: 'create' }, own, {
        audit: `${name}.create`,
        ...answersOf(own, { 201: one }, { 202: started }),
      }),
    read: <Query extends z.ZodType = None>(id: string, own: Own<N, typeof ById, Query, z.ZodNull>) =>
      routeIn(noun, { id, method: 'GET', path: '/{id}', verb: 'get' }, own, { answers: { 200: one } }),
    /** 200; also 202 with an operation where it may start one. */
    change: <Body extends z.ZodType>(id: string, own: Own<N, typeof ById, None, Body>) =>
      routeIn(noun, { id, method: 'PATCH', path: '/{id}', verb: 'update' }, own, {
        audit: `${name}.update`,
        ...answersOf(own, { 200: one }, { 200: one, 202: started }),
      }),
    /** 204, or 202 with an operation. */
    remove: <Query extends z.ZodType = None>(id: string, own: Own<N, typeof ById, Query, z.ZodNull>) =>
      routeIn(noun, { id, method: 'DELETE', path: '/{id}', verb: 'delete' }, own, {
        audit: `${name}.delete`,
        ...withdrawing(own),
      }),
  }
}
