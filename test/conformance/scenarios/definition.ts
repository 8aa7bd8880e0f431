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

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const refused = { only: ['message', 'reason', 'code'] }
const spec = (properties: object, rest: object = {}) => ({
  type: 'object',
  properties: { spec: { type: 'object', properties, ...rest } },
})

/** A definition in a group that is the scenario's own. */
const definition = (
  schema: object = spec({ a: { type: 'string' } }),
  { version = {}, more = {} }: { version?: object; more?: object } = {},
) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.{ns}.example' },
  spec: {
    group: '{ns}.example',
    scope: 'Namespaced',
    names: { plural: 'things', kind: 'Thing' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema }, ...version }],
    ...more,
  },
})
const things = '/apis/{ns}.example/v1/namespaces/{ns}/things'
const thing = (name: string, own: object = {}) => ({
  apiVersion: '{ns}.example/v1',
  kind: 'Thing',
  metadata: { name },
  spec: own,
})
const make = (...of: Parameters<typeof definition>): Step => post(crds, definition(...of), { only: ['metadata.name'] })
const served = (): Step => get(things, { until: { status: 200 }, only: ['kind'] })
const remove = (): Step => del(`${crds}/things.{ns}.example`, undefined, { only: ['kind'] })
const bad = (...of: Parameters<typeof definition>): Step => post(crds, definition(...of), refused)
/** Refused for its rule; what the compiler says of it is its own. */
const badRule = (...of: Parameters<typeof definition>): Step =>
  post(crds, definition(...of), { only: ['reason', 'code', 'details.causes.*.field', 'details.causes.*.reason'] })
const rule = (text: string, more: object = {}) => ({ 'x-kubernetes-validations': [{ rule: text, ...more }] })

export const definitionLifecycle: Theme = {
  name: 'definition-lifecycle',
  scenarios: [
    scenario(
      'a definition is filled in and gets its conditions',
      make(),
      get(`${crds}/things.{ns}.example`, { until: { path: 'status.conditions.1.status', equals: 'True' } }),
      remove(),
    ),
    scenario(
      'kubectl waits for a definition and uses it',
      kubectlWith('apply', definition()),
      kubectl('wait crd things.{ns}.example --for=condition=Established --timeout=20s'),
      served(),
      kubectlWith('apply', thing('t', { a: 'x' })),
      kubectl('get things.{ns}.example'),
      remove(),
    ),
    scenario(
      'a column may be called as that of the name',
      make(spec({ a: { type: 'string' } }), {
        version: { additionalPrinterColumns: [{ name: 'Name', type: 'string', jsonPath: '.spec.a' }] },
      }),
      served(),
      post(things, thing('t', { a: 'x' }), { only: ['metadata.name'] }),
      kubectl('get things.{ns}.example'),
      remove(),
    ),
    scenario(
      'a definition takes its objects with it',
      make(),
      served(),
      post(things, thing('t'), { only: ['metadata.name'] }),
      kubectl('delete crd things.{ns}.example'),
      get(things, { until: { status: 404 } }),
    ),
    scenario(
      'a definition waits for objects with finalizers',
      make(),
      served(),
      post(
        things,
        { ...thing('t'), metadata: { name: 't', finalizers: ['example.com/hold'] } },
        { only: ['metadata.name'] },
      ),
      del(`${crds}/things.{ns}.example`, undefined, { only: ['metadata.finalizers', 'kind'] }),
      get(`${things}/t`, { until: { path: 'metadata.deletionTimestamp' }, only: ['metadata.finalizers'] }),
      post(things, thing('late'), { only: ['code', 'reason', 'message'] }),
      get(`${crds}/things.{ns}.example`, { only: ['metadata.finalizers'] }),
      mergePatch(`${things}/t`, { metadata: { finalizers: null } }, { only: ['kind'] }),
      get(`${crds}/things.{ns}.example`, { until: { status: 404 }, only: ['reason'] }),
    ),
    scenario(
      'a new field is served after an update',
      make(),
      served(),
      post(`${things}?fieldValidation=Strict`, thing('t', { b: 'x' }), refused),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [
          {
            op: 'add',
            path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b',
            value: { type: 'string', default: 'new' },
          },
        ],
        { only: ['metadata.generation'] },
      ),
      post(`${things}?dryRun=All`, thing('t'), { until: { path: 'spec.b' }, only: ['spec'] }),
      post(things, thing('t'), { only: ['spec'] }),
      remove(),
    ),
    scenario(
      'a default of a new field shows on old objects',
      make(),
      served(),
      post(things, thing('t'), { only: ['spec'] }),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [
          {
            op: 'add',
            path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b',
            value: { type: 'string', default: 'new' },
          },
        ],
        { only: ['kind'] },
      ),
      get(`${things}/t`, { until: { path: 'spec.b' }, only: ['spec', 'metadata.generation'] }),
      remove(),
    ),
    scenario(
      'a version can be added and is served',
      make(),
      served(),
      post(things, thing('t', { a: 'x' }), { only: ['spec'] }),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [
          {
            op: 'add',
            path: '/spec/versions/-',
            value: {
              name: 'v2',
              served: true,
              storage: false,
              schema: { openAPIV3Schema: spec({ a: { type: 'string' } }) },
            },
          },
        ],
        { only: ['spec.conversion'] },
      ),
      get('/apis/{ns}.example/v2/namespaces/{ns}/things/t', { until: { status: 200 }, only: ['apiVersion', 'spec'] }),
      get(`${crds}/things.{ns}.example`, { only: ['status.storedVersions'] }),
      remove(),
    ),
    scenario(
      'the storage version is remembered',
      make(),
      served(),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [
          { op: 'replace', path: '/spec/versions/0/storage', value: false },
          {
            op: 'add',
            path: '/spec/versions/-',
            value: { name: 'v2', served: true, storage: true, schema: { openAPIV3Schema: spec({}) } },
          },
        ],
        { only: ['status.storedVersions'] },
      ),
      jsonPatch(`${crds}/things.{ns}.example`, [{ op: 'remove', path: '/spec/versions/0' }], refused),
      remove(),
    ),
    scenario(
      'a version that is no longer served is gone',
      make(),
      served(),
      jsonPatch(`${crds}/things.{ns}.example`, [{ op: 'replace', path: '/spec/versions/0/served', value: false }], {
        only: ['kind'],
      }),
      get(things, { until: { status: 404 } }),
      remove(),
    ),
    scenario(
      'names are taken once',
      make(),
      get(`${crds}/things.{ns}.example`, { until: { path: 'status.conditions.1' }, only: ['status.acceptedNames'] }),
      post(
        crds,
        {
          ...definition(),
          metadata: { name: 'others.{ns}.example' },
          spec: { ...definition().spec, names: { plural: 'others', kind: 'Thing' } },
        },
        { only: ['metadata.name'] },
      ),
      get(`${crds}/others.{ns}.example`, {
        until: { path: 'status.conditions.1' },
        only: ['status.conditions.*.type', 'status.conditions.*.status', 'status.conditions.*.reason'],
      }),
      del(`${crds}/others.{ns}.example`, undefined, { only: ['kind'] }),
      remove(),
    ),
    scenario(
      'a deprecated version warns',
      make(undefined, { version: { deprecated: true, deprecationWarning: 'things are deprecated' } }),
      served(),
      kubectl('get things.{ns}.example'),
      post(things, thing('t'), { only: ['kind'] }),
      remove(),
    ),
    scenario(
      'columns of a definition can be changed',
      make(undefined, { version: { additionalPrinterColumns: [{ name: 'A', type: 'string', jsonPath: '.spec.a' }] } }),
      served(),
      post(things, thing('t', { a: 'hello' }), { only: ['kind'] }),
      kubectl('get things.{ns}.example'),
      remove(),
    ),
    scenario(
      'without columns there is an age',
      make(),
      served(),
      post(things, thing('t'), { only: ['kind'] }),
      kubectl('get things.{ns}.example'),
      remove(),
    ),
    scenario(
      'the name must be plural and group',
      post(crds, { ...definition(), metadata: { name: 'wrong.{ns}.example' } }, refused),
    ),
    scenario(
      'a schema is required',
      bad({}, { version: { schema: {} } }),
      bad({ type: 'string' }),
      post(
        crds,
        { ...definition(), spec: { ...definition().spec, versions: [{ name: 'v1', served: true, storage: true }] } },
        refused,
      ),
    ),
    scenario('exactly one version is stored', bad(undefined, { version: { storage: false } })),
    scenario(
      'the group and scope are fixed',
      make(),
      served(),
      jsonPatch(`${crds}/things.{ns}.example`, [{ op: 'replace', path: '/spec/scope', value: 'Cluster' }], refused),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [{ op: 'replace', path: '/spec/group', value: 'other.example' }],
        refused,
      ),
      remove(),
    ),
    scenario(
      'schemas must be structural',
      bad(spec({ a: { anyOf: [{ type: 'string' }, { type: 'integer' }] } })),
      bad(spec({ a: {} })),
      bad(spec({ a: { type: 'array' } })),
      bad(
        spec({
          a: { type: 'object', properties: { x: { type: 'string' } }, additionalProperties: { type: 'string' } },
        }),
      ),
    ),
    scenario('references are refused', bad(spec({ a: { $ref: '#/definitions/x' } }))),
    scenario(
      'a default must fit its schema',
      bad(spec({ a: { type: 'string', default: 5 } })),
      bad(spec({ a: { type: 'integer', maximum: 3, default: 5 } })),
    ),
    scenario(
      'list keys must be there',
      bad(
        spec({
          a: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            items: { type: 'object', properties: { k: { type: 'string' } } },
          },
        }),
      ),
      bad(
        spec({
          a: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
            items: { type: 'object', properties: { k: { type: 'string' } } },
          },
        }),
      ),
    ),
    scenario('patterns must be regular expressions', bad(spec({ a: { type: 'string', pattern: '(?=x)y' } }))),
    scenario(
      'an unknown function in a rule is refused',
      badRule(spec({ a: { type: 'string', ...rule('self.nothing()') } })),
    ),
    scenario('a rule that does not parse is refused', badRule(spec({ a: { type: 'string', ...rule('self ==') } }))),
    scenario('a rule must be about known fields', badRule(spec({ a: { type: 'string' } }, rule('self.b == "x"')))),
    scenario('a rule must answer yes or no', badRule(spec({ a: { type: 'integer', ...rule('self + 1') } }))),
    scenario(
      'a rule that costs too much is refused',
      badRule(
        spec({
          a: { type: 'array', items: { type: 'array', items: { type: 'string', ...rule("self.contains('x')") } } },
        }),
      ),
    ),
    scenario(
      'rules of strings, lists, maps and times',
      make(
        spec({
          a: {
            type: 'string',
            maxLength: 20,
            ...rule("self.startsWith('x') && self.size() <= 5 && self.matches('^[a-z]+$')", { message: 'a is wrong' }),
          },
          b: {
            type: 'array',
            maxItems: 5,
            items: { type: 'integer' },
            ...rule('self.all(n, n > 0) && self.exists(n, n == 1)', { message: 'b is wrong' }),
          },
          c: {
            type: 'object',
            maxProperties: 5,
            additionalProperties: { type: 'string', maxLength: 5 },
            ...rule("self.all(k, k.startsWith('k'))", { message: 'c is wrong' }),
          },
          d: {
            type: 'string',
            format: 'date-time',
            ...rule("self > timestamp('2020-01-01T00:00:00Z')", { message: 'd is wrong' }),
          },
        }),
      ),
      served(),
      post(things, thing('t', { a: 'xy', b: [1, 2], c: { ka: 'v' }, d: '2021-01-01T00:00:00Z' }), { only: ['spec.a'] }),
      post(things, thing('u', { a: 'yy' }), refused),
      post(things, thing('u', { b: [2, 3] }), refused),
      post(things, thing('u', { c: { x: 'v' } }), refused),
      post(things, thing('u', { d: '2019-01-01T00:00:00Z' }), refused),
      remove(),
    ),
    scenario(
      'a rule with a message of its own making',
      make(
        spec({
          a: {
            type: 'integer',
            ...rule('self < 10', { messageExpression: "self > 50 ? 'far too much' : 'too much'" }),
          },
        }),
      ),
      served(),
      post(things, thing('t', { a: 11 }), refused),
      remove(),
    ),
    scenario(
      'a rule with a reason',
      make(
        spec({ a: { type: 'integer', ...rule('self < 10', { message: 'too much', reason: 'FieldValueForbidden' }) } }),
      ),
      served(),
      post(things, thing('t', { a: 11 }), { only: ['message', 'details.causes', 'code'] }),
      remove(),
    ),
    scenario(
      'a transition rule with an optional old self',
      make(
        spec({
          a: {
            type: 'integer',
            'x-kubernetes-validations': [
              {
                rule: 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 1',
                optionalOldSelf: true,
                message: 'a begins at 1 and grows',
              },
            ],
          },
        }),
      ),
      served(),
      post(things, thing('t', { a: 2 }), refused),
      post(things, thing('t', { a: 1 }), { only: ['spec'] }),
      mergePatch(`${things}/t`, { spec: { a: 0 } }, refused),
      mergePatch(`${things}/t`, { spec: { a: 5 } }, { only: ['spec'] }),
      remove(),
    ),
    scenario(
      'a rule that fails to run is an error',
      make(spec({ a: { type: 'integer' }, b: { type: 'integer' } }, rule('self.a < 10', { message: 'too much' }))),
      served(),
      post(things, thing('t', { b: 1 }), refused),
      remove(),
    ),
    scenario(
      'rules of the whole object see its name',
      make({
        ...spec({ a: { type: 'string', maxLength: 10 } }),
        ...rule("self.metadata.name.startsWith('t')", { message: 'the name must begin with t' }),
      }),
      served(),
      post(things, thing('u'), refused),
      post(things, thing('t'), { only: ['metadata.name'] }),
      remove(),
    ),
    scenario(
      'what was invalid before may stay so',
      make(spec({ a: { type: 'string' }, b: { type: 'string' } })),
      served(),
      post(things, thing('t', { a: 'way too long' }), { only: ['spec'] }),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [
          {
            op: 'add',
            path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/maxLength',
            value: 3,
          },
        ],
        { only: ['kind'] },
      ),
      post(`${things}?dryRun=All`, thing('u', { a: 'way too long' }), { until: { status: 422 }, ...refused }),
      mergePatch(`${things}/t`, { spec: { b: 'x' } }, { only: ['spec', 'message'] }),
      mergePatch(`${things}/t`, { spec: { a: 'still too long' } }, refused),
      remove(),
    ),
    scenario(
      'an unchanged value that breaks a new rule may stay',
      make(spec({ a: { type: 'integer' }, b: { type: 'string' } })),
      served(),
      post(things, thing('t', { a: 50 }), { only: ['spec'] }),
      jsonPatch(
        `${crds}/things.{ns}.example`,
        [
          {
            op: 'add',
            path: '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/x-kubernetes-validations',
            value: [{ rule: 'self < 10', message: 'too much' }],
          },
        ],
        { only: ['kind'] },
      ),
      post(`${things}?dryRun=All`, thing('u', { a: 50 }), { until: { status: 422 }, ...refused }),
      mergePatch(`${things}/t`, { spec: { b: 'x' } }, { only: ['spec', 'message'] }),
      mergePatch(`${things}/t`, { spec: { a: 51 } }, refused),
      remove(),
    ),
    scenario(
      'embedded objects are completed and checked',
      make(
        spec({
          template: {
            type: 'object',
            'x-kubernetes-embedded-resource': true,
            'x-kubernetes-preserve-unknown-fields': true,
          },
        }),
      ),
      served(),
      post(
        things,
        thing('t', {
          template: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', odd: 1 }, data: { a: 'b' } },
        }),
        { only: ['spec'] },
      ),
      post(things, thing('u', { template: { metadata: { name: 'x' } } }), refused),
      remove(),
    ),
    scenario(
      'exclusive choices by oneOf',
      make({
        type: 'object',
        properties: {
          spec: {
            type: 'object',
            properties: { a: { type: 'string' }, b: { type: 'string' } },
            oneOf: [{ required: ['a'] }, { required: ['b'] }],
          },
        },
      }),
      served(),
      post(things, thing('t', { a: 'x' }), { only: ['spec'] }),
      post(things, thing('u', { a: 'x', b: 'y' }), refused),
      post(things, thing('u'), refused),
      remove(),
    ),
    scenario(
      'kubectl describes a definition',
      kubectlWith('create', definition()),
      kubectl('get crd things.{ns}.example'),
      kubectl('get crd things.{ns}.example -o name'),
      remove(),
    ),
  ],
}
