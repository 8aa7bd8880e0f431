/** The building block of every stored noun: a resource, pure data. CRDs, RBAC and the store's types are projections of
 *  it.
 *  Routes (`kit/http/route.ts`) are what the API offers for a noun. */
import type { z } from 'zod'
import type { StaffRule } from '../../domain/permissions.ts'
import { type NoParameters, type Route, route as plainRoute, type RouteInput } from '../../kit/http/route.ts'
import { filtersOf } from './filters.ts'

export { exactlyOneOf } from '../../kit/http/route.ts'

/** A route as `kit/http/route.ts` makes it. A list also takes the filters that follow from its items. */
export const route = <
  Params extends z.ZodType = typeof NoParameters,
  Query extends z.ZodType = typeof NoParameters,
  Body extends z.ZodType = z.ZodNull,
>(
  input: RouteInput<Params, Query, Body>,
): Route<Params, Query, Body> => plainRoute({ ...input, ...filtersOf(input) })

/** For a route of the operator listener: operators authenticate with their Kubernetes token, and need that staff
 *  role. */
export const forOperators = <const Role extends StaffRule>(staffRole: Role) =>
  ({ audience: 'operator', credentials: ['operator'], permission: null, staffRole }) as const

export const API_GROUP = 'svccloud.dev'
export const API_VERSION = 'v1alpha1'

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'boolean' | 'date'
  readonly jsonPath: string
  /** Above 0: only with `-o wide`. */
  readonly priority?: number
  readonly description?: string
}

export interface Resource<Spec extends z.ZodType = z.ZodType, Status extends z.ZodType = z.ZodType> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly scope: 'Namespaced' | 'Cluster'
  /** One paragraph for `kubectl explain`. */
  readonly description: string
  /** Access of people with an account role to the kind in the account's namespace: by permissions `operate` and `read`,
   *  by `read` alone, or none. */
  readonly customers: 'write' | 'read' | 'none'
  readonly spec: Spec
  readonly status: Status
  readonly columns: readonly PrinterColumn[]
  /** JSON paths that `--field-selector` accepts. */
  readonly selectableFields: readonly string[]
  /** Fields of the spec that never change, because servers, claims or prices have been derived from them. */
  readonly fixed: readonly string[]
  /** Rules that also apply to kubectl (CEL over the whole object): of fixed fields, and across fields. */
  readonly rules: readonly { readonly rule: string; readonly message: string }[]
  /** Never present: carries the types for the store. */
  readonly types?: { readonly spec: z.infer<Spec>; readonly status: z.infer<Status> }
}

type ResourceInput<Spec extends z.ZodType, Status extends z.ZodType> = Pick<
  Resource<Spec, Status>,
  'kind' | 'plural' | 'scope' | 'description' | 'spec' | 'status' | 'columns'
> &
  Partial<Pick<Resource<Spec, Status>, 'shortNames' | 'customers' | 'selectableFields' | 'rules'>> & {
    readonly fixed?: readonly (keyof z.infer<Spec> & string)[]
  }

/** Omitted options default to the narrowest choice: no access for customers, no selectable fields. */
export function resource<Spec extends z.ZodType, Status extends z.ZodType>({
  fixed = [],
  rules = [],
  ...input
}: ResourceInput<Spec, Status>): Resource<Spec, Status> {
  return {
    group: API_GROUP,
    version: API_VERSION,
    singular: input.kind.toLowerCase(),
    shortNames: [],
    customers: 'none',
    selectableFields: [],
    fixed,
    rules: [...fixed.map(fixedRule), ...rules],
    ...input,
  }
}

/** Keeps an object of the kind until its controller has removed everything of it outside Kubernetes. Objects on hosts
 *  have `AGENT_FINALIZER`. */
export const finalizerOf = ({ kind }: Pick<Resource, 'kind'>): string =>
  `${API_GROUP}/${kind.replace(/(?<=[a-z])[A-Z]/g, '-$&').toLowerCase()}`

const fixedRule = (field: string) => ({
  rule:
    `has(self.spec.${field}) ? (has(oldSelf.spec.${field}) && self.spec.${field} == oldSelf.spec.${field}) : ` +
    `!has(oldSelf.spec.${field})`,
  message: `${field} cannot be changed`,
})
