/** The roles of every cluster, and those of this product's components. */
import type { JsonObject } from '../core/json.ts'

const API = 'rbac.authorization.k8s.io/v1'
const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update']
const LABEL = 'rbac.authorization.k8s.io/aggregate-to-'
const OPEN_RESOURCES = [
  'configmaps',
  'endpoints',
  'persistentvolumeclaims',
  'pods',
  'serviceaccounts',
  'services',
  'events',
  'limitranges',
  'resourcequotas',
]

interface Rule extends JsonObject {
  readonly verbs: readonly string[]
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
}
const rule = (verbs: readonly string[], apiGroups: readonly string[], resources: readonly string[]): Rule => ({
  verbs,
  apiGroups,
  resources,
})

/** Rights of a node's agent in its own namespace; the same as in the chart of the agents. */
export const NODE_RULES: readonly Rule[] = [
  rule(READ, ['svccloud.dev'], ['instances', 'managedmachines', 'volumes', 'images', 'backupjobs', 'observations']),
  rule(
    ['patch'],
    ['svccloud.dev'],
    [
      'instances/status',
      'managedmachines/status',
      'volumes/status',
      'images/status',
      'backupjobs/status',
      'observations/status',
      'nodereports/status',
    ],
  ),
  rule(['get', 'create', 'patch'], ['svccloud.dev'], ['nodereports']),
  rule(['get', 'create', 'patch'], ['coordination.k8s.io'], ['leases']),
  rule(['get'], [''], ['secrets', 'namespaces']),
]

const role = (
  name: string,
  rules: readonly Rule[],
  more: JsonObject = {},
  labels: Record<string, string> = {},
): JsonObject => ({
  apiVersion: API,
  kind: 'ClusterRole',
  metadata: { name, labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels } },
  rules,
  ...more,
})
const aggregating = (name: string): JsonObject =>
  role(
    name,
    [],
    { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [`${LABEL}${name}`]: 'true' } }] } },
    AGGREGATES[name] ?? {},
  )
/** Editors have the rights of viewers, administrators those of editors. */
const AGGREGATES: Readonly<Record<string, Record<string, string>>> = {
  edit: { [`${LABEL}admin`]: 'true' },
  view: { [`${LABEL}edit`]: 'true' },
}

const binding = (name: string, roleName: string, group: string): JsonObject => ({
  apiVersion: API,
  kind: 'ClusterRoleBinding',
  metadata: { name, labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } },
  subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: group }],
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: roleName },
})

const WORKLOADS = ['apps', 'batch', 'autoscaling', 'networking.k8s.io', 'policy']

export const DEFAULT_ROLES: readonly JsonObject[] = [
  role('cluster-admin', [rule(['*'], ['*'], ['*']), { verbs: ['*'], nonResourceURLs: ['*'] }]),
  binding('cluster-admin', 'cluster-admin', 'system:masters'),
  role('system:discovery', [
    {
      verbs: ['get'],
      nonResourceURLs: [
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ],
    },
  ]),
  role('system:public-info-viewer', [
    { verbs: ['get'], nonResourceURLs: ['/healthz', '/livez', '/readyz', '/version', '/version/'] },
  ]),
  binding('system:public-info-viewer', 'system:public-info-viewer', 'system:unauthenticated'),
  binding('system:discovery', 'system:discovery', 'system:authenticated'),
  role('system:basic-user', [
    rule(['create'], ['authorization.k8s.io'], ['selfsubjectaccessreviews', 'selfsubjectrulesreviews']),
    rule(['create'], ['authentication.k8s.io'], ['selfsubjectreviews']),
  ]),
  binding('system:basic-user', 'system:basic-user', 'system:authenticated'),
  aggregating('admin'),
  aggregating('edit'),
  aggregating('view'),
  role(
    'system:aggregate-to-view',
    [rule(READ, [''], [...OPEN_RESOURCES, 'namespaces']), rule(READ, WORKLOADS, ['*'])],
    {},
    { [`${LABEL}view`]: 'true' },
  ),
  role(
    'system:aggregate-to-edit',
    [
      rule(
        [...READ, ...WRITE],
        [''],
        OPEN_RESOURCES.filter((name) => !['limitranges', 'resourcequotas'].includes(name)),
      ),
      rule([...READ, ...WRITE], [''], ['secrets']),
      rule([...READ, ...WRITE], WORKLOADS, ['*']),
      rule([...READ, ...WRITE], ['coordination.k8s.io'], ['leases']),
    ],
    {},
    { [`${LABEL}edit`]: 'true' },
  ),
  role(
    'system:aggregate-to-admin',
    [rule([...READ, ...WRITE], ['rbac.authorization.k8s.io'], ['roles', 'rolebindings'])],
    {},
    { [`${LABEL}admin`]: 'true' },
  ),
  // On one machine the components trust each other. In a real cluster the charts define narrower roles.
  binding('svccloud:components', 'cluster-admin', 'svccloud:components'),
]
