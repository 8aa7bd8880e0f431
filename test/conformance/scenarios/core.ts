import { configMap, corePath, widget, widgetsPath } from '../definitions.ts'
import {
  del,
  get,
  jsonPatch,
  kubectl,
  kubectlWith,
  mergePatch,
  post,
  put,
  scenario,
  type Step,
  type Theme,
} from '../scenario.ts'

const refused = { only: ['message', 'reason', 'code', 'details'] }
const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
const NEW_EVENT = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'e' },
  eventTime: '2026-01-02T03:04:05.000006Z',
  reportingController: 'example.com/test',
  reportingInstance: 'test-1',
  action: 'Doing',
  regarding: { kind: 'Widget', name: 'a', namespace: '{ns}' },
  reason: 'Made',
  note: 'Made it',
  type: 'Normal',
}
const gone = (path: string): Step => get(path, { until: { status: 404 }, only: ['reason'] })

export const namespaces: Theme = {
  name: 'namespaces',
  scenarios: [
    scenario(
      'a namespace is born active with a finalizer and its name as label',
      post('/api/v1/namespaces', namespace('{ns}-made')),
      del('/api/v1/namespaces/{ns}-made', undefined, { only: ['kind', 'status.phase'] }),
    ),
    scenario(
      'a namespace takes its contents with it',
      post('/api/v1/namespaces', namespace('{ns}-full'), { only: ['status'] }),
      post('/api/v1/namespaces/{ns}-full/configmaps', configMap('c'), { only: ['metadata.name'] }),
      kubectl('delete namespace {ns}-full'),
      get('/api/v1/namespaces/{ns}-full', { only: ['reason'] }),
      get('/api/v1/namespaces/{ns}-full/configmaps/c', { only: ['reason'] }),
    ),
    scenario(
      'nothing can be made in a namespace that is going',
      post('/api/v1/namespaces', namespace('{ns}-going'), { only: ['status'] }),
      post('/api/v1/namespaces/{ns}-going/configmaps', configMap('c', {}, { finalizers: ['example.com/hold'] }), {
        only: ['metadata.name'],
      }),
      del('/api/v1/namespaces/{ns}-going', undefined, { only: ['status.phase', 'metadata.deletionTimestamp'] }),
      post('/api/v1/namespaces/{ns}-going/configmaps', configMap('late'), refused),
      get('/api/v1/namespaces/{ns}-going/configmaps/c', {
        until: { path: 'metadata.deletionTimestamp' },
        only: ['metadata.finalizers'],
      }),
      get('/api/v1/namespaces/{ns}-going', { only: ['status.phase', 'spec'] }),
      mergePatch(
        '/api/v1/namespaces/{ns}-going/configmaps/c',
        { metadata: { finalizers: null } },
        { only: ['metadata.name'] },
      ),
      gone('/api/v1/namespaces/{ns}-going'),
    ),
    scenario(
      'nothing can be made in a namespace that is missing',
      post('/api/v1/namespaces/nowhere/configmaps', configMap('c'), refused),
      get('/api/v1/namespaces/nowhere/configmaps', { only: ['items'] }),
      kubectl('get configmaps -n nowhere'),
    ),
    scenario('a namespace must be a DNS label', post('/api/v1/namespaces', namespace('has.dots'), refused)),
    scenario(
      'the first namespaces cannot be deleted',
      del('/api/v1/namespaces/default', undefined, { only: ['reason', 'code', 'message'] }),
    ),
    scenario(
      'kubectl create and delete namespace',
      kubectl('create namespace {ns}-kubectl'),
      kubectl('get namespace {ns}-kubectl -o name'),
      kubectl('delete namespace {ns}-kubectl'),
      kubectl('create namespace {ns}-kubectl --dry-run=server -o name'),
    ),
    scenario(
      'a namespace can be labelled and selected',
      kubectl('label namespace {ns} team=blue'),
      kubectl('get namespaces -l team=blue,kubernetes.io/metadata.name={ns} -o name'),
    ),
    scenario(
      'finalizers of a namespace are its own',
      put(
        '/api/v1/namespaces/{ns}/finalize',
        { ...namespace('{ns}'), spec: { finalizers: ['kubernetes', 'example.com/more'] } },
        { only: ['spec', 'code', 'message'] },
      ),
      put(
        '/api/v1/namespaces/{ns}/finalize',
        { ...namespace('{ns}'), spec: { finalizers: ['kubernetes'] } },
        { only: ['spec'] },
      ),
    ),
  ],
}

const secret = (name: string, rest: object) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...rest })
const lease = (holder: string, rest: object = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'leader', ...rest },
  spec: {
    holderIdentity: holder,
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-02T03:04:05.000006Z',
    renewTime: '2026-01-02T03:04:05.123456Z',
    leaseTransitions: 0,
  },
})
const leases = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'

export const coreKinds: Theme = {
  name: 'core-kinds',
  scenarios: [
    scenario(
      'a config map by kubectl',
      kubectl(`create configmap c --from-literal=a=1 --from-literal=b=2`),
      kubectl('get configmap c -o yaml --show-managed-fields'),
    ),
    scenario(
      'kind and version of a core kind may be left out',
      post(
        corePath('configmaps'),
        { metadata: { name: 'c' }, data: { a: '1' } },
        { only: ['kind', 'apiVersion', 'data'] },
      ),
    ),
    scenario(
      'a config map from a file',
      kubectl('create configmap c --from-file=settings.ini', { files: { 'settings.ini': '[main]\nkey = value\n' } }),
      kubectl('get configmap c -o yaml'),
    ),
    scenario(
      'a config map has no generation',
      post(corePath('configmaps'), configMap('c', { a: '1' })),
      mergePatch(corePath('configmaps', 'c'), { data: { a: '2' } }, { only: ['metadata.generation', 'data'] }),
    ),
    scenario(
      'a config map with bad keys or values',
      post(corePath('configmaps'), configMap('c', { 'bad key': 'x' }), refused),
      post(corePath('configmaps'), configMap('c', { a: 5 }), { only: ['code', 'reason'] }),
    ),
    scenario(
      'an immutable config map',
      post(corePath('configmaps'), { ...configMap('c', { a: '1' }), immutable: true }, { only: ['immutable'] }),
      mergePatch(corePath('configmaps', 'c'), { data: { a: '2' } }, refused),
      mergePatch(corePath('configmaps', 'c'), { immutable: false }, refused),
      mergePatch(corePath('configmaps', 'c'), { metadata: { labels: { x: 'y' } } }, { only: ['metadata.labels'] }),
    ),
    scenario(
      'a secret by kubectl',
      kubectl('create secret generic s --from-literal=password=hunter2'),
      kubectl('get secret s -o yaml'),
      kubectl('describe secret s'),
    ),
    scenario(
      'a secret turns string data into data',
      post(corePath('secrets'), secret('s', { stringData: { a: 'b' }, data: { c: 'ZA==' } }), {
        only: ['data', 'stringData', 'type'],
      }),
    ),
    scenario(
      'a secret with bad base64',
      post(corePath('secrets'), secret('s', { data: { a: '!!' } }), { only: ['code', 'reason'] }),
    ),
    scenario(
      'the type of a secret is fixed',
      post(corePath('secrets'), secret('s', { type: 'example.com/mine' }), { only: ['type'] }),
      mergePatch(corePath('secrets', 's'), { type: 'Opaque' }, refused),
    ),
    scenario(
      'a secret of a known type needs its keys',
      post(corePath('secrets'), secret('s', { type: 'kubernetes.io/basic-auth', data: {} }), refused),
      post(corePath('secrets'), secret('t', { type: 'kubernetes.io/tls', data: {} }), refused),
    ),
    scenario(
      'secrets by their type',
      post(corePath('secrets'), secret('a', { type: 'example.com/one' }), { only: ['type'] }),
      post(corePath('secrets'), secret('b', { type: 'example.com/two' }), { only: ['type'] }),
      get(`${corePath('secrets')}?fieldSelector=type%3Dexample.com/two`, { only: ['items.*.metadata.name'] }),
    ),
    scenario(
      'an immutable secret',
      post(corePath('secrets'), secret('s', { immutable: true, data: { a: 'YQ==' } }), { only: ['immutable'] }),
      mergePatch(corePath('secrets', 's'), { data: { a: 'Yg==' } }, refused),
    ),
    scenario(
      'a lease is compared and swapped',
      post(leases, lease('one')),
      get(`${leases}/leader`, { only: ['spec'], remember: { rv: 'metadata.resourceVersion' } }),
      put(`${leases}/leader`, lease('two', { resourceVersion: '{rv}' }), { only: ['spec.holderIdentity'] }),
      put(`${leases}/leader`, lease('three', { resourceVersion: '{rv}' }), { only: ['code', 'reason'] }),
    ),
    scenario(
      'a lease keeps microseconds',
      post(leases, lease('one'), { only: ['metadata.name'] }),
      kubectl(`get lease leader -o 'jsonpath={.spec.holderIdentity}'`),
    ),
    scenario(
      'a service account by kubectl',
      kubectl('create serviceaccount robot'),
      kubectl('get serviceaccount robot -o yaml'),
    ),
    scenario(
      'an event and its selectors',
      post(corePath('events'), {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: 'e' },
        involvedObject: { kind: 'Widget', name: 'a', namespace: '{ns}' },
        reason: 'Made',
        message: 'Made it',
        type: 'Normal',
      }),
      get(`${corePath('events')}?fieldSelector=involvedObject.name%3Da,reason%3DMade`, {
        only: ['items.*.metadata.name'],
      }),
      get(`${corePath('events')}?fieldSelector=type%3DWarning`, { only: ['items.*.metadata.name'] }),
      get('/apis/events.k8s.io/v1/namespaces/{ns}/events/e', {
        only: ['kind', 'apiVersion', 'note', 'regarding', 'reason'],
      }),
    ),
    scenario(
      'an event must be in the namespace of its object',
      post(
        corePath('events'),
        {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: 'e' },
          involvedObject: { kind: 'Widget', name: 'a', namespace: 'elsewhere' },
          reason: 'Made',
          type: 'Normal',
        },
        refused,
      ),
    ),
    scenario(
      'an event in the newer group',
      post('/apis/events.k8s.io/v1/namespaces/{ns}/events', NEW_EVENT, { only: ['kind', 'note', 'code', 'message'] }),
      get(corePath('events', 'e'), { only: ['kind', 'message', 'involvedObject', 'reason'] }),
    ),
    scenario(
      'an event that happens again is counted in its series',
      post('/apis/events.k8s.io/v1/namespaces/{ns}/events', NEW_EVENT, { only: ['kind', 'series'] }),
      mergePatch(
        '/apis/events.k8s.io/v1/namespaces/{ns}/events/e',
        { series: { count: 3, lastObservedTime: '2026-01-02T03:05:05.000006Z' } },
        { only: ['kind', 'series'] },
      ),
      get(corePath('events', 'e'), { only: ['kind', 'series'] }),
    ),
    ...[
      ['without a time', { eventTime: undefined }],
      ['without an action', { action: undefined }],
      ['without a reason', { reason: undefined }],
      ['without a reporter', { reportingInstance: undefined }],
      ['of another type', { type: 'Bad' }],
      ['with a long note', { note: 'x'.repeat(1_025) }],
      ['about another namespace', { regarding: { kind: 'Widget', name: 'a', namespace: 'elsewhere' } }],
    ].map(([what, fields]) =>
      scenario(
        `an event in the newer group ${what}`,
        post('/apis/events.k8s.io/v1/namespaces/{ns}/events', { ...NEW_EVENT, ...(fields as object) }, refused),
      ),
    ),
    scenario(
      'a service and a deployment are stored',
      kubectlWith('apply', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 's' },
        spec: { type: 'ClusterIP', clusterIP: 'None', selector: { app: 'x' }, ports: [{ port: 80 }] },
      }),
      kubectlWith('apply', {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'd' },
        spec: {
          replicas: 2,
          selector: { matchLabels: { app: 'x' } },
          template: {
            metadata: { labels: { app: 'x' } },
            spec: { containers: [{ name: 'c', image: 'example.com/i:1' }] },
          },
        },
      }),
      kubectl('get service/s deployment/d -o name'),
      kubectl(`get deployment d -o 'jsonpath={.spec.replicas}{.spec.template.spec.containers[0].image}'`),
      kubectl('scale deployment d --replicas=3'),
      kubectl('delete deployment/d service/s'),
    ),
    scenario(
      'a deployment by kubectl create, and one with an unknown member',
      kubectl('create deployment d --image=example.com/i:1'),
      kubectlWith('apply', {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'e' },
        spec: {
          selector: { matchLabels: { app: 'x' } },
          template: {
            metadata: { labels: { app: 'x' } },
            spec: { containers: [{ name: 'c', image: 'example.com/i:1', bogus: 1 }] },
          },
        },
      }),
      kubectl('get deployment e -o name'),
    ),
    scenario(
      'dry runs of kubectl create',
      kubectl('create configmap c --from-literal=a=1 --dry-run=client -o yaml'),
      kubectl('create configmap c --from-literal=a=1 --dry-run=server -o yaml'),
      kubectl('create secret generic s --from-literal=a=1 --dry-run=server -o name'),
      kubectl('get configmap c'),
    ),
    scenario(
      'kubectl create twice',
      kubectl('create configmap c'),
      kubectl('create configmap c'),
      kubectl('create serviceaccount robot'),
      kubectl('create serviceaccount robot'),
    ),
    scenario(
      'a field manager of kubectl create',
      kubectl('create configmap c --from-literal=a=1 --field-manager=mine'),
      get(corePath('configmaps', 'c'), { only: ['metadata.managedFields'] }),
    ),
  ],
}

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const rules = [{ apiGroups: ['conformance.svccloud.example'], resources: ['widgets'], verbs: ['get', 'list'] }]
const role = (name: string, own: readonly object[] = rules) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name },
  rules: own,
})
const bind = (name: string, roleRef: object = { kind: 'Role', name: 'reader' }) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name },
  subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: '{ns}' }],
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...roleRef },
})
const robot: readonly Step[] = [
  post(
    corePath('serviceaccounts'),
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } },
    { only: ['metadata.name'] },
  ),
  post(
    `${corePath('serviceaccounts', 'robot')}/token`,
    { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
    { only: ['kind', 'spec.expirationSeconds', 'status.token'], remember: { token: 'status.token' } },
  ),
]
const reader: readonly Step[] = [
  ...robot,
  post(`${rbac}/namespaces/{ns}/roles`, role('reader'), { only: ['rules'] }),
  post(`${rbac}/namespaces/{ns}/rolebindings`, bind('reads'), { only: ['roleRef', 'subjects'] }),
]
/** Asked until RBAC has seen the new role, which real servers learn from a watch. */
const asRobot = (path: string, status: number): Step =>
  get(path, { token: '{token}', until: { status }, only: ['kind', 'message', 'reason', 'code', 'details'] })
const may = (attributes: object, options: object = {}): Step =>
  post(
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: attributes },
    },
    { only: ['status.allowed'], ...options },
  )

export const access: Theme = {
  name: 'access',
  scenarios: [
    scenario(
      'a service account without a role may do nothing',
      ...robot,
      asRobot(widgetsPath(), 403),
      asRobot(widgetsPath('a'), 403),
      post(widgetsPath(), widget('a'), { token: '{token}' }),
      del(widgetsPath('a'), undefined, { token: '{token}', ...refused }),
    ),
    scenario(
      'a role allows what it names and nothing else',
      ...reader,
      asRobot(widgetsPath(), 200),
      post(widgetsPath(), widget('a'), { token: '{token}', ...refused }),
      asRobot(corePath('configmaps'), 403),
      asRobot('/apis/conformance.svccloud.example/v1/widgets', 403),
      asRobot('/apis/conformance.svccloud.example/v1/namespaces/default/widgets', 403),
    ),
    scenario(
      'a role does not cover subresources',
      ...reader,
      asRobot(widgetsPath(), 200),
      asRobot(`${widgetsPath('a')}/status`, 403),
      asRobot(`${widgetsPath('a')}/scale`, 403),
    ),
    scenario(
      'a role may name objects',
      ...robot,
      post(
        `${rbac}/namespaces/{ns}/roles`,
        role('reader', [
          { apiGroups: [''], resources: ['configmaps'], resourceNames: ['mine'], verbs: ['get', 'list', 'watch'] },
        ]),
        { only: ['rules'] },
      ),
      post(`${rbac}/namespaces/{ns}/rolebindings`, bind('reads'), { only: ['metadata.name'] }),
      post(corePath('configmaps'), configMap('mine'), { only: ['metadata.name'] }),
      asRobot(corePath('configmaps', 'mine'), 200),
      asRobot(corePath('configmaps', 'other'), 403),
      asRobot(corePath('configmaps'), 403),
      asRobot(`${corePath('configmaps')}?fieldSelector=metadata.name%3Dmine`, 200),
    ),
    scenario(
      'watching is a verb of its own',
      ...reader,
      asRobot(widgetsPath(), 200),
      get(`${widgetsPath()}?watch=true&timeoutSeconds=1`, { token: '{token}', ...refused }),
    ),
    scenario(
      'a cluster role bound in a namespace counts there',
      ...robot,
      post(`${rbac}/clusterroles`, { ...role('{ns}'), kind: 'ClusterRole' }, { only: ['kind'] }),
      post(`${rbac}/namespaces/{ns}/rolebindings`, bind('reads', { kind: 'ClusterRole', name: '{ns}' }), {
        only: ['roleRef'],
      }),
      asRobot(widgetsPath(), 200),
      asRobot('/apis/conformance.svccloud.example/v1/namespaces/default/widgets', 403),
      del(`${rbac}/clusterroles/{ns}`, undefined, { only: ['status'] }),
    ),
    scenario(
      'a cluster role binding counts everywhere',
      ...robot,
      post(`${rbac}/clusterroles`, { ...role('{ns}'), kind: 'ClusterRole' }, { only: ['kind'] }),
      post(
        `${rbac}/clusterrolebindings`,
        { ...bind('{ns}', { kind: 'ClusterRole', name: '{ns}' }), kind: 'ClusterRoleBinding' },
        { only: ['kind'] },
      ),
      asRobot('/apis/conformance.svccloud.example/v1/widgets?limit=1&labelSelector=none', 200),
      del(`${rbac}/clusterrolebindings/{ns}`, undefined, { only: ['status'] }),
      del(`${rbac}/clusterroles/{ns}`, undefined, { only: ['status'] }),
    ),
    scenario(
      'aggregated cluster roles gather rules',
      post(
        `${rbac}/clusterroles`,
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: '{ns}-part', labels: { part: '{ns}' } },
          rules,
        },
        { only: ['rules'] },
      ),
      post(
        `${rbac}/clusterroles`,
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: '{ns}-sum' },
          aggregationRule: { clusterRoleSelectors: [{ matchLabels: { part: '{ns}' } }] },
          rules: [],
        },
        { only: ['aggregationRule'] },
      ),
      del(`${rbac}/clusterroles/{ns}-sum`, undefined, { only: ['status'] }),
      del(`${rbac}/clusterroles/{ns}-part`, undefined, { only: ['status'] }),
    ),
    scenario(
      'a binding cannot change its role',
      ...reader,
      jsonPatch(
        `${rbac}/namespaces/{ns}/rolebindings/reads`,
        [{ op: 'replace', path: '/roleRef/name', value: 'other' }],
        refused,
      ),
    ),
    scenario(
      'a bad role is refused',
      post(`${rbac}/namespaces/{ns}/roles`, role('r', [{ apiGroups: [''], resources: ['pods'], verbs: [] }]), refused),
      post(`${rbac}/namespaces/{ns}/rolebindings`, bind('b', { kind: 'Nothing', name: 'x' }), refused),
    ),
    scenario(
      'access reviews answer for the asker',
      ...reader,
      asRobot(widgetsPath(), 200),
      may(
        { verb: 'get', group: 'conformance.svccloud.example', resource: 'widgets', namespace: '{ns}' },
        { token: '{token}' },
      ),
      may(
        { verb: 'delete', group: 'conformance.svccloud.example', resource: 'widgets', namespace: '{ns}' },
        { token: '{token}' },
      ),
      may({ verb: '*', group: '*', resource: '*' }),
    ),
    scenario(
      'rules reviews list what the asker may',
      ...reader,
      asRobot(widgetsPath(), 200),
      post(
        '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
        { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: '{ns}' } },
        { token: '{token}', only: ['status.incomplete', 'status.resourceRules.0.apiGroups', 'code'] },
      ),
    ),
    scenario(
      'access reviews answer for others',
      ...reader,
      asRobot(widgetsPath(), 200),
      post(
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: 'system:serviceaccount:{ns}:robot',
            groups: ['system:serviceaccounts'],
            resourceAttributes: {
              verb: 'list',
              group: 'conformance.svccloud.example',
              resource: 'widgets',
              namespace: '{ns}',
            },
          },
        },
        { only: ['status.allowed'] },
      ),
    ),
    scenario(
      'kubectl auth can-i',
      kubectl('auth can-i get widgets'),
      kubectl('auth can-i --list --namespace {ns} --token=wrong'),
      ...reader,
      asRobot(widgetsPath(), 200),
      kubectl('auth can-i get widgets --token={token}'),
      kubectl('auth can-i delete widgets --token={token}'),
    ),
    scenario(
      'kubectl as a service account',
      ...reader,
      asRobot(widgetsPath(), 200),
      kubectl('get widgets --token={token}'),
      kubectl('get configmaps --token={token}'),
      kubectl('delete widget a --token={token}'),
    ),
    scenario(
      'who a service account is',
      ...robot,
      kubectl('auth whoami --token={token} -o yaml'),
      post(
        '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
        {
          token: '{token}',
          only: ['kind', 'status.userInfo.username', 'status.userInfo.groups', 'status.userInfo.uid'],
        },
      ),
    ),
    scenario(
      'a token is reviewed',
      ...robot,
      post(
        '/apis/authentication.k8s.io/v1/tokenreviews',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: '{token}' } },
        { only: ['status.authenticated', 'status.user.username', 'status.user.groups'] },
      ),
      post(
        '/apis/authentication.k8s.io/v1/tokenreviews',
        { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: 'wrong' } },
        { only: ['status.authenticated', 'status.user'] },
      ),
    ),
    scenario(
      'a token dies with its service account',
      ...reader,
      asRobot(widgetsPath(), 200),
      del(corePath('serviceaccounts', 'robot'), undefined, { only: ['kind'] }),
      asRobot(widgetsPath(), 401),
    ),
    scenario(
      'kubectl create token',
      kubectl('create serviceaccount robot'),
      kubectl('create token robot'),
      kubectl('create token robot --duration=1h'),
      kubectl('create token nobody'),
    ),
    scenario(
      'a token may not live too shortly',
      ...robot,
      post(
        `${corePath('serviceaccounts', 'robot')}/token`,
        { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 5 } },
        refused,
      ),
    ),
    scenario(
      'a service account gains a role by aggregation',
      ...robot,
      post(`${rbac}/namespaces/{ns}/rolebindings`, bind('views', { kind: 'ClusterRole', name: 'view' }), {
        only: ['roleRef'],
      }),
      asRobot(corePath('configmaps'), 200),
      asRobot(corePath('secrets'), 403),
    ),
    scenario(
      'an administrator acts as somebody else',
      kubectl('auth whoami --as=grace --as-group=staff -o yaml'),
      kubectl('auth whoami --as=grace -o yaml'),
      kubectl('auth whoami --as=system:serviceaccount:{ns}:robot -o yaml'),
      kubectl('get widgets --as=grace'),
      kubectl('get namespace {ns} -o name --as=grace --as-group=system:masters'),
      kubectl('auth can-i get widgets --as=grace'),
      kubectl('get widgets --as-group=staff'),
    ),
    scenario(
      'acting as somebody else needs a right',
      ...robot,
      kubectl('get widgets --token={token} --as=grace'),
      kubectl('get --raw /api/v1 --token={token} --as=grace'),
      kubectl('get --raw /api/v1 --token={token} --as=grace --as-group=system:masters'),
      kubectl('get --raw /api/v1 --token={token} --as=system:serviceaccount:{ns}:robot'),
      kubectl('get --raw /api/v1 --token={token} --as=grace --as-uid=1'),
    ),
    scenario(
      'acting as somebody else may be granted by name',
      ...robot,
      post(
        `${rbac}/clusterroles`,
        {
          ...role('{ns}', [
            { apiGroups: [''], resources: ['users'], resourceNames: ['grace'], verbs: ['impersonate'] },
          ]),
          kind: 'ClusterRole',
        },
        { only: ['kind'] },
      ),
      post(
        `${rbac}/clusterrolebindings`,
        { ...bind('{ns}', { kind: 'ClusterRole', name: '{ns}' }), kind: 'ClusterRoleBinding' },
        { only: ['kind'] },
      ),
      asRobot(widgetsPath(), 403),
      kubectl('auth whoami --token={token} --as=grace -o yaml'),
      kubectl('auth whoami --token={token} --as=ada'),
      kubectl('get --raw /api/v1 --token={token} --as=grace --as-group=staff'),
      del(`${rbac}/clusterrolebindings/{ns}`, undefined, { only: ['status'] }),
      del(`${rbac}/clusterroles/{ns}`, undefined, { only: ['status'] }),
    ),
    scenario(
      'kubectl create role and binding',
      kubectl('create role reader --verb=get,list --resource=widgets.conformance.svccloud.example'),
      kubectl('create rolebinding reads --role=reader --serviceaccount={ns}:robot'),
      kubectl('get role reader -o yaml'),
      kubectl('get rolebinding reads -o yaml'),
      kubectl('describe rolebinding reads'),
      kubectl('get rolebinding reads'),
    ),
  ],
}
