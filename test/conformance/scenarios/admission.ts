import { API_VERSION, configMap, corePath, GROUP, widget, widgetsPath } from '../definitions.ts'
import {
  del,
  get,
  kubectl,
  kubectlWith,
  mergePatch,
  post,
  reviews,
  scenario,
  type Step,
  type Theme,
  webhook,
} from '../scenario.ts'

const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
const refused = { only: ['message', 'reason', 'code', 'details'] }

/** A configuration that sends this scenario's widgets to the webhook. */
const configuration = (
  more: object = {},
  {
    operations = ['CREATE', 'UPDATE', 'DELETE'],
    resources = ['widgets'],
  }: { operations?: string[]; resources?: string[] } = {},
) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: '{ns}' },
  webhooks: [
    {
      name: 'notes.conformance.svccloud.example',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      timeoutSeconds: 5,
      clientConfig: { url: '{webhookUrl}', caBundle: '{webhookCa}' },
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': '{ns}' } },
      rules: [{ apiGroups: [GROUP], apiVersions: ['v1'], operations, resources }],
      ...more,
    },
  ],
})

/** Registers the webhook and waits until it is asked, which real servers learn from a watch. */
const registered = (...of: Parameters<typeof configuration>): readonly Step[] => [
  webhook,
  post(configurations, configuration(...of), { only: ['metadata.name'] }),
  post(`${widgetsPath()}?dryRun=All`, widget('probe', { note: 'refused' }), { until: { status: 403 }, only: ['code'] }),
]
/** Asked about changes; also about creations, by which `registered` sees that it is asked. */
const CHANGES = { operations: ['CREATE', 'UPDATE'] }
const FINALIZER = 'example.com/hold'

/** A widget that may own others: its uid is remembered by its name. */
const owner = (name = 'owner', note = 'fine'): Step =>
  post(widgetsPath(), widget(name, { note }), { only: ['code'], remember: { [name]: 'metadata.uid' } })
const owned = (name: string, note: string, reference: object = {}, owners: readonly string[] = ['owner']): Step =>
  post(
    widgetsPath(),
    widget(
      name,
      { note },
      {
        ownerReferences: owners.map((of) => ({
          apiVersion: API_VERSION,
          kind: 'Widget',
          name: of,
          uid: `{${of}}`,
          ...reference,
        })),
      },
    ),
    { only: ['code'] },
  )
const deleteOwner = (propagationPolicy: string): Step =>
  del(widgetsPath('owner'), { propagationPolicy }, { only: ['status', 'metadata.finalizers'] })
const gone = (name: string): Step => get(widgetsPath(name), { until: { status: 404 }, only: ['reason'] })
const state = {
  only: ['metadata.name', 'metadata.deletionTimestamp', 'metadata.finalizers', 'metadata.ownerReferences.*.name'],
}
const deleteNamespace = del('/api/v1/namespaces/{ns}', undefined, { only: ['status.phase'] })
const namespaceGone = get('/api/v1/namespaces/{ns}', { until: { status: 404 }, only: ['reason'] })
const conditions = { only: ['spec.finalizers', 'status'] }
const asked = reviews(
  'request.operation',
  'request.name',
  'request.namespace',
  'request.userInfo.username',
  'request.userInfo.groups',
  'request.options',
  'request.oldObject.metadata.name',
)
const removed = (): Step => del(`${configurations}/{ns}`, undefined, { only: ['status'] })

export const admission: Theme = {
  name: 'admission',
  scenarios: [
    scenario(
      'a webhook refuses with its own words',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'refused' })),
      post(widgetsPath(), widget('a', { note: 'fine' }), { only: ['spec.note'] }),
      mergePatch(widgetsPath('a'), { spec: { note: 'refused' } }, refused),
      removed(),
    ),
    scenario(
      'a webhook chooses the code and reason',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'invalid' }), refused),
      removed(),
    ),
    scenario(
      'warnings of a webhook reach the client',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'odd' }), { only: ['spec.note'] }),
      kubectlWith('create', widget('b', { note: 'odd' })),
      removed(),
    ),
    scenario(
      'kubectl prints the refusal of a webhook',
      ...registered(),
      kubectlWith('apply', widget('a', { note: 'refused' })),
      kubectlWith('apply --server-side', widget('a', { note: 'refused' })),
      kubectl('get widgets'),
      removed(),
    ),
    scenario(
      'what a webhook is told of a creation',
      ...registered(),
      post(`${widgetsPath()}?fieldManager=maker`, widget('a', { note: 'fine' }), { only: ['spec'] }),
      reviews(
        'apiVersion',
        'kind',
        'request.operation',
        'request.kind',
        'request.resource',
        'request.requestKind',
        'request.name',
        'request.namespace',
        'request.dryRun',
        'request.oldObject',
        'request.object.spec',
        'request.object.metadata.name',
        'request.object.metadata.generation',
        'request.options',
      ),
      removed(),
    ),
    scenario(
      'what a webhook is told of a change',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'fine' }), { only: ['spec.note'] }),
      reviews('request.operation'),
      mergePatch(widgetsPath('a'), { spec: { note: 'better' } }, { only: ['spec.note'] }),
      reviews(
        'request.operation',
        'request.name',
        'request.object.spec.note',
        'request.oldObject.spec.note',
        'request.options.kind',
        'request.userInfo.groups',
      ),
      removed(),
    ),
    scenario(
      'what a webhook is told of a deletion',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'fine' }), { only: ['spec.note'] }),
      reviews('request.operation'),
      del(widgetsPath('a'), undefined, { only: ['status'] }),
      reviews(
        'request.operation',
        'request.name',
        'request.object',
        'request.oldObject.spec.note',
        'request.options.kind',
      ),
      removed(),
    ),
    scenario(
      'a webhook can refuse a deletion',
      webhook,
      post(widgetsPath(), widget('a', { note: 'refused' }), { only: ['spec.note'] }),
      post(configurations, configuration(), { only: ['metadata.name'] }),
      post(`${widgetsPath()}?dryRun=All`, widget('probe', { note: 'refused' }), {
        until: { status: 403 },
        only: ['code'],
      }),
      del(widgetsPath('a'), undefined, refused),
      kubectl('delete widget a'),
      removed(),
      del(widgetsPath('a'), undefined, { until: { status: 200 }, only: ['status'] }),
    ),
    scenario(
      'the garbage collector asks a webhook',
      owner(),
      owned('kept', 'refused'),
      owned('child', 'fine'),
      ...registered(),
      deleteOwner('Background'),
      gone('child'),
      get(widgetsPath('kept'), state),
      kubectl('get events'),
      removed(),
      gone('kept'),
    ),
    scenario(
      'what a webhook is asked by the garbage collector',
      owner(),
      owned('child', 'fine'),
      ...registered(),
      deleteOwner('Background'),
      gone('child'),
      asked,
      removed(),
    ),
    scenario(
      'in the foreground an owner waits for what a webhook keeps, if it blocks',
      owner(),
      owned('kept', 'refused', { blockOwnerDeletion: true }),
      owned('child', 'fine', { blockOwnerDeletion: true }),
      ...registered(),
      deleteOwner('Foreground'),
      gone('child'),
      get(widgetsPath('kept'), state),
      get(widgetsPath('owner'), state),
      removed(),
      gone('kept'),
      gone('owner'),
    ),
    scenario(
      'in the foreground an owner does not wait for what a webhook keeps, if it does not block',
      owner(),
      owned('kept', 'refused'),
      ...registered(),
      deleteOwner('Foreground'),
      gone('owner'),
      get(widgetsPath('kept'), state),
      removed(),
      gone('kept'),
    ),
    scenario(
      'a webhook refuses that an object loses its owner',
      owner(),
      owned('kept', 'refused'),
      owned('child', 'fine'),
      ...registered({}, CHANGES),
      deleteOwner('Orphan'),
      get(widgetsPath('child'), { until: { absent: 'metadata.ownerReferences' }, only: ['metadata.name'] }),
      get(widgetsPath('kept'), { only: ['metadata.ownerReferences.*.name'] }),
      get(widgetsPath('owner'), state),
      removed(),
      gone('owner'),
      get(widgetsPath('kept'), { only: ['metadata.name', 'metadata.ownerReferences'] }),
    ),
    scenario(
      'what a webhook is asked when an object loses its owner',
      owner(),
      owned('child', 'fine'),
      ...registered({}, CHANGES),
      deleteOwner('Orphan'),
      gone('owner'),
      asked,
      removed(),
    ),
    scenario(
      'a webhook refuses that an object loses one of its owners',
      owner(),
      owner('other'),
      owned('kept', 'refused', {}, ['owner', 'other']),
      owned('child', 'fine', {}, ['owner', 'other']),
      ...registered({}, CHANGES),
      deleteOwner('Background'),
      get(widgetsPath('child'), {
        until: { absent: 'metadata.ownerReferences.1' },
        only: ['metadata.ownerReferences.*.name'],
      }),
      get(widgetsPath('kept'), { only: ['metadata.ownerReferences.*.name'] }),
      removed(),
      get(widgetsPath('kept'), {
        until: { absent: 'metadata.ownerReferences.1' },
        only: ['metadata.ownerReferences.*.name'],
      }),
    ),
    scenario(
      'a webhook refuses that an owner ends',
      owner('owner', 'refused'),
      owned('child', 'fine', { blockOwnerDeletion: true }),
      ...registered({}, CHANGES),
      deleteOwner('Foreground'),
      gone('child'),
      get(widgetsPath('owner'), state),
      removed(),
      gone('owner'),
    ),
    scenario(
      'a namespace that is deleted asks a webhook',
      post(widgetsPath(), widget('child', { note: 'fine' }), { only: ['code'] }),
      post(widgetsPath(), widget('kept', { note: 'refused' }), { only: ['code'] }),
      post(widgetsPath(), widget('later', { note: 'fine' }), { only: ['code'] }),
      post(corePath('configmaps'), configMap('plain'), { only: ['code'] }),
      ...registered(),
      deleteNamespace,
      gone('child'),
      get(corePath('configmaps', 'plain'), { until: { status: 404 }, only: ['reason'] }),
      kubectl('wait namespace {ns} --for=condition=NamespaceDeletionContentFailure --timeout=40s'),
      get('/api/v1/namespaces/{ns}', conditions),
      get(widgetsPath('kept'), state),
      get(widgetsPath('later'), state),
      removed(),
      gone('kept'),
      gone('later'),
      namespaceGone,
    ),
    scenario(
      'what a webhook is asked when a namespace is deleted',
      post(widgetsPath(), widget('child', { note: 'fine' }), { only: ['code'] }),
      ...registered(),
      deleteNamespace,
      gone('child'),
      asked,
      removed(),
    ),
    scenario(
      'a namespace that is deleted says what it waits for',
      post(widgetsPath(), widget('held', {}, { finalizers: [FINALIZER] }), { only: ['code'] }),
      post(corePath('configmaps'), configMap('held', {}, { finalizers: [FINALIZER, 'example.com/two'] }), {
        only: ['code'],
      }),
      deleteNamespace,
      kubectl('wait namespace {ns} --for=condition=NamespaceFinalizersRemaining --timeout=40s'),
      get('/api/v1/namespaces/{ns}', conditions),
      mergePatch(widgetsPath('held'), { metadata: { finalizers: null } }, { only: ['metadata.name'] }),
      mergePatch(corePath('configmaps', 'held'), { metadata: { finalizers: null } }, { only: ['metadata.name'] }),
      namespaceGone,
    ),
    scenario(
      'a collection that is deleted ends with the first refusal',
      post(widgetsPath(), widget('child', { note: 'fine' }), { only: ['code'] }),
      post(widgetsPath(), widget('kept', { note: 'refused' }), { only: ['code'] }),
      post(widgetsPath(), widget('later', { note: 'fine' }), { only: ['code'] }),
      ...registered(),
      del(widgetsPath(), undefined, refused),
      kubectl('get widgets -o name'),
      asked,
      removed(),
    ),
    scenario(
      'a webhook for creations is not asked about changes',
      ...registered({}, { operations: ['CREATE'] }),
      post(widgetsPath(), widget('a', { note: 'fine' }), { only: ['spec.note'] }),
      mergePatch(widgetsPath('a'), { spec: { note: 'refused' } }, { only: ['spec.note'] }),
      reviews('request.operation'),
      removed(),
    ),
    scenario(
      'a webhook is not asked about subresources unless it says so',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'fine' }), { only: ['spec.note'] }),
      reviews('request.operation'),
      mergePatch(`${widgetsPath('a')}/status`, { status: { phase: 'Up' } }, { only: ['status'] }),
      reviews('request.operation'),
      removed(),
    ),
    scenario(
      'a webhook for subresources is asked about them',
      ...registered({}, { resources: ['widgets', 'widgets/status', 'widgets/scale'] }),
      post(widgetsPath(), widget('a', { note: 'fine', replicas: 1 }), { only: ['spec.note'] }),
      reviews('request.operation'),
      mergePatch(`${widgetsPath('a')}/status`, { status: { phase: 'Up' } }, { only: ['status'] }),
      reviews('request.operation', 'request.subResource', 'request.object.status'),
      mergePatch(`${widgetsPath('a')}/scale`, { spec: { replicas: 2 } }, { only: ['spec'] }),
      reviews(
        'request.operation',
        'request.subResource',
        'request.kind',
        'request.requestSubResource',
        'request.object.spec',
      ),
      removed(),
    ),
    scenario(
      'an object selector narrows a webhook',
      webhook,
      post(configurations, configuration({ objectSelector: { matchLabels: { judged: 'yes' } } }), {
        only: ['metadata.name'],
      }),
      post(`${widgetsPath()}?dryRun=All`, widget('probe', { note: 'refused' }, { labels: { judged: 'yes' } }), {
        until: { status: 403 },
        only: ['code'],
      }),
      post(widgetsPath(), widget('a', { note: 'refused' }), { only: ['spec.note'] }),
      post(widgetsPath(), widget('b', { note: 'refused' }, { labels: { judged: 'yes' } }), refused),
      removed(),
    ),
    scenario(
      'a webhook that fails stops the request',
      ...registered({ failurePolicy: 'Fail' }),
      post(widgetsPath(), widget('a', { note: 'broken' }), { only: ['reason', 'code'] }),
      removed(),
    ),
    scenario(
      'a webhook that fails can be ignored',
      ...registered({ failurePolicy: 'Ignore' }),
      post(widgetsPath(), widget('a', { note: 'broken' }), { only: ['spec.note', 'code'] }),
      removed(),
    ),
    scenario(
      'a webhook is asked in dry runs',
      ...registered(),
      post(`${widgetsPath()}?dryRun=All`, widget('a', { note: 'odd' }), { only: ['spec.note'] }),
      removed(),
    ),
    scenario(
      'a webhook is asked after the schema',
      ...registered(),
      post(widgetsPath(), widget('a', { note: 'refused', size: 0 }), { only: ['code', 'reason'] }),
      removed(),
    ),
    scenario(
      'a bad webhook configuration is refused',
      post(
        configurations,
        configuration({ sideEffects: undefined, clientConfig: { url: 'https://127.0.0.1:1/x' } }),
        refused,
      ),
      post(configurations, configuration({ name: 'short', clientConfig: { url: 'http://127.0.0.1/x' } }), refused),
      post(
        configurations,
        configuration({ admissionReviewVersions: [], clientConfig: { url: 'https://127.0.0.1:1/x' } }),
        refused,
      ),
    ),
    scenario(
      'a webhook configuration is filled in',
      webhook,
      post(configurations, configuration(), {
        only: [
          'webhooks.0.failurePolicy',
          'webhooks.0.matchPolicy',
          'webhooks.0.objectSelector',
          'webhooks.0.timeoutSeconds',
          'webhooks.0.rules.0.scope',
        ],
      }),
      removed(),
    ),
  ],
}
