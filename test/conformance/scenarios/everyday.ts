import { API_VERSION, configMap, corePath, GROUP, V1, widget, widgetsPath } from '../definitions.ts'
import {
  applyPatch,
  del,
  get,
  jsonPatch,
  kubectl,
  kubectlWith,
  mergePatch,
  post,
  put,
  scenario,
  type Theme,
} from '../scenario.ts'

const shape = {
  only: [
    'metadata.labels',
    'metadata.annotations',
    'metadata.finalizers',
    'metadata.ownerReferences',
    'data',
    'binaryData',
    'spec',
    'immutable',
  ],
}
const refused = { only: ['message', 'reason', 'code', 'details'] }

const CLUSTER_ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles'

/** What people and tools do every day, across the themes. */
export const everyday: Theme = {
  name: 'everyday',
  scenarios: [
    scenario(
      'empty maps and lists of a core kind are not kept',
      post(
        corePath('configmaps'),
        configMap('c', {}, { labels: {}, annotations: {}, finalizers: [], ownerReferences: [] }),
        shape,
      ),
    ),
    scenario(
      'empty metadata of a custom resource is not kept',
      post(
        widgetsPath(),
        widget(
          'a',
          { marks: {}, tags: [], free: {} },
          { labels: {}, annotations: {}, finalizers: [], ownerReferences: [] },
        ),
        shape,
      ),
    ),
    scenario(
      'binary data of a config map',
      post(corePath('configmaps'), { ...configMap('c', { a: 'text' }), binaryData: { b: 'AAEC' } }, shape),
      post(corePath('configmaps'), { ...configMap('d', { a: 'text' }), binaryData: { a: 'AAEC' } }, refused),
      kubectl('describe configmap c'),
    ),
    scenario(
      'string data wins over data in a secret',
      post(
        corePath('secrets'),
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { a: 'b2xk' }, stringData: { a: 'new' } },
        { only: ['data', 'stringData'] },
      ),
    ),
    scenario(
      'unknown query parameters are ignored',
      get(`${widgetsPath()}?pretty=true&nonsense=1`, { only: ['kind', 'items'] }),
    ),
    scenario(
      'a bad limit or timeout is refused',
      get(`${widgetsPath()}?limit=many`, { only: ['code', 'reason'] }),
      get(`${widgetsPath()}?watch=true&timeoutSeconds=soon`, { only: ['code', 'reason'] }),
    ),
    scenario(
      'kubectl get --raw and api-versions',
      kubectl('get --raw /readyz'),
      kubectl(`get --raw ${V1}/namespaces/{ns}/widgets/none`),
    ),
    scenario(
      'kubectl label many at once and list labels',
      kubectlWith('create', widget('a')),
      kubectlWith('create', widget('b')),
      kubectl('label widgets --all team=blue'),
      kubectl('label widgets -l team=blue team=green --overwrite'),
      kubectl('label widget a --list'),
      kubectl('annotate widgets --all note=x'),
      kubectl('annotate widget b --list'),
    ),
    scenario(
      'kubectl label with a resource version',
      kubectlWith('create', widget('a')),
      kubectl('label widget a x=y --resource-version=1'),
    ),
    scenario(
      'kubectl apply of a folder',
      kubectl('apply -f a.json -f b.json', { files: { 'a.json': widget('a'), 'b.json': configMap('b', { k: 'v' }) } }),
      kubectl('get -f a.json -f b.json -o name'),
      kubectl('delete -f a.json -f b.json'),
    ),
    scenario(
      'kubectl apply of a kustomization',
      kubectl('apply -k .', {
        files: {
          'kustomization.yaml': { resources: ['a.json'], namePrefix: 'pre-', commonAnnotations: { by: 'kustomize' } },
          'a.json': widget('a'),
        },
      }),
      kubectl(`get widget pre-a -o 'jsonpath={.metadata.annotations.by}'`),
    ),
    scenario(
      'kubectl replace and edit of a status',
      kubectlWith('create', widget('a')),
      kubectl('edit widget a --subresource=status', { editor: `printf 'status:\\n  phase: Up\\n' >> "$1"` }),
      kubectl(`get widget a -o 'jsonpath={.status.phase}'`),
    ),
    scenario(
      'kubectl apply --server-side to a status',
      kubectlWith('apply --server-side', widget('a')),
      kubectlWith('apply --server-side --subresource=status --field-manager=controller', {
        apiVersion: API_VERSION,
        kind: 'Widget',
        metadata: { name: 'a' },
        status: { phase: 'Up' },
      }),
      kubectl('get widget a -o yaml --show-managed-fields'),
    ),
    scenario(
      'kubectl create with a generated name',
      kubectl('create -f - -o name', {
        stdin: { apiVersion: API_VERSION, kind: 'Widget', metadata: { name: 'fixed' }, spec: { size: 1 } },
      }),
      kubectl('get widgets --no-headers -o name'),
    ),
    scenario(
      'kubectl rollout of a custom resource',
      kubectlWith('create', widget('a')),
      kubectl('rollout status widget/a'),
      kubectl('rollout history widget/a'),
    ),
    scenario(
      'kubectl get all lists the inert kinds',
      kubectlWith('create', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 's' },
        spec: { clusterIP: 'None', selector: { app: 'x' }, ports: [{ port: 80 }] },
      }),
      kubectl('get all -o name'),
    ),
    scenario(
      'kubectl auth reconcile',
      kubectl('auth reconcile -f -', {
        stdin: {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'Role',
          metadata: { name: 'r', namespace: '{ns}' },
          rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
        },
      }),
      kubectl('auth reconcile -f -', {
        stdin: {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'Role',
          metadata: { name: 'r', namespace: '{ns}' },
          rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
        },
      }),
      kubectl('get role r -o yaml'),
    ),
    scenario(
      'kubectl create clusterrole with an aggregation rule',
      kubectl('create clusterrole {ns} --aggregation-rule=part={ns}'),
      kubectl(`get clusterrole {ns} -o 'jsonpath={.aggregationRule}'`),
      kubectl('delete clusterrole {ns}'),
    ),
    scenario(
      'a child of a cluster-scoped owner is collected',
      post(
        CLUSTER_ROLES,
        { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: '{ns}' }, rules: [] },
        { only: ['metadata.name'], remember: { owner: 'metadata.uid' } },
      ),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            ownerReferences: [
              { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: '{ns}', uid: '{owner}' },
            ],
          },
        ),
        { only: ['metadata.name'] },
      ),
      del(`${CLUSTER_ROLES}/{ns}`, undefined, { only: ['status'] }),
      get(corePath('configmaps', 'child'), { until: { status: 404 }, only: ['reason'] }),
    ),
    scenario(
      'a JSON patch of nothing writes nothing',
      post(widgetsPath(), widget('a'), { only: ['metadata.resourceVersion'] }),
      jsonPatch(widgetsPath('a'), [], { only: ['metadata.resourceVersion'] }),
      jsonPatch(widgetsPath('a'), [{ op: 'test', path: '/spec/size', value: 1 }], {
        only: ['metadata.resourceVersion'],
      }),
    ),
    scenario(
      'a JSON patch beyond the end of a list is refused',
      post(widgetsPath(), widget('a', { tags: ['x'] }), { only: ['spec.tags'] }),
      jsonPatch(widgetsPath('a'), [{ op: 'add', path: '/spec/tags/5', value: 'y' }], { only: ['code', 'reason'] }),
      jsonPatch(widgetsPath('a'), [{ op: 'dance', path: '/spec' }], { only: ['code', 'reason'] }),
    ),
    scenario(
      'a replace keeps the status and the creation',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'] }),
      mergePatch(
        `${widgetsPath('a')}/status`,
        { status: { phase: 'Up' } },
        { only: ['status'], remember: { rv: 'metadata.resourceVersion' } },
      ),
      put(widgetsPath('a'), widget('a', { size: 2 }, { resourceVersion: '{rv}' }), {
        only: ['status', 'spec.size', 'metadata.generation', 'metadata.creationTimestamp'],
      }),
    ),
    scenario(
      'several writers each own their part',
      applyPatch(`${widgetsPath('a')}?fieldManager=one`, widget('a', { note: 'n' }), { only: ['spec.note'] }),
      mergePatch(
        `${widgetsPath('a')}?fieldManager=two`,
        { spec: { code: 'abc' }, metadata: { labels: { l: '1' } } },
        { only: ['spec.code'] },
      ),
      mergePatch(`${widgetsPath('a')}/status?fieldManager=three`, { status: { phase: 'Up' } }, { only: ['status'] }),
      kubectl('annotate widget a four=4'),
      get(widgetsPath('a'), { only: ['metadata.managedFields'] }),
    ),
    scenario(
      'an object too large is refused',
      post(corePath('configmaps'), configMap('c', { a: 'x'.repeat(1_100_000) }), {
        only: ['code', 'reason', 'details.causes'],
      }),
      post(
        corePath('secrets'),
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { a: 'x'.repeat(1_100_000) } },
        { only: ['code', 'reason', 'details.causes'] },
      ),
    ),
    scenario(
      'annotations too large are refused',
      post(widgetsPath(), widget('a', {}, { annotations: { big: 'x'.repeat(270_000) } }), {
        only: ['code', 'reason', 'details.causes'],
      }),
    ),
    scenario('kubectl explains by plural and group', kubectl(`explain widgets.${GROUP}.status.conditions`)),
  ],
}
