/** Schemas for merging: those of custom resources with their metadata, and for built-in kinds the lists that are merged
 *  by key. */
import { groupVersionOf, type Definition } from '../core/definition.ts'
import { METADATA_SCHEMA } from '../core/openapi-metadata.ts'
import type { Schema } from '../schema/schema.ts'

const known = new WeakMap<Definition, Schema>()

export function typeSchemaOf(definition: Definition): Schema {
  let schema = known.get(definition)
  if (!schema) known.set(definition, (schema = makeSchema(definition)))
  return schema
}

/** The fields of a built-in kind with these merge rules. */
function overlaid(fields: Schema, merging: Schema | undefined): Schema {
  if (!merging) return fields
  const { properties, items, 'x-kubernetes-preserve-unknown-fields': _open, ...flags } = merging
  return {
    ...fields,
    ...flags,
    ...(fields.properties
      ? {
          properties: Object.fromEntries(
            Object.entries(fields.properties).map(([key, member]) => [key, overlaid(member, properties?.[key])]),
          ),
        }
      : {}),
    ...(fields.items ? { items: overlaid(fields.items, items) } : {}),
  }
}

const TEXT: Schema = { type: 'string' }

function makeSchema(definition: Definition): Schema {
  const merging = definition.isCustom ? undefined : MERGING[`${groupVersionOf(definition)}/${definition.kind}`]
  const own: Schema = definition.schema ? overlaid(definition.schema, merging) : (merging ?? open({}))
  return { ...own, properties: { ...own.properties, apiVersion: TEXT, kind: TEXT, metadata: METADATA_SCHEMA } }
}

function open(properties: Readonly<Record<string, Schema>>, others: Schema = {}): Schema {
  return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties, ...others }
}
const whole: Schema = { 'x-kubernetes-map-type': 'atomic' }
const keyed = (keys: readonly string[], items: Schema = open({})): Schema => ({
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
  items,
})
const PROTOCOL: Schema = { type: 'string', default: 'TCP' }

const conditions = keyed(['type'])
const container = open({
  env: keyed(['name']),
  ports: keyed(['containerPort', 'protocol'], open({ protocol: PROTOCOL })),
  volumeMounts: keyed(['mountPath']),
})
const podSpec = open({
  containers: keyed(['name'], container),
  initContainers: keyed(['name'], container),
  volumes: keyed(['name']),
  imagePullSecrets: keyed(['name']),
  hostAliases: keyed(['ip']),
  topologySpreadConstraints: keyed(['topologyKey', 'whenUnsatisfiable']),
  nodeSelector: whole,
})
const template = open({ metadata: METADATA_SCHEMA, spec: podSpec })
const workload = open({ spec: open({ selector: whole, template }), status: open({ conditions }) })
const withConditions = open({ status: open({ conditions }) })

/** Only deviations from the default: objects are merged by member, lists are atomic. */
const MERGING: Readonly<Record<string, Schema>> = {
  'v1/Pod': open({ spec: podSpec, status: open({ conditions }) }),
  'v1/Namespace': withConditions,
  'v1/Service': open({
    spec: open({ ports: keyed(['port', 'protocol'], open({ protocol: PROTOCOL })), selector: whole }),
    status: open({ conditions }),
  }),
  'v1/ServiceAccount': open({ secrets: keyed(['name']) }),
  'v1/Event': open({ involvedObject: whole, source: open({}) }),
  'v1/PersistentVolumeClaim': open({ spec: open({ selector: whole }), status: open({ conditions }) }),
  'apps/v1/Deployment': workload,
  'apps/v1/ReplicaSet': workload,
  'apps/v1/StatefulSet': workload,
  'apps/v1/DaemonSet': workload,
  'batch/v1/Job': workload,
  'batch/v1/CronJob': open({ spec: open({ jobTemplate: open({ spec: open({ selector: whole, template }) }) }) }),
  'networking.k8s.io/v1/NetworkPolicy': open({ spec: open({ podSelector: whole }) }),
  'policy/v1/PodDisruptionBudget': open({ spec: open({ selector: whole }), status: open({ conditions }) }),
  'rbac.authorization.k8s.io/v1/ClusterRole': open({ aggregationRule: whole }),
  'rbac.authorization.k8s.io/v1/RoleBinding': open({ roleRef: whole }),
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': open({ roleRef: whole }),
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': open({ webhooks: keyed(['name']) }),
  'apiextensions.k8s.io/v1/CustomResourceDefinition': open({ status: open({ conditions }) }),
  'v1/Node': open({ status: open({ conditions, addresses: keyed(['type']) }) }),
}
