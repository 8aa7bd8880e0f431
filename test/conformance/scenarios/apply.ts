import { configMap, corePath, widget, widgetsPath } from '../definitions.ts'
import {
  applyPatch,
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

const managers = { only: ['metadata.managedFields', 'spec'] }
const conflict = { only: ['message', 'reason', 'code', 'details'] }
const apply = (manager: string, spec: object, options: object = managers, query = ''): Step =>
  applyPatch(
    `${widgetsPath('a')}?fieldManager=${manager}${query}`,
    { apiVersion: 'conformance.svccloud.example/v1', kind: 'Widget', metadata: { name: 'a' }, spec },
    options,
  )
const fields = (): Step => get(widgetsPath('a'), managers)
const ports = (...items: object[]) => ({ size: 1, ports: items })

export const clientSideApply: Theme = {
  name: 'client-side-apply',
  scenarios: [
    scenario(
      'apply creates, then finds nothing to change',
      kubectlWith('apply', widget('a')),
      kubectlWith('apply', widget('a')),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'apply changes and removes what it set',
      kubectlWith('apply', widget('a', { note: 'x', marks: { a: '1', b: '2' } })),
      kubectlWith('apply', widget('a', { size: 2, marks: { b: '2' } })),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'apply keeps what others set',
      kubectlWith('apply', widget('a')),
      kubectl(`patch widget a --type=merge -p '{"spec":{"note":"theirs"}}'`),
      kubectlWith('apply', widget('a', { size: 3 })),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'apply of an object that was created warns',
      kubectlWith('create', widget('a')),
      kubectlWith('apply', widget('a', { size: 2 })),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'apply of a config map',
      kubectlWith('apply', configMap('c', { a: '1', b: '2' })),
      kubectlWith('apply', configMap('c', { a: '1', c: '3' })),
      kubectl('get configmap c -o yaml'),
      kubectlWith('apply', configMap('c', { a: '1', c: '3' })),
    ),
    scenario(
      'apply refuses an invalid object',
      kubectlWith('apply', widget('a', { color: 'pink' })),
      kubectl('get widgets'),
    ),
    scenario(
      'apply refuses unknown fields',
      kubectlWith('apply', widget('a', { bogus: 1, limits: { odd: 2 } })),
      kubectlWith('apply --validate=warn', widget('a', { bogus: 1 })),
      kubectlWith('apply --validate=ignore', widget('b', { bogus: 1 })),
      kubectl('get widgets -o name'),
    ),
    scenario('apply to a namespace that is missing', kubectlWith('apply -n nowhere', widget('a'))),
    scenario(
      'apply prunes by label',
      kubectl('apply --prune -l app=x --prune-allowlist=core/v1/ConfigMap -f -', {
        stdin: {
          apiVersion: 'v1',
          kind: 'List',
          items: [configMap('a', {}, { labels: { app: 'x' } }), configMap('b', {}, { labels: { app: 'x' } })],
        },
      }),
      kubectl('apply --prune -l app=x --prune-allowlist=core/v1/ConfigMap -f -', {
        stdin: configMap('a', {}, { labels: { app: 'x' } }),
      }),
      kubectl('get configmaps -l app=x -o name'),
    ),
    scenario(
      'apply with a client or server dry run writes nothing',
      kubectlWith('apply --dry-run=client', widget('a')),
      kubectlWith('apply --dry-run=server', widget('a')),
      kubectlWith('apply --dry-run=server -o yaml', widget('a')),
      kubectl('get widgets'),
    ),
    scenario('diff shows a new object', kubectlWith('diff', configMap('c', { a: '1' })), kubectl('get configmap c')),
    scenario(
      'diff shows a change and says nothing about none',
      kubectlWith('apply', widget('a')),
      kubectlWith('diff', widget('a')),
      kubectlWith('diff', widget('a', { size: 2 })),
    ),
    scenario(
      'diff on the server side',
      kubectlWith('apply --server-side', widget('a')),
      kubectlWith('diff --server-side', widget('a')),
      kubectlWith('diff --server-side', widget('a', { size: 2 })),
    ),
    scenario(
      'view-last-applied',
      kubectlWith('apply', widget('a', { size: 4 })),
      kubectl('apply view-last-applied widget a'),
    ),
  ],
}

export const serverSideApply: Theme = {
  name: 'server-side-apply',
  scenarios: [
    scenario('an applied object is created with 201 and owned', apply('one', { size: 1, note: 'x' }, {})),
    scenario('defaults are not owned by the applier', apply('one', { size: 1 }), fields()),
    scenario('a second manager shares an equal value', apply('one', { size: 1 }), apply('two', { size: 1 })),
    scenario('a different value conflicts', apply('one', { size: 1 }), apply('two', { size: 2 }, conflict), fields()),
    scenario(
      'several conflicts are listed',
      apply('one', { size: 1, note: 'x', color: 'blue' }),
      apply('two', { size: 2, note: 'y', color: 'green' }, conflict),
    ),
    scenario('force takes ownership', apply('one', { size: 1 }), apply('two', { size: 2 }, managers, '&force=true')),
    scenario(
      'what a manager no longer applies is removed',
      apply('one', { size: 1, note: 'x', marks: { a: '1' } }),
      apply('one', { size: 1 }),
    ),
    scenario(
      'what another manager still owns stays',
      apply('one', { size: 1, note: 'x' }),
      apply('two', { size: 1, note: 'x' }),
      apply('one', { size: 1 }),
      apply('two', { size: 1 }),
    ),
    scenario(
      'a default returns when its field is no longer applied',
      apply('one', { size: 1, color: 'blue' }),
      apply('one', { size: 1 }),
    ),
    scenario(
      'an update takes the fields it changes',
      apply('one', { size: 1, note: 'x' }),
      mergePatch(`${widgetsPath('a')}?fieldManager=editor`, { spec: { note: 'y' } }, managers),
      apply('one', { size: 1, note: 'x' }, conflict),
    ),
    scenario(
      'the same apply twice writes nothing',
      apply('one', { size: 1 }, { only: ['metadata.resourceVersion'] }),
      apply('one', { size: 1 }, { only: ['metadata.resourceVersion', 'metadata.generation'] }),
    ),
    scenario(
      'a list map is merged by its keys',
      apply('one', ports({ port: 80, name: 'http' })),
      apply('two', ports({ port: 443, name: 'https' })),
      apply('one', ports()),
    ),
    scenario(
      'an item of a list map conflicts by field',
      apply('one', ports({ port: 80, name: 'http' })),
      apply('two', ports({ port: 80, name: 'web' }), conflict),
    ),
    scenario(
      'a key of a list map may come from its default',
      apply('one', ports({ port: 53, protocol: 'UDP' }, { port: 53 })),
    ),
    scenario('a key of a list map twice is refused', apply('one', ports({ port: 80 }, { port: 80 }), conflict)),
    scenario(
      'a set is merged by its values',
      apply('one', { size: 1, tags: ['a', 'b'] }),
      apply('two', { size: 1, tags: ['b', 'c'] }),
      apply('one', { size: 1, tags: ['a'] }),
    ),
    scenario(
      'an atomic list is replaced and conflicts whole',
      apply('one', { size: 1, steps: ['a', 'b'] }),
      apply('two', { size: 1, steps: ['a'] }, conflict),
      apply('two', { size: 1, steps: ['c'] }, managers, '&force=true'),
    ),
    scenario(
      'an atomic map is owned whole',
      apply('one', { size: 1, unit: { name: 'x', power: 1 } }),
      apply('two', { size: 1, unit: { name: 'x' } }, conflict),
    ),
    scenario(
      'a map is owned by its keys',
      apply('one', { size: 1, marks: { a: '1' } }),
      apply('two', { size: 1, marks: { b: '2' } }),
      apply('two', { size: 1 }),
    ),
    scenario(
      'free-form fields are owned in depth',
      apply('one', { size: 1, free: { a: { b: 1 } } }),
      apply('two', { size: 1, free: { a: { c: [1, 2] } } }),
    ),
    scenario('unknown fields are refused', apply('one', { size: 1, bogus: true }, conflict)),
    scenario('invalid values are refused', apply('one', { size: 1000 }, conflict)),
    scenario('a wrong type is refused', apply('one', { size: 'big' }, conflict)),
    scenario('a field manager is required', applyPatch(widgetsPath('a'), widget('a'))),
    scenario(
      'managed fields in the body are refused',
      applyPatch(
        `${widgetsPath('a')}?fieldManager=one`,
        widget(
          'a',
          {},
          {
            managedFields: [
              { manager: 'x', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: {} },
            ],
          },
        ),
      ),
    ),
    scenario('the name must be the one of the path', applyPatch(`${widgetsPath('a')}?fieldManager=one`, widget('b'))),
    scenario(
      'kind and version must be given',
      applyPatch(`${widgetsPath('a')}?fieldManager=one`, { metadata: { name: 'a' } }, conflict),
    ),
    scenario('force is only for applying', mergePatch(`${widgetsPath('a')}?force=true`, {}, conflict)),
    scenario(
      'labels and annotations are owned by key',
      applyPatch(
        `${widgetsPath('a')}?fieldManager=one`,
        widget('a', {}, { labels: { a: '1' }, annotations: { x: 'y' } }),
        { only: ['metadata.managedFields'] },
      ),
      applyPatch(`${widgetsPath('a')}?fieldManager=two`, widget('a', {}, { labels: { b: '2' } }), {
        only: ['metadata.labels', 'metadata.managedFields'],
      }),
      applyPatch(`${widgetsPath('a')}?fieldManager=one`, widget('a'), {
        only: ['metadata.labels', 'metadata.annotations'],
      }),
    ),
    scenario(
      'finalizers are a set',
      applyPatch(`${widgetsPath('a')}?fieldManager=one`, widget('a', {}, { finalizers: ['example.com/a'] }), {
        only: ['metadata.finalizers', 'metadata.managedFields'],
      }),
      applyPatch(`${widgetsPath('a')}?fieldManager=two`, widget('a', {}, { finalizers: ['example.com/b'] }), {
        only: ['metadata.finalizers'],
      }),
      applyPatch(`${widgetsPath('a')}?fieldManager=one`, widget('a'), { only: ['metadata.finalizers'] }),
      applyPatch(`${widgetsPath('a')}?fieldManager=two`, widget('a'), { only: ['metadata.finalizers'] }),
    ),
    scenario(
      'status is applied to its subresource only',
      apply('one', { size: 1 }, { only: ['status'] }),
      applyPatch(
        `${widgetsPath('a')}/status?fieldManager=controller`,
        {
          apiVersion: 'conformance.svccloud.example/v1',
          kind: 'Widget',
          metadata: { name: 'a' },
          status: { phase: 'Up', conditions: [{ type: 'Ready', status: 'True', reason: 'Done' }] },
        },
        { only: ['metadata.managedFields', 'metadata.generation', 'status'] },
      ),
      applyPatch(
        `${widgetsPath('a')}/status?fieldManager=other`,
        {
          apiVersion: 'conformance.svccloud.example/v1',
          kind: 'Widget',
          metadata: { name: 'a' },
          status: { conditions: [{ type: 'Ready', status: 'False' }] },
        },
        conflict,
      ),
    ),
    scenario(
      'a scale change conflicts with an applied count',
      apply('one', { size: 1, replicas: 2 }),
      kubectl('scale widget a --replicas=5'),
      fields(),
      apply('one', { size: 1, replicas: 2 }, conflict),
    ),
    scenario(
      'an apply with an old resource version conflicts',
      apply('one', { size: 1 }, { only: ['metadata.name'], remember: { rv: 'metadata.resourceVersion' } }),
      mergePatch(widgetsPath('a'), { spec: { note: 'x' } }, { only: ['spec.note'] }),
      applyPatch(`${widgetsPath('a')}?fieldManager=one`, widget('a', {}, { resourceVersion: '{rv}' }), conflict),
    ),
    scenario(
      'an apply with a uid creates nothing',
      applyPatch(
        `${widgetsPath('a')}?fieldManager=one`,
        widget('a', {}, { uid: '11111111-2222-3333-4444-555555555555' }),
        conflict,
      ),
    ),
    scenario(
      'a dry run of an apply writes nothing',
      apply('one', { size: 1 }, managers, '&dryRun=All'),
      get(widgetsPath('a'), { only: ['code'] }),
    ),
    scenario(
      'managed fields can be cleared',
      apply('one', { size: 1 }),
      mergePatch(widgetsPath('a'), { metadata: { managedFields: [{}] } }, { only: ['metadata.managedFields'] }),
      apply('two', { size: 2 }),
    ),
    scenario(
      'managed fields can be taken out by an update',
      post(widgetsPath(), widget('a'), { only: ['metadata.name'] }),
      jsonPatch(widgetsPath('a'), [{ op: 'replace', path: '/metadata/managedFields', value: [{}] }], {
        only: ['metadata.managedFields'],
      }),
    ),
    scenario(
      'create and update are told apart by their manager',
      post(`${widgetsPath()}?fieldManager=maker`, widget('a'), {
        only: ['metadata.managedFields'],
        remember: { rv: 'metadata.resourceVersion' },
      }),
      put(`${widgetsPath('a')}?fieldManager=changer`, widget('a', { note: 'x' }, { resourceVersion: '{rv}' }), {
        only: ['metadata.managedFields'],
      }),
    ),
    scenario(
      'the manager is taken from the user agent',
      post(widgetsPath(), widget('a'), {
        headers: { 'user-agent': 'my-tool/1.2 (linux)' },
        only: ['metadata.managedFields.0.manager'],
      }),
    ),
    scenario(
      'a field manager may not be too long',
      post(`${widgetsPath()}?fieldManager=${'m'.repeat(129)}`, widget('a'), conflict),
    ),
    scenario(
      'an update that removes a field takes it from every manager',
      apply('one', { size: 1, note: 'x' }),
      mergePatch(`${widgetsPath('a')}?fieldManager=editor`, { spec: { note: null } }, managers),
    ),
    scenario(
      'config maps are applied by key',
      applyPatch(`${corePath('configmaps', 'c')}?fieldManager=one`, configMap('c', { a: '1' }), {
        only: ['data', 'metadata.managedFields'],
      }),
      applyPatch(`${corePath('configmaps', 'c')}?fieldManager=two`, configMap('c', { b: '2' }), { only: ['data'] }),
      applyPatch(`${corePath('configmaps', 'c')}?fieldManager=two`, configMap('c', { a: '9' }), conflict),
    ),
    scenario(
      'kubectl apply --server-side',
      kubectlWith('apply --server-side', widget('a', { size: 1 })),
      kubectlWith('apply --server-side', widget('a', { size: 2 })),
      kubectlWith('apply --server-side', widget('a', { size: 2 })),
      kubectl('get widget a -o yaml --show-managed-fields'),
    ),
    scenario(
      'kubectl names the conflict and how to go on',
      kubectlWith('apply --server-side --field-manager=one', widget('a')),
      kubectlWith('apply --server-side --field-manager=two', widget('a', { size: 2 })),
      kubectlWith('apply --server-side --field-manager=two --force-conflicts', widget('a', { size: 2 })),
      kubectl('get widget a -o yaml --show-managed-fields'),
    ),
    scenario(
      'kubectl moves from client-side to server-side apply',
      kubectlWith('apply', widget('a', { note: 'x' })),
      kubectlWith('apply --server-side', widget('a', { note: 'x' })),
      kubectl('get widget a -o yaml --show-managed-fields'),
      kubectlWith('apply --server-side', widget('a')),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'kubectl edit after server-side apply owns what it changed',
      kubectlWith('apply --server-side', widget('a')),
      kubectl('edit widget a', { editor: `sed -i 's/size: 1/size: 5/' "$1"` }),
      kubectl('get widget a -o yaml --show-managed-fields'),
      kubectlWith('apply --server-side', widget('a')),
    ),
    scenario(
      'a label by kubectl has its own manager',
      kubectlWith('apply --server-side', widget('a')),
      kubectl('label widget a x=y'),
      kubectl('annotate widget a note=here'),
      kubectl('get widget a -o yaml --show-managed-fields'),
    ),
  ],
}
