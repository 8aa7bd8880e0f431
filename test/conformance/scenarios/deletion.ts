import { configMap, corePath, widget, widgetsPath } from '../definitions.ts'
import {
  del,
  get,
  jsonPatch,
  kubectl,
  kubectlWith,
  mergePatch,
  post,
  scenario,
  type Step,
  type Theme,
} from '../scenario.ts'

const FINALIZER = 'example.com/hold'
const made = (metadata: object = { finalizers: [FINALIZER] }): Step =>
  post(widgetsPath(), widget('a', {}, metadata), { only: ['metadata.finalizers'] })
const release = (): Step => jsonPatch(widgetsPath('a'), [{ op: 'remove', path: '/metadata/finalizers' }])
const progress = {
  only: [
    'metadata.deletionTimestamp',
    'metadata.deletionGracePeriodSeconds',
    'metadata.finalizers',
    'metadata.generation',
  ],
}

/** A config map named `owner`, remembered by its uid. */
const owner = (metadata: object = {}): Step =>
  post(corePath('configmaps'), configMap('owner', {}, metadata), {
    only: ['metadata.name'],
    remember: { owner: 'metadata.uid' },
  })
const child = (name: string, reference: object = {}): Step =>
  post(
    corePath('configmaps'),
    configMap(
      name,
      {},
      { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '{owner}', ...reference }] },
    ),
    { only: ['metadata.ownerReferences'] },
  )
const gone = (name: string): Step => get(corePath('configmaps', name), { until: { status: 404 }, only: ['reason'] })
/** kubectl delete has looked at the objects of the background collector when a child is known to its graph. */
const deleteOwner = (propagationPolicy: string): Step =>
  del(corePath('configmaps', 'owner'), { propagationPolicy }, { only: ['status', 'metadata.finalizers', 'kind'] })

export const deletion: Theme = {
  name: 'deletion',
  scenarios: [
    scenario('a finalizer holds the object', made(), del(widgetsPath('a')), get(widgetsPath('a'), progress)),
    scenario(
      'a second delete changes nothing',
      made(),
      del(widgetsPath('a'), undefined, { only: ['metadata.resourceVersion', ...progress.only] }),
      del(widgetsPath('a'), undefined, { only: ['metadata.resourceVersion', ...progress.only] }),
    ),
    scenario(
      'the last finalizer lets it go',
      made(),
      del(widgetsPath('a'), undefined, progress),
      release(),
      get(widgetsPath('a'), { only: ['code'] }),
    ),
    scenario(
      'one of two finalizers does not',
      made({ finalizers: [FINALIZER, 'example.com/two'] }),
      del(widgetsPath('a'), undefined, progress),
      jsonPatch(widgetsPath('a'), [{ op: 'remove', path: '/metadata/finalizers/0' }], progress),
      release(),
      get(widgetsPath('a'), { only: ['code'] }),
    ),
    scenario(
      'a finalizer cannot be added during deletion',
      made(),
      del(widgetsPath('a'), undefined, progress),
      jsonPatch(widgetsPath('a'), [{ op: 'add', path: '/metadata/finalizers/-', value: 'example.com/late' }]),
      release(),
    ),
    scenario(
      'the spec can still change during deletion',
      made(),
      del(widgetsPath('a'), undefined, progress),
      mergePatch(widgetsPath('a'), { spec: { size: 9 } }, { only: ['spec.size', 'metadata.generation'] }),
      release(),
    ),
    scenario(
      'a deletion timestamp cannot be set or taken back',
      made(),
      mergePatch(
        widgetsPath('a'),
        { metadata: { deletionTimestamp: '2001-01-01T00:00:00Z' } },
        { only: ['metadata.deletionTimestamp', 'code', 'message'] },
      ),
      del(widgetsPath('a'), undefined, progress),
      mergePatch(
        widgetsPath('a'),
        { metadata: { deletionTimestamp: null } },
        { only: ['metadata.deletionTimestamp', 'code', 'message'] },
      ),
      release(),
    ),
    scenario(
      'an unqualified finalizer draws a warning',
      post(widgetsPath(), widget('a', {}, { finalizers: ['plain'] }), { only: ['metadata.finalizers'] }),
      release(),
    ),
    scenario('a bad finalizer is refused', post(widgetsPath(), widget('a', {}, { finalizers: ['bad name/x y'] }))),
    scenario(
      'the status can change during deletion',
      made(),
      del(widgetsPath('a'), undefined, progress),
      mergePatch(
        `${widgetsPath('a')}/status`,
        { status: { phase: 'Leaving' } },
        { only: ['status', 'metadata.generation'] },
      ),
      release(),
    ),
    scenario(
      'an unknown propagation policy is refused',
      made({}),
      del(widgetsPath('a'), { propagationPolicy: 'Sideways' }),
    ),
    scenario(
      'orphanDependents and a policy exclude each other',
      made({}),
      del(widgetsPath('a'), { propagationPolicy: 'Orphan', orphanDependents: true }),
    ),
    scenario(
      'kubectl delete waits for the finalizer',
      kubectlWith('create', widget('a', {}, { finalizers: [FINALIZER] })),
      kubectl('delete widget a', { background: 'delete' }),
      { kind: 'lines', name: 'delete', count: 1 },
      release(),
      { kind: 'finish', name: 'delete' },
    ),
    scenario(
      'kubectl delete without waiting',
      kubectlWith('create', widget('a', {}, { finalizers: [FINALIZER] })),
      kubectl('delete widget a --wait=false'),
      kubectl(`get widget a -o 'jsonpath={.metadata.finalizers}'`),
      release(),
    ),
    scenario(
      'kubectl delete gives up at its timeout',
      kubectlWith('create', widget('a', {}, { finalizers: [FINALIZER] })),
      kubectl('delete widget a --timeout=1s'),
      release(),
    ),
    scenario(
      'delete collection leaves what is held',
      made(),
      post(widgetsPath(), widget('b'), { only: ['metadata.name'] }),
      del(widgetsPath(), undefined, { only: ['kind'] }),
      kubectl('get widgets -o name'),
      release(),
    ),
  ],
}

export const garbageCollection: Theme = {
  name: 'garbage-collection',
  scenarios: [
    scenario(
      'background deletion takes the owner at once and children later',
      owner(),
      child('child'),
      deleteOwner('Background'),
      gone('owner'),
      gone('child'),
    ),
    scenario(
      'the default of a custom resource is background',
      owner(),
      child('child'),
      del(corePath('configmaps', 'owner'), undefined, { only: ['status'] }),
      gone('child'),
    ),
    scenario(
      'foreground deletion takes children first',
      owner(),
      child('child', { blockOwnerDeletion: true }),
      deleteOwner('Foreground'),
      gone('child'),
      gone('owner'),
    ),
    scenario(
      'foreground deletion waits for a child with a finalizer',
      owner(),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            finalizers: [FINALIZER],
            ownerReferences: [
              { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '{owner}', blockOwnerDeletion: true },
            ],
          },
        ),
        { only: ['metadata.name'] },
      ),
      deleteOwner('Foreground'),
      get(corePath('configmaps', 'child'), {
        until: { path: 'metadata.deletionTimestamp' },
        only: ['metadata.deletionTimestamp', 'metadata.finalizers'],
      }),
      get(corePath('configmaps', 'owner'), { only: ['metadata.finalizers', 'metadata.deletionTimestamp'] }),
      mergePatch(corePath('configmaps', 'child'), { metadata: { finalizers: null } }, { only: ['metadata.name'] }),
      gone('child'),
      gone('owner'),
    ),
    scenario(
      'foreground deletion does not wait for a child that does not block',
      owner(),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            finalizers: [FINALIZER],
            ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '{owner}' }],
          },
        ),
        { only: ['metadata.name'] },
      ),
      deleteOwner('Foreground'),
      gone('owner'),
      get(corePath('configmaps', 'child'), {
        until: { path: 'metadata.deletionTimestamp' },
        only: ['metadata.deletionTimestamp'],
      }),
      mergePatch(corePath('configmaps', 'child'), { metadata: { finalizers: null } }, { only: ['metadata.name'] }),
    ),
    scenario(
      'orphan deletion leaves children without an owner',
      owner(),
      child('child'),
      deleteOwner('Orphan'),
      gone('owner'),
      get(corePath('configmaps', 'child'), {
        until: { absent: 'metadata.ownerReferences' },
        only: ['metadata.name', 'metadata.ownerReferences'],
      }),
    ),
    scenario(
      'a child of an owner that never was is collected',
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            ownerReferences: [
              { apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: '11111111-2222-3333-4444-555555555555' },
            ],
          },
        ),
        { only: ['metadata.name'] },
      ),
      gone('child'),
    ),
    scenario(
      'a child with another living owner stays',
      owner(),
      post(corePath('configmaps'), configMap('other'), {
        only: ['metadata.name'],
        remember: { other: 'metadata.uid' },
      }),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            ownerReferences: [
              { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '{owner}' },
              { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: '{other}' },
            ],
          },
        ),
        { only: ['metadata.name'] },
      ),
      deleteOwner('Background'),
      gone('owner'),
      get(corePath('configmaps', 'child'), {
        until: { absent: 'metadata.ownerReferences.1' },
        only: ['metadata.ownerReferences'],
      }),
    ),
    scenario(
      'grandchildren go as well',
      owner(),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '{owner}' }] },
        ),
        { only: ['metadata.name'], remember: { child: 'metadata.uid' } },
      ),
      post(
        corePath('configmaps'),
        configMap(
          'grandchild',
          {},
          { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'child', uid: '{child}' }] },
        ),
        { only: ['metadata.name'] },
      ),
      deleteOwner('Background'),
      gone('child'),
      gone('grandchild'),
    ),
    scenario(
      'a custom resource owns a config map',
      post(widgetsPath(), widget('w'), { only: ['metadata.name'], remember: { w: 'metadata.uid' } }),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            ownerReferences: [
              {
                apiVersion: 'conformance.svccloud.example/v1',
                kind: 'Widget',
                name: 'w',
                uid: '{w}',
                controller: true,
                blockOwnerDeletion: true,
              },
            ],
          },
        ),
        { only: ['metadata.name'] },
      ),
      kubectl('delete widget w --cascade=foreground'),
      get(corePath('configmaps', 'child'), { only: ['code'] }),
    ),
    scenario(
      'kubectl delete --cascade=orphan',
      post(widgetsPath(), widget('w'), { only: ['metadata.name'], remember: { w: 'metadata.uid' } }),
      post(
        corePath('configmaps'),
        configMap(
          'child',
          {},
          {
            ownerReferences: [{ apiVersion: 'conformance.svccloud.example/v1', kind: 'Widget', name: 'w', uid: '{w}' }],
          },
        ),
        { only: ['metadata.name'] },
      ),
      kubectl('delete widget w --cascade=orphan'),
      get(corePath('configmaps', 'child'), { only: ['metadata.name', 'metadata.ownerReferences'] }),
    ),
  ],
}
