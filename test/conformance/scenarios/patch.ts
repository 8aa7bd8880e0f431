import { configMap, corePath, widget, widgetsPath } from '../definitions.ts'
import {
  get,
  jsonPatch,
  kubectl,
  kubectlWith,
  mergePatch,
  post,
  scenario,
  strategicPatch,
  type Step,
  type Theme,
} from '../scenario.ts'

const made = (spec: object = {}, metadata: object = {}): Step =>
  post(widgetsPath(), widget('a', spec, metadata), {
    only: ['metadata.name'],
    remember: { rv: 'metadata.resourceVersion', uid: 'metadata.uid' },
  })
const spec = { only: ['spec', 'metadata.generation'] }

export const patch: Theme = {
  name: 'patch',
  scenarios: [
    scenario(
      'merge patch changes and adds fields',
      made(),
      mergePatch(widgetsPath('a'), { spec: { size: 4, note: 'new' } }, spec),
    ),
    scenario(
      'merge patch removes with null',
      made({ note: 'x', marks: { a: '1', b: '2' } }),
      mergePatch(widgetsPath('a'), { spec: { note: null, marks: { a: null } } }, spec),
    ),
    scenario(
      'merge patch replaces lists',
      made({ tags: ['a', 'b'] }),
      mergePatch(widgetsPath('a'), { spec: { tags: ['c'] } }, spec),
    ),
    scenario(
      'merge patch of nothing writes nothing',
      made(),
      get(widgetsPath('a'), { only: ['metadata'] }),
      mergePatch(widgetsPath('a'), {}, { only: ['metadata'] }),
    ),
    scenario(
      'merge patch with an old resource version conflicts',
      made(),
      mergePatch(widgetsPath('a'), { spec: { size: 2 } }, spec),
      mergePatch(widgetsPath('a'), { metadata: { resourceVersion: '{rv}' }, spec: { size: 3 } }),
    ),
    scenario(
      'merge patch with the current resource version succeeds',
      made(),
      mergePatch(widgetsPath('a'), { metadata: { resourceVersion: '{rv}' }, spec: { size: 3 } }, spec),
    ),
    scenario(
      'merge patch with a wrong uid conflicts',
      made(),
      mergePatch(widgetsPath('a'), { metadata: { uid: '11111111-2222-3333-4444-555555555555' } }),
    ),
    scenario(
      'merge patch cannot rename or move',
      made(),
      mergePatch(widgetsPath('a'), { metadata: { name: 'b' } }),
      mergePatch(widgetsPath('a'), { metadata: { namespace: 'other' } }),
    ),
    scenario(
      'merge patch cannot change the kind',
      made(),
      mergePatch(widgetsPath('a'), { kind: 'Gadget' }, { only: ['kind', 'reason', 'code', 'message'] }),
    ),
    scenario(
      'merge patch that breaks the schema is invalid',
      made(),
      mergePatch(widgetsPath('a'), { spec: { size: 1000 } }),
    ),
    scenario(
      'merge patch that is not an object is refused',
      made(),
      mergePatch(widgetsPath('a'), '[1]', { only: ['reason', 'code'] }),
      mergePatch(widgetsPath('a'), '{', { only: ['reason', 'code'] }),
    ),
    scenario('a null for a required field is refused', made(), mergePatch(widgetsPath('a'), { spec: { size: null } })),
    scenario(
      'a null for a defaulted field brings the default back',
      made({ color: 'blue' }),
      mergePatch(widgetsPath('a'), { spec: { color: null } }, spec),
    ),
    scenario(
      'JSON patch adds, replaces and removes',
      made({ tags: ['a', 'b'], note: 'x' }),
      jsonPatch(
        widgetsPath('a'),
        [
          { op: 'add', path: '/spec/tags/-', value: 'c' },
          { op: 'add', path: '/spec/tags/0', value: 'first' },
          { op: 'replace', path: '/spec/size', value: 7 },
          { op: 'remove', path: '/spec/note' },
        ],
        spec,
      ),
    ),
    scenario(
      'JSON patch copies and moves',
      made({ note: 'x' }),
      jsonPatch(
        widgetsPath('a'),
        [
          { op: 'copy', from: '/spec/note', path: '/spec/code' },
          { op: 'replace', path: '/spec/code', value: 'abc' },
          { op: 'move', from: '/spec/note', path: '/spec/zone' },
        ],
        { only: ['spec', 'message'] },
      ),
    ),
    scenario(
      'JSON patch tests first',
      made(),
      jsonPatch(widgetsPath('a'), [
        { op: 'test', path: '/spec/size', value: 2 },
        { op: 'replace', path: '/spec/size', value: 3 },
      ]),
      jsonPatch(
        widgetsPath('a'),
        [
          { op: 'test', path: '/spec/size', value: 1 },
          { op: 'replace', path: '/spec/size', value: 3 },
        ],
        spec,
      ),
    ),
    scenario(
      'JSON patch of a missing path is refused',
      made(),
      jsonPatch(widgetsPath('a'), [{ op: 'remove', path: '/spec/nothing' }]),
      jsonPatch(widgetsPath('a'), [{ op: 'replace', path: '/spec/nothing/deep', value: 1 }]),
    ),
    scenario(
      'JSON patch escapes slashes',
      made({}, { annotations: { 'a/b': '1' } }),
      jsonPatch(widgetsPath('a'), [{ op: 'replace', path: '/metadata/annotations/a~1b', value: '2' }], {
        only: ['metadata.annotations'],
      }),
    ),
    scenario(
      'JSON patch that is no list is refused',
      made(),
      jsonPatch(widgetsPath('a'), '{"op":"remove"}', { only: ['reason', 'code'] }),
    ),
    scenario(
      'strategic merge is not for custom resources',
      made(),
      strategicPatch(widgetsPath('a'), { spec: { size: 2 } }),
      kubectl(`patch widget a -p '{"spec":{"size":2}}'`),
    ),
    scenario(
      'strategic merge of a config map',
      post(corePath('configmaps'), configMap('c', { a: '1', b: '2' }), { only: ['data'] }),
      strategicPatch(corePath('configmaps', 'c'), { data: { a: null, c: '3' } }, { only: ['data'] }),
      kubectl(`patch configmap c -p '{"data":{"d":"4"}}'`),
      kubectl('get configmap c -o yaml'),
    ),
    scenario(
      'strategic merge keeps finalizers and merges owners',
      post(corePath('configmaps'), configMap('c', {}, { finalizers: ['example.com/one'] }), {
        only: ['metadata.finalizers'],
      }),
      strategicPatch(
        corePath('configmaps', 'c'),
        { metadata: { finalizers: ['example.com/two'] } },
        { only: ['metadata.finalizers'] },
      ),
      strategicPatch(
        corePath('configmaps', 'c'),
        { metadata: { $patch: 'replace', finalizers: null } },
        { only: ['metadata.finalizers', 'message'] },
      ),
      mergePatch(corePath('configmaps', 'c'), { metadata: { finalizers: null } }, { only: ['metadata.finalizers'] }),
    ),
    scenario(
      'an unknown patch type is refused',
      made(),
      { kind: 'request', method: 'PATCH', path: widgetsPath('a'), body: {}, contentType: 'application/json' },
      { kind: 'request', method: 'PATCH', path: corePath('configmaps', 'x'), body: {}, contentType: 'text/plain' },
    ),
    scenario(
      'kubectl patch of each type',
      kubectlWith('create', widget('a', { tags: ['x'] })),
      kubectl(`patch widget a --type=merge -p '{"spec":{"size":2}}'`),
      kubectl(`patch widget a --type=json -p '[{"op":"add","path":"/spec/tags/-","value":"y"}]'`),
      kubectl(`patch widget a --type=merge -p '{"spec":{"size":2}}'`),
      kubectl('get widget a -o yaml'),
    ),
    scenario(
      'kubectl patch refused by the schema',
      kubectlWith('create', widget('a')),
      kubectl(`patch widget a --type=merge -p '{"spec":{"size":0,"color":"pink"}}'`),
    ),
    scenario('kubectl patch of a missing object', kubectl(`patch widget nobody --type=merge -p '{"spec":{"size":2}}'`)),
    scenario(
      'kubectl edit saves a change',
      kubectlWith('create', widget('a')),
      kubectl('edit widget a', { editor: `sed -i 's/size: 1/size: 5/' "$1"` }),
      kubectl(`get widget a -o 'jsonpath={.spec.size}'`),
    ),
    scenario(
      'kubectl edit without a change',
      kubectlWith('create', widget('a')),
      kubectl('edit widget a', { editor: 'true' }),
    ),
    scenario(
      'kubectl edit of a core kind',
      kubectlWith('create', configMap('c', { key: 'old' })),
      kubectl('edit configmap c', { editor: `sed -i 's/key: old/key: new/' "$1"` }),
      kubectl(`get configmap c -o 'jsonpath={.data.key}'`),
    ),
    scenario(
      'kubectl set is refused on custom resources',
      kubectlWith('create', widget('a')),
      kubectl('set image widget/a x=y'),
    ),
  ],
}
