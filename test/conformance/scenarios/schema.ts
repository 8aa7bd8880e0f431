import { GROUP, V1, widget, widgetsPath } from '../definitions.ts'
import { get, kubectl, kubectlWith, mergePatch, post, put, scenario, type Step, type Theme } from '../scenario.ts'

const refused = { only: ['message', 'reason', 'code', 'details'] }
const bad = (spec: object): Step => post(widgetsPath(), widget('a', spec), refused)
const good = (spec: object): Step => post(widgetsPath(), widget('a', spec), { only: ['spec'] })
const update = (spec: object): Step =>
  mergePatch(widgetsPath('a'), { spec }, { only: ['spec', 'message', 'reason', 'code', 'details.causes'] })
const strict = (path: string) => `${path}?fieldValidation=Strict`

export const validation: Theme = {
  name: 'validation',
  scenarios: [
    scenario('numbers out of bounds', bad({ size: 0 }), bad({ size: 101 })),
    scenario('values outside an enumeration', bad({ color: 'pink' })),
    scenario('strings that are too long', bad({ note: 'x'.repeat(21) })),
    scenario('strings that do not match', bad({ code: 'ABC' })),
    scenario(
      'wrong types',
      bad({ size: 'big' }),
      bad({ note: 5 }),
      bad({ enabled: 'yes' }),
      bad({ tags: 'x' }),
      bad({ marks: [] }),
    ),
    scenario('integers must be whole', bad({ size: 1.5 }), good({ ratio: 1.5 })),
    scenario(
      'an int or a string',
      good({ amount: 5 }),
      mergePatch(widgetsPath('a'), { spec: { amount: '50%' } }, { only: ['spec.amount'] }),
      update({ amount: true }),
    ),
    scenario(
      'a missing required field',
      post(widgetsPath(), { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: { name: 'a' }, spec: {} }, refused),
      post(widgetsPath(), { apiVersion: `${GROUP}/v1`, kind: 'Widget', metadata: { name: 'a' } }, refused),
      bad({ ports: [{ name: 'x' }] }),
    ),
    scenario('bad formats', bad({ at: 'yesterday' }), good({ at: '2026-01-02T03:04:05Z' })),
    scenario('lists that are too long', bad({ steps: ['a', 'b', 'c', 'd', 'e'] })),
    scenario(
      'maps with too many keys',
      bad({ marks: { a: '1', b: '2', c: '3', d: '4' } }),
      bad({ marks: { a: 'x'.repeat(11) } }),
    ),
    scenario('a set with the same value twice', bad({ tags: ['a', 'b', 'a'] })),
    scenario('a list map with the same key twice', bad({ ports: [{ port: 80 }, { port: 80, protocol: 'TCP' }] })),
    scenario('several errors at once', bad({ size: 0, color: 'pink', note: 'x'.repeat(30) })),
    scenario('an object where a list is wanted', bad({ ports: {} })),
    scenario(
      'null where it may not be',
      bad({ steps: null }),
      post(widgetsPath(), widget('b', { note: null }), { only: ['spec'] }),
    ),
    scenario('null where it may be', good({ owner: null })),
    scenario('null for a default', good({ color: null })),
    scenario(
      'defaults are filled in depth',
      good({}),
      mergePatch(widgetsPath('a'), { spec: { limits: { cores: 8 } } }, { only: ['spec.limits'] }),
    ),
    scenario('defaults of list items', good({ ports: [{ port: 80 }] })),
    scenario('unknown fields are pruned', good({ bogus: 1, limits: { odd: true }, ports: [{ port: 80, odd: 1 }] })),
    scenario('free-form fields are kept', good({ free: { any: { thing: [1, 'two', null] } } })),
    scenario(
      'unknown top-level fields are pruned',
      post(widgetsPath(), { ...widget('a'), extra: true }, { only: ['extra', 'spec'] }),
    ),
    scenario(
      'unknown metadata is pruned',
      post(widgetsPath(), widget('a', {}, { odd: true }), { only: ['metadata.odd', 'metadata.name'] }),
    ),
    scenario(
      'a kubectl create with every mistake',
      kubectlWith('create --validate=ignore', widget('a', { size: 0, color: 'pink' })),
    ),
    scenario(
      'a kubectl create with an unknown field',
      kubectlWith('create', widget('a', { bogus: 1 })),
      kubectlWith('create --validate=false', widget('a', { bogus: 1 })),
    ),
    scenario(
      'strict refuses unknown fields',
      post(strict(widgetsPath()), widget('a', { bogus: 1, limits: { odd: 1 } }), refused),
      get(widgetsPath('a'), { only: ['code'] }),
    ),
    scenario(
      'strict refuses duplicate keys',
      post(
        strict(widgetsPath()),
        `{"apiVersion":"${GROUP}/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}`,
        refused,
      ),
    ),
    scenario(
      'warn accepts and says so',
      post(`${widgetsPath()}?fieldValidation=Warn`, widget('a', { bogus: 1 }), { only: ['spec'] }),
      post(
        widgetsPath(),
        `{"apiVersion":"${GROUP}/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"size":1,"size":2}}`,
        { only: ['spec.size'] },
      ),
    ),
    scenario(
      'ignore accepts in silence',
      post(`${widgetsPath()}?fieldValidation=Ignore`, widget('a', { bogus: 1 }), { only: ['spec'] }),
    ),
    scenario(
      'an unknown field validation is refused',
      post(`${widgetsPath()}?fieldValidation=Maybe`, widget('a'), refused),
    ),
    scenario(
      'strict in patches and replaces',
      good({}),
      mergePatch(strict(widgetsPath('a')), { spec: { bogus: 1 } }, refused),
      put(strict(widgetsPath('a')), widget('a', { bogus: 1 }, { resourceVersion: '1' }), refused),
    ),
    scenario('strict knows metadata', post(strict(widgetsPath()), widget('a', {}, { odd: true }), refused)),
    scenario(
      'strict for core kinds',
      post(
        strict('/api/v1/namespaces/{ns}/configmaps'),
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, odd: 1 },
        refused,
      ),
      post(
        '/api/v1/namespaces/{ns}/configmaps',
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, odd: 1 },
        { only: ['odd', 'metadata.name'] },
      ),
    ),
    scenario(
      'a dry run runs everything and stores nothing',
      post(`${widgetsPath()}?dryRun=All`, widget('a')),
      get(widgetsPath('a'), { only: ['code'] }),
      post(`${widgetsPath()}?dryRun=All`, widget('a', { size: 0 }), refused),
    ),
    scenario(
      'a dry run of an update changes nothing',
      good({}),
      mergePatch(
        `${widgetsPath('a')}?dryRun=All`,
        { spec: { size: 7 } },
        { only: ['spec.size', 'metadata.generation'] },
      ),
      get(widgetsPath('a'), { only: ['spec.size', 'metadata.generation'] }),
    ),
    scenario('an unknown dry run is refused', post(`${widgetsPath()}?dryRun=Some`, widget('a'), refused)),
    scenario(
      'a kubectl dry run of each command',
      kubectlWith('create --dry-run=server', widget('a')),
      kubectlWith('create', widget('a')),
      kubectl(`patch widget a --type=merge -p '{"spec":{"size":7}}' --dry-run=server`),
      kubectl('label widget a x=y --dry-run=server'),
      kubectl('delete widget a --dry-run=server'),
      kubectl(`get widget a -o 'jsonpath={.spec.size}{.metadata.labels}'`),
    ),
  ],
}

export const expressions: Theme = {
  name: 'expressions',
  scenarios: [
    scenario('a rule across fields', bad({ min: 5, max: 2 }), good({ min: 2, max: 5 })),
    scenario('a rule across fields on update', good({ min: 2, max: 5 }), update({ max: 1 })),
    scenario(
      'an immutable field',
      good({ zone: 'here' }),
      update({ zone: 'there' }),
      update({ zone: 'here', size: 3 }),
    ),
    scenario('a field that can be neither added nor removed', good({}), update({ zone: 'here' })),
    scenario('a field that cannot be removed', good({ zone: 'here' }), update({ zone: null })),
    scenario('a transition rule does not run on create', good({ zone: 'here' })),
    scenario('rules are skipped when the schema already refuses', bad({ min: 5, max: 2, size: 0 })),
    scenario(
      'kubectl shows the message of a rule',
      kubectlWith('apply', widget('a', { min: 5, max: 2 })),
      kubectlWith('apply', widget('a', { zone: 'here' })),
      kubectlWith('apply', widget('a', { zone: 'there' })),
    ),
    scenario(
      'server-side apply obeys rules',
      kubectlWith('apply --server-side', widget('a', { zone: 'here' })),
      kubectlWith('apply --server-side', widget('a', { zone: 'there' })),
    ),
  ],
}

const status = (
  value: object,
  options: object = { only: ['status', 'spec', 'metadata.generation', 'metadata.labels'] },
): Step => mergePatch(`${widgetsPath('a')}/status`, value, options)

export const subresources: Theme = {
  name: 'subresources',
  scenarios: [
    scenario(
      'create drops the status',
      post(widgetsPath(), { ...widget('a'), status: { phase: 'Up' } }, { only: ['status', 'spec'] }),
    ),
    scenario(
      'the main path ignores the status',
      good({}),
      mergePatch(widgetsPath('a'), { status: { phase: 'Up' } }, { only: ['status', 'metadata.generation'] }),
      mergePatch(
        widgetsPath('a'),
        { spec: { size: 2 }, status: { phase: 'Up' } },
        { only: ['status', 'spec.size', 'metadata.generation'] },
      ),
    ),
    scenario(
      'the status path ignores everything else',
      good({}),
      status({ metadata: { labels: { a: 'b' } }, spec: { size: 9 }, status: { phase: 'Up' } }),
    ),
    scenario(
      'the status path keeps the generation',
      good({}),
      status({ status: { phase: 'Up' } }),
      status({ status: { phase: 'Down' } }),
    ),
    scenario(
      'the status is validated',
      good({}),
      status({ status: { replicas: 'many' } }, refused),
      status({ status: { conditions: [{ type: 'Ready', status: 'Perhaps' }] } }, refused),
      status(
        {
          status: {
            conditions: [
              { type: 'Ready', status: 'True' },
              { type: 'Ready', status: 'True' },
            ],
          },
        },
        refused,
      ),
    ),
    scenario('the status is pruned', good({}), status({ status: { phase: 'Up', odd: 1 } })),
    scenario(
      'the status can be read and replaced',
      good({}),
      get(`${widgetsPath('a')}/status`, {
        only: ['kind', 'spec.size', 'status'],
        remember: { rv: 'metadata.resourceVersion' },
      }),
      put(
        `${widgetsPath('a')}/status`,
        { ...widget('a', {}, { resourceVersion: '{rv}' }), status: { phase: 'Up' } },
        { only: ['status'] },
      ),
      put(
        `${widgetsPath('a')}/status`,
        { ...widget('a', {}, { resourceVersion: '{rv}' }), status: { phase: 'Down' } },
        refused,
      ),
    ),
    scenario('a status of a missing object', mergePatch(`${widgetsPath('missing')}/status`, { status: {} }, refused)),
    scenario('a status cannot be created or deleted', post(`${widgetsPath('a')}/status`, {}, refused), {
      kind: 'request',
      method: 'DELETE',
      path: `${widgetsPath('a')}/status`,
      only: ['reason', 'code', 'message'],
    }),
    scenario('an unknown subresource', good({}), get(`${widgetsPath('a')}/nothing`)),
    scenario(
      'the scale can be read',
      good({ replicas: 3 }),
      status({ status: { replicas: 2, selector: 'app=x' } }, { only: ['status'] }),
      get(`${widgetsPath('a')}/scale`),
    ),
    scenario(
      'the scale is a scale even without counts',
      good({}),
      get(`${widgetsPath('a')}/scale`, { only: ['spec', 'status', 'message', 'code'] }),
    ),
    scenario(
      'the scale can be patched',
      good({ replicas: 3 }),
      mergePatch(`${widgetsPath('a')}/scale`, { spec: { replicas: 5 } }),
      get(widgetsPath('a'), { only: ['spec.replicas', 'metadata.generation', 'metadata.managedFields'] }),
    ),
    scenario(
      'the scale can be replaced',
      good({ replicas: 3 }),
      put(
        `${widgetsPath('a')}/scale`,
        {
          apiVersion: 'autoscaling/v1',
          kind: 'Scale',
          metadata: { name: 'a', namespace: '{ns}' },
          spec: { replicas: 1 },
        },
        { only: ['spec', 'status'] },
      ),
    ),
    scenario(
      'a bad scale is refused',
      good({ replicas: 3 }),
      mergePatch(`${widgetsPath('a')}/scale`, { spec: { replicas: -1 } }, refused),
      put(
        `${widgetsPath('a')}/scale`,
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } },
        { only: ['code', 'reason'] },
      ),
    ),
    scenario(
      'kubectl scale',
      kubectlWith('create', widget('a', { replicas: 1 })),
      kubectl('scale widget a --replicas=4'),
      kubectl('scale widget a --replicas=5 --current-replicas=9'),
      kubectl(`get widget a -o 'jsonpath={.spec.replicas}'`),
      kubectl('get widget a --subresource=scale -o yaml'),
    ),
    scenario(
      'kubectl patch and get of a status',
      kubectlWith('create', widget('a')),
      kubectl(`patch widget a --subresource=status --type=merge -p '{"status":{"phase":"Up"}}'`),
      kubectl('get widget a --subresource=status -o yaml --show-managed-fields'),
    ),
    scenario(
      'kubectl scale where there is no scale',
      post(
        `${V1}/gadgets`,
        { apiVersion: `${GROUP}/v1`, kind: 'Gadget', metadata: { name: 'g-scale' }, spec: {} },
        { only: ['metadata.name'] },
      ),
      kubectl('scale gadget g-scale --replicas=2'),
      { kind: 'request', method: 'DELETE', path: `${V1}/gadgets/g-scale`, only: ['status'] },
    ),
  ],
}
