import { configMap, corePath, V1, widget, widgetsPath } from '../definitions.ts'
import { get, kubectl, kubectlWith, mergePatch, post, scenario, type Step, type Theme } from '../scenario.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
const made = (name: string, spec: object = {}, labels: object = {}): Step =>
  post(widgetsPath(), widget(name, spec, { labels }), {
    only: ['metadata.name'],
    remember: { rv: 'metadata.resourceVersion' },
  })
const five = ['a', 'b', 'c', 'd', 'e'].map((name, index) =>
  made(
    name,
    { size: index + 1, color: index % 2 ? 'red' : 'blue' },
    { app: name < 'c' ? 'x' : 'y', ...(name === 'e' ? { extra: 'yes' } : {}) },
  ),
)
const names = ['items.*.metadata.name']
const page = {
  only: [...names, 'metadata.remainingItemCount', 'metadata.continue'],
  remember: { next: 'metadata.continue' },
}
const select = (query: string): Step => get(`${widgetsPath()}?${query}`, { only: names })
const refused = { only: ['message', 'reason', 'code'] }

export const listing: Theme = {
  name: 'listing',
  scenarios: [
    scenario(
      'an empty list',
      get(widgetsPath(), { only: ['kind', 'apiVersion', 'items', 'metadata.continue'] }),
      kubectl('get widgets'),
      kubectl('get widgets -o yaml'),
    ),
    scenario('a list is ordered by name', ...[...five].reverse(), get(widgetsPath(), { only: ['kind', ...names] })),
    scenario('items of a list say their kind', made('a'), get(widgetsPath(), { only: ['kind', 'items'] })),
    scenario(
      'items of a core list do not say their kind',
      post(corePath('configmaps'), configMap('c', { a: '1' }), { only: ['data'] }),
      get(`${corePath('configmaps')}?fieldSelector=metadata.name%3Dc`, { only: ['kind', 'apiVersion', 'items'] }),
    ),
    scenario(
      'pages follow one another',
      ...five,
      get(`${widgetsPath()}?limit=2`, page),
      get(`${widgetsPath()}?limit=2&continue={next}`, page),
      get(`${widgetsPath()}?limit=2&continue={next}`, page),
    ),
    scenario(
      'a page shows what was there when the first was read',
      ...five,
      get(`${widgetsPath()}?limit=2`, page),
      made('aa'),
      mergePatch(widgetsPath('d'), { spec: { size: 99 } }, { only: ['spec.size'] }),
      get(`${widgetsPath()}?limit=5&continue={next}`, { only: [...names, 'items.1.spec.size'] }),
    ),
    scenario(
      'a page with a selector does not count the rest',
      ...five,
      get(`${widgetsPath()}?limit=1&labelSelector=app%3Dx`, page),
      get(`${widgetsPath()}?limit=1&labelSelector=app%3Dx&continue={next}`, page),
    ),
    scenario('a bad continue token is refused', get(`${widgetsPath()}?limit=2&continue=nonsense`, refused)),
    scenario(
      'a continue token with a revision is refused',
      ...five.slice(0, 3),
      get(`${widgetsPath()}?limit=2`, page),
      get(`${widgetsPath()}?limit=2&continue={next}&resourceVersion={rv}`, refused),
    ),
    scenario('kubectl asks in chunks', ...five, kubectl('get widgets --chunk-size=2 -o name')),
    scenario(
      'a list not older than a revision',
      made('a'),
      get(`${widgetsPath()}?resourceVersion={rv}&resourceVersionMatch=NotOlderThan`, { only: names }),
      get(`${widgetsPath()}?resourceVersion=0`, { only: names }),
    ),
    scenario(
      'a list at an exact revision',
      made('a'),
      made('b'),
      get(`${widgetsPath()}?resourceVersion={rv}&resourceVersionMatch=Exact`, { only: names }),
      made('c'),
      get(widgetsPath(), { only: names }),
    ),
    scenario(
      'a list at an exact old revision does not see what came later',
      made('a'),
      get(widgetsPath('a'), { only: ['metadata.name'], remember: { old: 'metadata.resourceVersion' } }),
      made('b'),
      get(`${widgetsPath()}?resourceVersion={old}&resourceVersionMatch=Exact`, { only: names }),
    ),
    scenario(
      'a match without a revision is refused',
      get(`${widgetsPath()}?resourceVersionMatch=Exact`, refused),
      get(`${widgetsPath()}?resourceVersionMatch=Sometimes&resourceVersion=1`, refused),
      get(`${widgetsPath()}?resourceVersionMatch=Exact&resourceVersion=0`, refused),
    ),
    scenario(
      'a revision from the future is too large',
      get(`${widgetsPath()}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan`, {
        only: ['reason', 'code', 'details.causes', 'details.retryAfterSeconds'],
      }),
    ),
    scenario(
      'a get from the future is too large',
      made('a'),
      get(`${widgetsPath('a')}?resourceVersion=999999999`, {
        only: ['reason', 'code', 'details.causes', 'details.retryAfterSeconds'],
      }),
    ),
    scenario('a bad revision is refused', get(`${widgetsPath()}?resourceVersion=abc`, refused)),
    scenario(
      'equality selectors',
      ...five,
      select('labelSelector=app%3Dx'),
      select('labelSelector=app%3D%3Dy'),
      select('labelSelector=app!%3Dx'),
    ),
    scenario(
      'set selectors',
      ...five,
      select('labelSelector=app%20in%20(x,z)'),
      select('labelSelector=app%20notin%20(x)'),
      select('labelSelector=extra'),
      select('labelSelector=!extra'),
    ),
    scenario(
      'several requirements must all hold',
      ...five,
      select('labelSelector=app%3Dy,extra%3Dyes'),
      select('labelSelector=app%3Dx,extra'),
    ),
    scenario(
      'number selectors',
      made('a', {}, { weight: '5' }),
      made('b', {}, { weight: '15' }),
      select('labelSelector=weight%3E10'),
      select('labelSelector=weight%3C10'),
    ),
    scenario(
      'bad label selectors are refused',
      get(`${widgetsPath()}?labelSelector=app%20in%20x`, refused),
      get(`${widgetsPath()}?labelSelector=a%20b%20c`, refused),
      get(`${widgetsPath()}?labelSelector=app%3D%3D%3Dx`, refused),
    ),
    scenario(
      'field selectors of metadata',
      ...five,
      select('fieldSelector=metadata.name%3Db'),
      select('fieldSelector=metadata.name!%3Db'),
      get(`${V1}/widgets?fieldSelector=metadata.namespace%3D{ns},metadata.name%3Da`, { only: names }),
    ),
    scenario(
      'selectable fields',
      ...five,
      select('fieldSelector=spec.color%3Dblue'),
      select('fieldSelector=spec.size%3D3'),
      select('fieldSelector=spec.color!%3Dblue,spec.size%3D2'),
      kubectl('get widgets --field-selector=spec.color=blue -o name'),
    ),
    scenario(
      'other fields cannot be selected',
      get(`${widgetsPath()}?fieldSelector=spec.note%3Dx`),
      kubectl('get widgets --field-selector=spec.note=x'),
      get(`${widgetsPath()}?fieldSelector=nonsense`, refused),
    ),
    scenario(
      'all namespaces at once',
      made('only-here'),
      kubectl('get widgets -A --field-selector=metadata.name=only-here'),
    ),
    scenario(
      'a table of a custom resource',
      made('a', { size: 4 }),
      mergePatch(
        `${widgetsPath('a')}/status`,
        {
          status: {
            conditions: [
              { type: 'Other', status: 'False' },
              { type: 'Ready', status: 'True' },
            ],
          },
        },
        { only: ['status'] },
      ),
      get(widgetsPath(), { accept: TABLE }),
      get(widgetsPath('a'), { accept: TABLE, only: ['kind', 'rows.0.cells'] }),
    ),
    scenario(
      'a table with whole objects or none',
      made('a'),
      get(`${widgetsPath()}?includeObject=Object`, {
        accept: TABLE,
        only: ['rows.0.object.kind', 'rows.0.object.spec'],
      }),
      get(`${widgetsPath()}?includeObject=None`, { accept: TABLE, only: ['rows.0.object'] }),
    ),
    scenario(
      'kubectl get prints columns, -o wide prints more',
      made('a', { size: 4, color: 'blue' }),
      kubectl('get widgets'),
      kubectl('get widgets -o wide'),
      kubectl('get widget a --show-labels'),
      kubectl('get widgets --no-headers'),
      kubectl('get widgets -L app'),
    ),
    scenario(
      'kubectl get sorts and shapes',
      ...five,
      kubectl(`get widgets --sort-by=.spec.size`),
      kubectl(`get widgets -o 'custom-columns=N:.metadata.name,S:.spec.size'`),
      kubectl(`get widgets -o 'jsonpath={.items[*].spec.size}'`),
      kubectl(`get widgets -o 'go-template={{range .items}}{{.metadata.name}} {{end}}'`),
    ),
    scenario(
      'a table of core kinds',
      post(corePath('configmaps'), configMap('c', { a: '1', b: '2' }), { only: ['data'] }),
      kubectl('get configmap c'),
      post(
        corePath('secrets'),
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData: { a: 'b' } },
        { only: ['type'] },
      ),
      kubectl('get secret s'),
      kubectl('get namespace {ns}'),
    ),
    scenario(
      'metadata only',
      made('a'),
      get(widgetsPath('a'), { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }),
      get(widgetsPath(), {
        accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
        only: ['kind', 'apiVersion', 'items.0.kind', 'items.0.apiVersion', 'items.0.spec'],
      }),
    ),
    scenario(
      'kubectl describe a custom resource',
      kubectlWith('create', widget('a', { size: 4, tags: ['x', 'y'], ports: [{ port: 80 }] })),
      kubectl('describe widget a'),
    ),
    scenario(
      'kubectl describe shows events',
      kubectlWith('create', widget('a')),
      get(widgetsPath('a'), { only: ['metadata.name'], remember: { uid: 'metadata.uid' } }),
      post(
        corePath('events'),
        {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: 'a.1' },
          involvedObject: {
            apiVersion: 'conformance.svccloud.example/v1',
            kind: 'Widget',
            name: 'a',
            namespace: '{ns}',
            uid: '{uid}',
          },
          reason: 'Started',
          message: 'It started',
          type: 'Normal',
          count: 1,
          source: { component: 'test' },
        },
        { only: ['reason'] },
      ),
      kubectl('describe widget a --show-events=true'),
      kubectl('events --for widget/a --no-headers'),
    ),
    scenario(
      'kubectl get of several kinds at once',
      kubectlWith('create', widget('a')),
      kubectlWith('create', configMap('c')),
      kubectl('get widget/a configmap/c'),
      kubectl('get widgets,configmaps -o name --field-selector=metadata.name!=kube-root-ca.crt'),
    ),
    scenario(
      'kubectl get of a missing one among others',
      kubectlWith('create', widget('a')),
      kubectl('get widget a missing'),
      kubectl('get widget missing --ignore-not-found'),
    ),
  ],
}
