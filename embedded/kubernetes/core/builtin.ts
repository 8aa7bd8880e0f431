/** The built-in resources: plain data with the minimal behaviour that clients rely on. Workloads are stored, but
 *  nothing runs them. */
import { webhookConfigurationHooks } from '../admission/webhooks.ts'
import type { Column, Definition, Hooks } from './definition.ts'
import { crdHooks, type IsTaken } from './crd.ts'
import {
  bindingHooks,
  configMapHooks,
  deploymentHooks,
  eventHooks,
  eventsEventHooks,
  leaseHooks,
  namespaceHooks,
  roleHooks,
  secretHooks,
} from './builtin-hooks.ts'
import { COLUMNS } from './builtin-columns.ts'
import { builtInSchema } from './builtin-schema.ts'

interface Row {
  readonly resource: string
  readonly kind: string
  readonly short?: readonly string[]
  readonly categories?: readonly string[]
  readonly isCluster?: boolean
  readonly isReview?: boolean
  readonly hasStatus?: boolean
  readonly hasGeneration?: boolean
  readonly scale?: boolean
  readonly selectable?: readonly string[]
  readonly storageKey?: string
  readonly hooks?: Hooks
}

const ALL = ['all']
const EVENT_FIELDS = [
  '.involvedObject.kind',
  '.involvedObject.namespace',
  '.involvedObject.name',
  '.involvedObject.uid',
  '.involvedObject.apiVersion',
  '.involvedObject.resourceVersion',
  '.involvedObject.fieldPath',
  '.reason',
  '.reportingComponent',
  '.type',
]

const core: readonly Row[] = [
  {
    resource: 'namespaces',
    kind: 'Namespace',
    short: ['ns'],
    isCluster: true,
    hasStatus: true,
    hooks: namespaceHooks,
    selectable: ['.status.phase'],
  },
  { resource: 'configmaps', kind: 'ConfigMap', short: ['cm'], hooks: configMapHooks },
  { resource: 'secrets', kind: 'Secret', hooks: secretHooks, selectable: ['.type'] },
  { resource: 'serviceaccounts', kind: 'ServiceAccount', short: ['sa'] },
  { resource: 'events', kind: 'Event', short: ['ev'], hooks: eventHooks, selectable: EVENT_FIELDS },
  { resource: 'services', kind: 'Service', short: ['svc'], categories: ALL, hasStatus: true },
  {
    resource: 'pods',
    kind: 'Pod',
    short: ['po'],
    categories: ALL,
    hasStatus: true,
    selectable: ['.spec.nodeName', '.status.phase'],
  },
  { resource: 'nodes', kind: 'Node', short: ['no'], isCluster: true, hasStatus: true },
  { resource: 'endpoints', kind: 'Endpoints', short: ['ep'] },
  { resource: 'persistentvolumes', kind: 'PersistentVolume', short: ['pv'], isCluster: true, hasStatus: true },
  { resource: 'persistentvolumeclaims', kind: 'PersistentVolumeClaim', short: ['pvc'], hasStatus: true },
  { resource: 'limitranges', kind: 'LimitRange', short: ['limits'] },
  { resource: 'resourcequotas', kind: 'ResourceQuota', short: ['quota'], hasStatus: true },
]

const workload = { hasStatus: true, hasGeneration: true, categories: ALL, hooks: deploymentHooks } as const
const groups: Readonly<Record<string, readonly Row[]>> = {
  '/v1': core,
  'apps/v1': [
    { resource: 'deployments', kind: 'Deployment', short: ['deploy'], scale: true, ...workload },
    { resource: 'replicasets', kind: 'ReplicaSet', short: ['rs'], scale: true, ...workload },
    { resource: 'statefulsets', kind: 'StatefulSet', short: ['sts'], scale: true, ...workload },
    { resource: 'daemonsets', kind: 'DaemonSet', short: ['ds'], ...workload, hooks: {} },
  ],
  'batch/v1': [
    { resource: 'jobs', kind: 'Job', ...workload, hooks: {} },
    { resource: 'cronjobs', kind: 'CronJob', short: ['cj'], ...workload, hooks: {} },
  ],
  'autoscaling/v2': [
    {
      resource: 'horizontalpodautoscalers',
      kind: 'HorizontalPodAutoscaler',
      short: ['hpa'],
      categories: ALL,
      hasStatus: true,
    },
  ],
  'networking.k8s.io/v1': [
    { resource: 'ingresses', kind: 'Ingress', short: ['ing'], hasStatus: true, hasGeneration: true },
    { resource: 'ingressclasses', kind: 'IngressClass', isCluster: true, hasGeneration: true },
    { resource: 'networkpolicies', kind: 'NetworkPolicy', short: ['netpol'], hasGeneration: true },
  ],
  'policy/v1': [
    {
      resource: 'poddisruptionbudgets',
      kind: 'PodDisruptionBudget',
      short: ['pdb'],
      hasStatus: true,
      hasGeneration: true,
    },
  ],
  'scheduling.k8s.io/v1': [
    { resource: 'priorityclasses', kind: 'PriorityClass', short: ['pc'], isCluster: true, hasGeneration: true },
  ],
  'storage.k8s.io/v1': [{ resource: 'storageclasses', kind: 'StorageClass', short: ['sc'], isCluster: true }],
  'coordination.k8s.io/v1': [{ resource: 'leases', kind: 'Lease', hooks: leaseHooks }],
  'events.k8s.io/v1': [
    {
      resource: 'events',
      kind: 'Event',
      short: ['ev'],
      storageKey: '/events',
      hooks: eventsEventHooks,
      selectable: [
        '.regarding.kind',
        '.regarding.namespace',
        '.regarding.name',
        '.regarding.uid',
        '.reason',
        '.reportingController',
        '.type',
      ],
    },
  ],
  'rbac.authorization.k8s.io/v1': [
    { resource: 'roles', kind: 'Role', hooks: roleHooks },
    { resource: 'rolebindings', kind: 'RoleBinding', hooks: bindingHooks },
    { resource: 'clusterroles', kind: 'ClusterRole', isCluster: true, hooks: roleHooks },
    { resource: 'clusterrolebindings', kind: 'ClusterRoleBinding', isCluster: true, hooks: bindingHooks },
  ],
  'admissionregistration.k8s.io/v1': [
    {
      resource: 'validatingwebhookconfigurations',
      kind: 'ValidatingWebhookConfiguration',
      isCluster: true,
      hasGeneration: true,
      categories: ['api-extensions'],
      hooks: webhookConfigurationHooks,
    },
  ],
  'authentication.k8s.io/v1': [
    { resource: 'tokenreviews', kind: 'TokenReview', isCluster: true, isReview: true },
    { resource: 'selfsubjectreviews', kind: 'SelfSubjectReview', isCluster: true, isReview: true },
  ],
  'authorization.k8s.io/v1': [
    { resource: 'subjectaccessreviews', kind: 'SubjectAccessReview', isCluster: true, isReview: true },
    { resource: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview', isCluster: true, isReview: true },
    { resource: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview', isCluster: true, isReview: true },
  ],
}

const WORKLOAD_SCALE = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
}

/** `isTaken` returns why the names of a CustomResourceDefinition are unavailable. */
export function builtInDefinitions(isTaken: IsTaken): Definition[] {
  const crds: Row = {
    resource: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    short: ['crd', 'crds'],
    isCluster: true,
    hasStatus: true,
    hasGeneration: true,
    categories: ['api-extensions'],
    hooks: crdHooks(isTaken),
  }
  return Object.entries({ ...groups, 'apiextensions.k8s.io/v1': [crds] }).flatMap(([groupVersion, rows]) => {
    const [group = '', version = ''] = groupVersion.split('/')
    return rows.map((row) => definitionOf(group, version, row))
  })
}

function definitionOf(group: string, version: string, row: Row): Definition {
  const columns: readonly Column[] | undefined = COLUMNS[row.kind]
  const schema = builtInSchema(group === '' ? version : `${group}/${version}`, row.kind)
  return {
    group,
    version,
    resource: row.resource,
    singular: row.kind.toLowerCase(),
    kind: row.kind,
    listKind: `${row.kind}List`,
    isNamespaced: row.isCluster !== true,
    shortNames: row.short ?? [],
    categories: row.categories ?? [],
    storing: row.isReview ? 'review' : 'record',
    isCustom: false,
    hasStatus: row.hasStatus === true,
    ...(row.scale ? { scale: WORKLOAD_SCALE } : {}),
    ...(columns ? { columns } : {}),
    ...(schema ? { schema } : {}),
    selectableFields: row.selectable ?? [],
    hasGeneration: row.hasGeneration === true,
    storageKey: row.storageKey ?? `${group}/${row.resource}`,
    storageVersion: version,
    hooks: row.hooks ?? {},
  }
}
