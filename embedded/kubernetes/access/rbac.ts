/** Role-based access control. Bindings are indexed by subject and read again when one of them changes. */
import { asList, asObject, asString, at, ownMember, strings, type Json, type JsonObject } from '../core/json.ts'
import type { KubeObject, User } from '../core/object.ts'
import type { Store } from '../core/store.ts'
import { NODE_RULES } from './default-roles.ts'

const GROUP = 'rbac.authorization.k8s.io'
const RBAC_KEYS = {
  roles: `${GROUP}/roles`,
  roleBindings: `${GROUP}/rolebindings`,
  clusterRoles: `${GROUP}/clusterroles`,
  clusterRoleBindings: `${GROUP}/clusterrolebindings`,
} as const

/** The requested access: to a resource, or to another path. */
export interface Attributes {
  readonly verb: string
  readonly group: string
  /** Includes the subresource: `widgets/status`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
  /** Of requests for paths that are not resources. */
  readonly path?: string
}

export interface Authorizer {
  allows(user: User, attributes: Attributes): boolean
  /** All rules that apply to the user in the namespace. */
  rulesOf(user: User, namespace: string): readonly JsonObject[]
}

interface Grant {
  /** Empty for all namespaces. */
  readonly namespace: string
  readonly rules: readonly JsonObject[]
}

const SUPERUSERS = 'system:masters'
const NODES = 'svccloud:nodes'
const NODE_USER = 'system:node-agent:'

export function openAuthorizer(store: Store): Authorizer {
  let grants: ReadonlyMap<string, readonly Grant[]> | undefined
  const keys = new Set<string>(Object.values(RBAC_KEYS))
  store.onApplied((storageKey) => {
    if (keys.has(storageKey)) grants = undefined
  })
  const grantsOf = (user: User): Grant[] => {
    grants ??= indexGrants(store)
    const index = grants
    return [`User ${user.name}`, ...user.groups.map((group) => `Group ${group}`)].flatMap(
      (subject) => index.get(subject) ?? [],
    )
  }
  return {
    allows(user, attributes) {
      if (user.groups.includes(SUPERUSERS) || isOwnNode(user, attributes)) return true
      return grantsOf(user).some(
        ({ namespace, rules }) =>
          (namespace === '' || (namespace === attributes.namespace && attributes.path === undefined)) &&
          rules.some((rule) => covers(rule, attributes)),
      )
    },
    rulesOf: (user, namespace) =>
      user.groups.includes(SUPERUSERS)
        ? EVERYTHING
        : ['', namespace].flatMap((place) =>
            grantsOf(user)
              .filter((grant) => grant.namespace === place)
              .flatMap(({ rules }) => rules),
          ),
  }
}

const EVERYTHING: readonly JsonObject[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
]

/** The agent of a node works in the namespace of its node, which no other agent uses. */
const isOwnNode = (user: User, attributes: Attributes): boolean =>
  attributes.path === undefined &&
  user.groups.includes(NODES) &&
  user.name.startsWith(NODE_USER) &&
  attributes.namespace === `node-${user.name.slice(NODE_USER.length)}` &&
  NODE_RULES.some((rule) => covers(rule, attributes))

function indexGrants(store: Store): Map<string, Grant[]> {
  const index = new Map<string, Grant[]>()
  const bind = (binding: KubeObject, namespace: string) => {
    const rules = rulesOfRole(store, asObject(binding.roleRef), namespace)
    for (const subject of asList(binding.subjects)) {
      const name = subjectName(subject, namespace)
      index.set(name, [...(index.get(name) ?? []), { namespace, rules }])
    }
  }
  for (const [, binding] of store.table(RBAC_KEYS.clusterRoleBindings).entries()) bind(binding, '')
  for (const [, binding] of store.table(RBAC_KEYS.roleBindings).entries())
    bind(binding, binding.metadata.namespace ?? '')
  return index
}

function subjectName(subject: Json, namespace: string): string {
  const { kind, name, namespace: home } = asObject(subject)
  return kind === 'ServiceAccount'
    ? `User system:serviceaccount:${asString(home) || namespace}:${asString(name)}`
    : `${asString(kind)} ${asString(name)}`
}

function rulesOfRole(store: Store, reference: JsonObject, namespace: string): readonly JsonObject[] {
  const name = asString(reference.name)
  if (reference.kind === 'Role') return ownRules(store.table(RBAC_KEYS.roles).get(`${namespace}/${name}`))
  const role = store.table(RBAC_KEYS.clusterRoles).get(name)
  return role ? [...ownRules(role), ...aggregatedRules(store, role)] : []
}

const ownRules = (role: KubeObject | undefined): readonly JsonObject[] => asList(role?.rules).map(asObject)

/** The rules of all cluster roles whose labels match one of the selectors, including roles that those aggregate. */
function aggregatedRules(store: Store, role: KubeObject, roles = new Set<string>()): readonly JsonObject[] {
  roles.add(role.metadata.name)
  const selectors = asList(at(role, 'aggregationRule', 'clusterRoleSelectors'))
  if (selectors.length === 0) return []
  return [...store.table(RBAC_KEYS.clusterRoles).entries()].flatMap(([name, other]) =>
    roles.has(name) || !selectors.some((selector) => matchesLabels(selector, other.metadata.labels ?? {}))
      ? []
      : [...ownRules(other), ...aggregatedRules(store, other, roles)],
  )
}

/** Matches a label selector in the form of objects. */
export function matchesLabels(selector: Json | undefined, labels: Readonly<Record<string, string>>): boolean {
  const { matchLabels, matchExpressions } = asObject(selector)
  const isEvery = Object.entries(asObject(matchLabels)).every(([key, value]) => ownMember(labels, key) === value)
  return (
    isEvery &&
    asList(matchExpressions).every((expression) => {
      const { key, operator, values } = asObject(expression)
      const value = ownMember(labels, asString(key))
      if (operator === 'Exists') return value !== undefined
      if (operator === 'DoesNotExist') return value === undefined
      if (operator === 'In') return value !== undefined && strings(values).includes(value)
      return operator === 'NotIn' && (value === undefined || !strings(values).includes(value))
    })
  )
}

const has = (list: Json | undefined, wanted: string): boolean =>
  strings(list).some((one) => one === '*' || one === wanted)

function covers(rule: JsonObject, { verb, group, resource, name, path }: Attributes): boolean {
  if (!has(rule.verbs, verb)) return false
  if (path !== undefined)
    return strings(rule.nonResourceURLs).some(
      (url) => url === '*' || url === path || (url.endsWith('*') && path.startsWith(url.slice(0, -1))),
    )
  const names = strings(rule.resourceNames)
  const subresource = resource.slice(resource.indexOf('/') + 1)
  const isNamed =
    has(rule.resources, resource) || (resource.includes('/') && strings(rule.resources).includes(`*/${subresource}`))
  return has(rule.apiGroups, group) && isNamed && (names.length === 0 || names.includes(name))
}
