/** The role table of the API in Kubernetes' words: what each account role may do with kubectl in the account's
 *  namespace.
 *  An operator grants one of these ClusterRoles to people or GitOps tools with a RoleBinding in the account's
 *  namespace. The platform binds none of them itself. */
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

/** Permissions for members, tokens and billing have no objects in Kubernetes: they apply to the API only. */
const RULES: Partial<Readonly<Record<Permission, ClusterRole['rules']>>> = {
  read: [
    { apiGroups: [API_GROUP], resources: pluralsOf(['read', 'write']), verbs: READ },
    // `kubectl describe` and `kubectl events` read them through the older group.
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: READ },
  ],
  operate: [
    { apiGroups: [API_GROUP], resources: pluralsOf(['write']), verbs: WRITE },
    // User data that servers refer to. Whoever knows a name may read it, as the API shows credentials to holders of
    // `operate`; nobody may list them.
    { apiGroups: [''], resources: ['secrets'], verbs: ['get', ...WRITE] },
  ],
}

const DESCRIPTIONS: Readonly<Record<Role, string>> = {
  owner: "Full access of an account owner to the account's resources. Bind it in the namespace of the account.",
  admin: "Full access of an account admin to the account's resources. Bind it in the namespace of the account.",
  member: "Full access of an account member to the account's resources. Bind it in the namespace of the account.",
  viewer: "Read access to an account's resources. Bind it in the namespace of the account.",
}

/** One role for each account role, and one to read the catalog, which is the same for everybody. */
export const ACCOUNT_ROLES: readonly ClusterRole[] = [
  ...ROLES.map((role) =>
    clusterRole(
      role,
      DESCRIPTIONS[role],
      ROLE_PERMISSIONS[role].flatMap((permission) => RULES[permission] ?? []),
    ),
  ),
  clusterRole('catalog', 'Read access to regions, zones, plans, prices and templates. Bind it in the whole cluster.', [
    {
      apiGroups: [API_GROUP],
      resources: [Region, Zone, Plan, Price, Template].map(({ plural }) => plural),
      verbs: READ,
    },
  ]),
]
