/** What people with a role in an account may do in its namespace with kubectl: the role table of the API, said in
 *  Kubernetes' words.
 *  An operator binds one of these ClusterRoles to people or GitOps tools by a RoleBinding in the account's namespace;
 *  nothing is bound by itself. */
import { ROLE_PERMISSIONS, ROLES, type Permission, type Role } from '../domain/permissions.ts'
import { API_GROUP } from './kit/define.ts'
import { RESOURCES } from './index.ts'
import { Plan, Region, Template, Zone } from './catalog/index.ts'
import { Price } from './price/index.ts'

export interface ClusterRole {
  readonly apiVersion: 'rbac.authorization.k8s.io/v1'
  readonly kind: 'ClusterRole'
  readonly metadata: { readonly name: string; readonly annotations: Readonly<Record<string, string>> }
  readonly rules: readonly {
    readonly apiGroups: readonly string[]
    readonly resources: readonly string[]
    readonly verbs: readonly string[]
  }[]
}

const READ = ['get', 'list', 'watch'] as const
const WRITE = ['create', 'patch', 'update', 'delete'] as const

const clusterRole = (name: string, description: string, rules: ClusterRole['rules']): ClusterRole => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: `svccloud:${name}`, annotations: { 'svccloud.dev/description': description } },
  rules,
})

const pluralsOf = (customers: readonly string[]): string[] =>
  RESOURCES.filter((resource) => customers.includes(resource.customers)).map(({ plural }) => plural)

/** Permissions that say nothing about objects in Kubernetes (members, tokens, billing) are for the API alone. */
const RULES: Partial<Readonly<Record<Permission, ClusterRole['rules']>>> = {
  read: [
    { apiGroups: [API_GROUP], resources: pluralsOf(['read', 'write']), verbs: READ },
    // `kubectl describe` reads them by the older group, `kubectl events` too.
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: READ },
  ],
  operate: [
    { apiGroups: [API_GROUP], resources: pluralsOf(['write']), verbs: WRITE },
    // User data that servers name. Whoever knows a name may read it, as the API shows credentials to who may operate;
    // nobody lists them.
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', ...WRITE] },
  ],
}

const DESCRIPTIONS: Readonly<Record<Role, string>> = {
  owner: 'Everything that an owner of an account may do with its resources; bound in the namespace of the account.',
  admin: 'Everything that an admin of an account may do with its resources; bound in the namespace of the account.',
  member: 'Everything that a member of an account may do with its resources; bound in the namespace of the account.',
  viewer: 'Looking at the resources of an account; bound in the namespace of the account.',
}

/** One for each role of accounts, and one to see what is offered, which is the same for everybody. */
export const ACCOUNT_ROLES: readonly ClusterRole[] = [
  ...ROLES.map((role) =>
    clusterRole(
      role,
      DESCRIPTIONS[role],
      ROLE_PERMISSIONS[role].flatMap((permission) => RULES[permission] ?? []),
    ),
  ),
  clusterRole('catalog', 'Looking at regions, zones, plans, prices and templates; bound in the whole cluster.', [
    {
      apiGroups: [API_GROUP],
      resources: [Region, Zone, Plan, Price, Template].map(({ plural }) => plural),
      verbs: READ,
    },
  ]),
]
