import { API_VERSION, GROUP, V1, widget } from '../definitions.ts'
import { get, kubectl, kubectlWith, scenario, type Theme } from '../scenario.ts'

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

export const discovery: Theme = {
  name: 'discovery',
  scenarios: [
    scenario('health endpoints answer ok', get('/livez'), get('/readyz'), get('/healthz')),
    scenario('the version can be parsed', get('/version', { only: ['major'] })),
    scenario('the core group lists its versions', get('/api', { only: ['kind', 'versions'] })),
    scenario('a group lists its versions and the preferred one', get(`/apis/${GROUP}`)),
    scenario('a group version lists its resources', get(V1)),
    scenario('a second version of a group lists its own resources', get(`/apis/${GROUP}/v1beta1`)),
    scenario(
      'aggregated discovery names kinds, verbs and subresources',
      kubectl(`api-resources --api-group=${GROUP} -o wide`),
      get('/apis', { accept: AGGREGATED, only: ['kind', 'apiVersion'] }),
    ),
    scenario(
      'aggregated discovery answers 304 to its own tag',
      get('/api', { accept: AGGREGATED, only: ['kind', 'apiVersion', 'metadata'], rememberHeaders: { tag: 'etag' } }),
      get('/api', { accept: AGGREGATED, headers: { 'if-none-match': '{tag}' } }),
    ),
    scenario(
      'api-resources knows namespaced and cluster kinds',
      kubectl(`api-resources --api-group=${GROUP} --namespaced=true -o name`),
      kubectl(`api-resources --api-group=${GROUP} --namespaced=false -o name`),
    ),
    scenario('api-resources finds a category', kubectl('api-resources --categories=conformance')),
    scenario('an unknown path is not found', get('/nothing/here')),
    scenario('an unknown group is not found', get('/apis/unknown.example/v1')),
    scenario('an unknown version is not found', get(`/apis/${GROUP}/v9`)),
    scenario('an unknown resource is not found', get(`${V1}/namespaces/{ns}/sprockets`)),
    scenario('an unknown core resource is not found', get('/api/v1/namespaces/{ns}/sprockets')),
    scenario(
      'kubectl names an unknown kind',
      kubectl('get sprockets'),
      kubectlWith('apply', { apiVersion: API_VERSION, kind: 'Sprocket', metadata: { name: 'a' } }),
    ),
    scenario(
      'short names, singular, plural and qualified names find a resource',
      kubectlWith('create', widget('a')),
      kubectl('get wd -o name'),
      kubectl('get widget -o name'),
      kubectl('get widgets -o name'),
      kubectl(`get widgets.${GROUP} -o name`),
      kubectl(`get widgets.v1.${GROUP} -o name`),
    ),
    scenario('a category lists all its kinds', kubectlWith('create', widget('a')), kubectl('get conformance -o name')),
    scenario('explain describes a kind', kubectl('explain widget')),
    scenario('explain describes a field', kubectl('explain widget.spec.color'), kubectl('explain widget.spec.ports')),
    scenario('explain shows the tree', kubectl('explain widget.spec --recursive')),
    scenario('explain refuses an unknown field', kubectl('explain widget.spec.nothing')),
    scenario('explain chooses a version', kubectl(`explain doohickeys --api-version=${GROUP}/v1beta1 --recursive`)),
    scenario('explain describes a core kind', kubectl('explain configmap.immutable')),
  ],
}
