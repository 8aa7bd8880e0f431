import { API_VERSION, configMap, corePath, GROUP, V1, widget, widgetsPath } from '../definitions.ts'
import { del, get, kubectl, kubectlWith, mergePatch, post, put, scenario, type Theme } from '../scenario.ts'

const gadget = (name: string, spec: object = {}) => ({
  apiVersion: API_VERSION,
  kind: 'Gadget',
  metadata: { name },
  spec,
})

export const crud: Theme = {
  name: 'crud',
  scenarios: [
    scenario('create answers the stored object', post(widgetsPath(), widget('a', { size: 3 })), get(widgetsPath('a'))),
    scenario(
      'kubectl creates, gets and deletes',
      kubectlWith('create', widget('a')),
      kubectl('get widget a -o yaml'),
      kubectl('delete widget a'),
      kubectl('get widget a'),
    ),
    scenario('a created object has generation 1', post(widgetsPath(), widget('a'), { only: ['metadata.generation'] })),
    scenario(
      'create ignores what only the server decides',
      post(
        widgetsPath(),
        widget(
          'a',
          {},
          {
            uid: '11111111-2222-3333-4444-555555555555',
            generation: 44,
            creationTimestamp: '2001-01-01T00:00:00Z',
            deletionTimestamp: '2001-01-01T00:00:00Z',
            selfLink: '/x',
          },
        ),
      ),
    ),
    scenario(
      'create with a resource version is refused',
      post(widgetsPath(), widget('a', {}, { resourceVersion: '1' })),
    ),
    scenario(
      'a generated name ends in five characters',
      post(
        widgetsPath(),
        { apiVersion: API_VERSION, kind: 'Widget', metadata: { generateName: 'made-' }, spec: { size: 1 } },
        { only: ['metadata.generateName', 'metadata.name'], remember: { generated: 'metadata.name' } },
      ),
      get(widgetsPath('{generated}'), { only: ['metadata.generateName'] }),
    ),
    scenario(
      'a name is required',
      post(widgetsPath(), { apiVersion: API_VERSION, kind: 'Widget', metadata: {}, spec: { size: 1 } }),
    ),
    scenario('a name must be a DNS subdomain', post(widgetsPath(), widget('Not_Good'))),
    scenario(
      'a name may not be too long',
      post(widgetsPath(), widget('x'.repeat(254)), { only: ['reason', 'code', 'details.causes.0.reason'] }),
    ),
    scenario(
      'the same name twice already exists',
      kubectlWith('create', widget('a')),
      kubectlWith('create', widget('a')),
      post(widgetsPath(), widget('a')),
    ),
    scenario('the namespace of path and body must agree', post(widgetsPath(), widget('a', {}, { namespace: 'other' }))),
    scenario(
      'the namespace of the path is put into the object',
      post(widgetsPath(), widget('a'), { only: ['metadata.namespace'] }),
    ),
    scenario(
      'the kind must be the one of the path',
      post(widgetsPath(), { ...widget('a'), kind: 'Gadget' }),
      post(widgetsPath(), { ...widget('a'), apiVersion: `${GROUP}/v2` }),
    ),
    scenario(
      'kind and version may be left out of a custom resource never',
      post(widgetsPath(), { metadata: { name: 'a' }, spec: { size: 1 } }),
    ),
    scenario('a namespaced kind cannot be created without a namespace', post(`${V1}/widgets`, widget('a'))),
    scenario(
      'bad JSON is a bad request',
      post(widgetsPath(), '{"apiVersion": ', { only: ['kind', 'status', 'reason', 'code'] }),
    ),
    scenario(
      'a body that is not an object is a bad request',
      post(widgetsPath(), '[]', { only: ['kind', 'status', 'reason', 'code'] }),
    ),
    scenario('an unknown content type is refused', post(widgetsPath(), 'x', { contentType: 'text/csv' })),
    scenario(
      'YAML bodies are accepted',
      post(widgetsPath(), `apiVersion: ${API_VERSION}\nkind: Widget\nmetadata: {name: a}\nspec: {size: 4}\n`, {
        contentType: 'application/yaml',
        only: ['metadata.name', 'spec.size'],
      }),
    ),
    scenario('an unacceptable answer is refused', get(widgetsPath(), { accept: 'text/csv' })),
    scenario(
      'a missing object is not found',
      get(widgetsPath('missing')),
      del(widgetsPath('missing')),
      mergePatch(widgetsPath('missing'), {}),
      put(widgetsPath('missing'), widget('missing', {}, { resourceVersion: '1' })),
    ),
    scenario(
      'replace needs a resource version',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'] }),
      put(widgetsPath('a'), widget('a', { size: 2 })),
    ),
    scenario(
      'replace with the current resource version succeeds',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'], remember: { rv: 'metadata.resourceVersion' } }),
      put(widgetsPath('a'), widget('a', { size: 2 }, { resourceVersion: '{rv}' })),
    ),
    scenario(
      'replace with an old resource version conflicts',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'], remember: { rv: 'metadata.resourceVersion' } }),
      mergePatch(widgetsPath('a'), { spec: { size: 5 } }, { only: ['spec.size'] }),
      put(widgetsPath('a'), widget('a', { size: 2 }, { resourceVersion: '{rv}' })),
    ),
    scenario(
      'replace with another uid conflicts',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'], remember: { rv: 'metadata.resourceVersion' } }),
      put(widgetsPath('a'), widget('a', {}, { resourceVersion: '{rv}', uid: '11111111-2222-3333-4444-555555555555' })),
    ),
    scenario(
      'replace cannot rename',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'], remember: { rv: 'metadata.resourceVersion' } }),
      put(widgetsPath('a'), widget('b', {}, { resourceVersion: '{rv}' })),
    ),
    scenario(
      'replace drops what the new object does not say',
      post(widgetsPath(), widget('a', { note: 'gone', marks: { a: 'b' } }, { labels: { x: 'y' } }), {
        only: ['spec', 'metadata.labels'],
        remember: { rv: 'metadata.resourceVersion' },
      }),
      put(widgetsPath('a'), widget('a', { size: 2 }, { resourceVersion: '{rv}' }), {
        only: ['spec', 'metadata.labels'],
      }),
    ),
    scenario(
      'an identical replace writes nothing',
      post(widgetsPath(), widget('a'), {
        only: ['metadata.resourceVersion'],
        remember: { rv: 'metadata.resourceVersion' },
      }),
      put(`${widgetsPath('a')}?fieldManager=other`, widget('a', {}, { resourceVersion: '{rv}' }), {
        only: ['metadata.name'],
      }),
      get(widgetsPath('a'), { only: ['metadata.resourceVersion', 'metadata.generation'] }),
    ),
    scenario(
      'kubectl replace',
      kubectlWith('create', widget('a')),
      kubectlWith('replace', widget('a', { size: 9 })),
      kubectl(`get widget a -o 'jsonpath={.spec.size}'`),
      kubectlWith('replace', widget('b')),
    ),
    scenario(
      'kubectl replace --force makes a new object',
      kubectlWith('create', widget('a')),
      kubectl('get widget a -o yaml'),
      kubectlWith('replace --force', widget('a', { size: 9 })),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'delete answers a status with the uid',
      post(widgetsPath(), widget('a'), { only: ['metadata.uid'] }),
      del(widgetsPath('a')),
      get(widgetsPath('a')),
    ),
    scenario(
      'delete keeps its preconditions',
      post(widgetsPath(), widget('a'), { only: ['metadata.uid'], remember: { uid: 'metadata.uid' } }),
      del(
        widgetsPath('a'),
        { preconditions: { uid: '11111111-2222-3333-4444-555555555555' } },
        { only: ['reason', 'code', 'details'] },
      ),
      del(widgetsPath('a'), { preconditions: { resourceVersion: '1' } }, { only: ['reason', 'code', 'details'] }),
      del(widgetsPath('a'), { preconditions: { uid: '{uid}' } }),
    ),
    scenario(
      'a dry-run delete deletes nothing',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'] }),
      del(`${widgetsPath('a')}?dryRun=All`),
      get(widgetsPath('a'), { only: ['metadata.name', 'metadata.deletionTimestamp'] }),
    ),
    scenario(
      'delete collection deletes what the selector names',
      post(widgetsPath(), widget('a', {}, { labels: { app: 'x' } }), { only: ['metadata.name'] }),
      post(widgetsPath(), widget('b', {}, { labels: { app: 'y' } }), { only: ['metadata.name'] }),
      post(widgetsPath(), widget('c', {}, { labels: { app: 'x' } }), { only: ['metadata.name'] }),
      del(`${widgetsPath()}?labelSelector=app%3Dx`, undefined, { only: ['kind', 'items.*.metadata.name'] }),
      kubectl('get widgets -o name'),
    ),
    scenario(
      'kubectl delete by selector and --all',
      kubectlWith('create', widget('a', {}, { labels: { app: 'x' } })),
      kubectlWith('create', widget('b')),
      kubectl('delete widgets -l app=x'),
      kubectl('delete widgets --all'),
      kubectl('delete widgets --all'),
      kubectl('delete widget a --ignore-not-found'),
    ),
    scenario(
      'kubectl delete from a file',
      kubectlWith('create', widget('a')),
      kubectlWith('delete', widget('a')),
      kubectlWith('delete', widget('a')),
    ),
    scenario(
      'cluster kinds have no namespace',
      post(`${V1}/gadgets`, gadget('g-plain', { on: true })),
      get(`${V1}/gadgets/g-plain`, { only: ['metadata.namespace', 'spec'] }),
      del(`${V1}/gadgets/g-plain`),
    ),
    scenario(
      'without a status subresource status is data',
      post(
        `${V1}/gadgets`,
        { ...gadget('g-status'), status: { seen: 'yes' } },
        { only: ['status', 'metadata.generation'] },
      ),
      mergePatch(`${V1}/gadgets/g-status`, { status: { seen: 'no' } }, { only: ['status', 'metadata.generation'] }),
      mergePatch(`${V1}/gadgets/g-status/status`, { status: { seen: 'no' } }),
      del(`${V1}/gadgets/g-status`, undefined, { only: ['status'] }),
    ),
    scenario(
      'labels do not raise the generation, spec does',
      post(widgetsPath(), widget('a'), { only: ['metadata.generation'] }),
      mergePatch(widgetsPath('a'), { metadata: { labels: { a: 'b' } } }, { only: ['metadata.generation'] }),
      mergePatch(widgetsPath('a'), { spec: { size: 2 } }, { only: ['metadata.generation'] }),
      mergePatch(widgetsPath('a'), { spec: { size: 2 } }, { only: ['metadata.generation'] }),
    ),
    scenario(
      'labels and annotations are checked',
      post(widgetsPath(), widget('a', {}, { labels: { 'bad key': 'x' } })),
      post(widgetsPath(), widget('a', {}, { labels: { good: 'bad value' } })),
      post(widgetsPath(), widget('a', {}, { annotations: { 'bad key': 'x' } })),
    ),
    scenario(
      'labels must be strings',
      post(widgetsPath(), widget('a', {}, { labels: { a: 1 } }), { only: ['reason', 'code'] }),
    ),
    scenario(
      'kubectl label and annotate',
      kubectlWith('create', widget('a')),
      kubectl('label widget a x=y'),
      kubectl('label widget a x=z'),
      kubectl('label widget a x=z --overwrite'),
      kubectl('annotate widget a note=hello'),
      kubectl('label widget a x-'),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'two versions of a kind show one object',
      post(`/apis/${GROUP}/v1beta1/namespaces/{ns}/doohickeys`, {
        apiVersion: `${GROUP}/v1beta1`,
        kind: 'Doohickey',
        metadata: { name: 'd' },
        spec: { width: 2 },
      }),
      get(`${V1}/namespaces/{ns}/doohickeys/d`),
      get(`/apis/${GROUP}/v1beta1/namespaces/{ns}/doohickeys`, { only: ['kind', 'apiVersion', 'items'] }),
    ),
    scenario(
      'owner references are checked',
      post(
        corePath('configmaps'),
        configMap('a', {}, { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x' }] }),
      ),
      post(
        corePath('configmaps'),
        configMap(
          'a',
          {},
          {
            ownerReferences: [
              {
                apiVersion: 'v1',
                kind: 'ConfigMap',
                name: 'x',
                uid: '11111111-2222-3333-4444-555555555555',
                controller: true,
              },
              {
                apiVersion: 'v1',
                kind: 'ConfigMap',
                name: 'y',
                uid: '11111111-2222-3333-4444-666666666666',
                controller: true,
              },
            ],
          },
        ),
      ),
    ),
    scenario(
      'several documents in one file',
      kubectl('create -f -', {
        stdin: `${JSON.stringify(widget('a'))}\n---\n${JSON.stringify(configMap('b', { k: 'v' }))}`,
      }),
      kubectl('get widget/a configmap/b -o name'),
    ),
    scenario(
      'a list of kinds is created item by item',
      kubectl('apply -f -', { stdin: { apiVersion: 'v1', kind: 'List', items: [widget('a'), widget('b')] } }),
    ),
    scenario(
      'methods that a path does not have are refused',
      { kind: 'request', method: 'PUT', path: widgetsPath(), body: {} },
      { kind: 'request', method: 'POST', path: widgetsPath('a'), body: {} },
    ),
    scenario('no token and a wrong token are unauthorized', get(widgetsPath(), { token: 'wrong' })),
  ],
}
