/** The custom resources that scenarios use: one definition with everything our own kinds use, one of the cluster scope,
 *  one with two versions. */

export const GROUP = 'conformance.svccloud.example'
export const V1 = `/apis/${GROUP}/v1`
export const API_VERSION = `${GROUP}/v1`

const string = { type: 'string' }
const integer = { type: 'integer', format: 'int32' }

const condition = {
  type: 'object',
  required: ['type', 'status'],
  properties: {
    type: string,
    status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
    reason: string,
    message: string,
    observedGeneration: { type: 'integer', format: 'int64' },
    lastTransitionTime: { type: 'string', format: 'date-time' },
  },
}

const widgetSpec = {
  type: 'object',
  description: 'What the widget should be.',
  required: ['size'],
  'x-kubernetes-validations': [
    {
      rule: '!has(self.min) || !has(self.max) || self.min <= self.max',
      message: 'min must not be above max',
      fieldPath: '.min',
    },
    {
      rule: 'has(self.zone) == has(oldSelf.zone)',
      message: 'zone can be neither added nor removed',
      reason: 'FieldValueForbidden',
    },
  ],
  properties: {
    size: { ...integer, description: 'How large the widget is.', minimum: 1, maximum: 100 },
    color: {
      type: 'string',
      description: 'The colour it is painted in.',
      enum: ['red', 'green', 'blue'],
      default: 'red',
    },
    replicas: { ...integer, minimum: 0 },
    note: { type: 'string', maxLength: 20 },
    code: { type: 'string', pattern: '^[a-z]{3}$' },
    zone: {
      type: 'string',
      maxLength: 30,
      'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'zone is immutable' }],
    },
    min: { ...integer, maximum: 1000 },
    max: { ...integer, maximum: 1000 },
    ratio: { type: 'number' },
    enabled: { type: 'boolean' },
    amount: { 'x-kubernetes-int-or-string': true },
    at: { type: 'string', format: 'date-time' },
    owner: { type: 'string', nullable: true },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    marks: { type: 'object', additionalProperties: { type: 'string', maxLength: 10 }, maxProperties: 3 },
    unit: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { name: string, power: integer } },
    limits: {
      type: 'object',
      default: {},
      properties: { cores: { ...integer, default: 2 }, memory: { type: 'string', default: '1Gi' } },
    },
    tags: { type: 'array', maxItems: 4, items: { type: 'string', maxLength: 20 }, 'x-kubernetes-list-type': 'set' },
    steps: { type: 'array', maxItems: 4, items: string },
    ports: {
      type: 'array',
      maxItems: 5,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      items: {
        type: 'object',
        required: ['port'],
        properties: {
          port: { ...integer, minimum: 1 },
          protocol: { type: 'string', default: 'TCP', maxLength: 5 },
          name: { type: 'string', maxLength: 20 },
        },
      },
    },
  },
}

const widgetStatus = {
  type: 'object',
  properties: {
    observedGeneration: { type: 'integer', format: 'int64' },
    phase: string,
    replicas: integer,
    selector: string,
    conditions: {
      type: 'array',
      maxItems: 10,
      items: condition,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    },
  },
}

export const widgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', shortNames: ['wd'], categories: ['conformance'] },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: 'A widget, for tests.',
            required: ['spec'],
            properties: {
              apiVersion: string,
              kind: string,
              metadata: { type: 'object' },
              spec: widgetSpec,
              status: widgetStatus,
            },
          },
        },
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.replicas',
            statusReplicasPath: '.status.replicas',
            labelSelectorPath: '.status.selector',
          },
        },
        selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.size' }],
        additionalPrinterColumns: [
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
          { name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1, description: 'The colour.' },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  },
}

/** Of the cluster scope, without subresources: every write counts as one of the spec. */
export const gadgets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `gadgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Cluster',
    names: { plural: 'gadgets', kind: 'Gadget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { on: { type: 'boolean' } } },
              status: { type: 'object', properties: { seen: string } },
            },
          },
        },
      },
    ],
  },
}

const doohickeyVersion = (name: string, storage: boolean, extra: object) => ({
  name,
  served: true,
  storage,
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', properties: { width: integer, ...extra } } },
    },
  },
})

/** Served in two versions that differ by one defaulted field; conversion None. */
export const doohickeys = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `doohickeys.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'doohickeys', kind: 'Doohickey' },
    versions: [
      doohickeyVersion('v1', true, { height: { ...integer, default: 7 } }),
      doohickeyVersion('v1beta1', false, {}),
    ],
  },
}

export const definitions = [widgets, gadgets, doohickeys]

/** A widget of size 1 unless the spec says otherwise. */
export const widget = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: API_VERSION,
  kind: 'Widget',
  metadata: { name, ...metadata },
  spec: { size: 1, ...spec },
})
/** The collection of the scenario's own widgets, or one of them. */
export const widgetsPath = (name?: string) => `${V1}/namespaces/{ns}/widgets${name ? `/${name}` : ''}`
export const configMap = (name: string, data: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
})
export const corePath = (plural: string, name?: string) => `/api/v1/namespaces/{ns}/${plural}${name ? `/${name}` : ''}`
