/** The columns of `kubectl get` for built-in kinds. Kinds without an entry, such as all workloads, show name and age.
 */
import { ageOf } from './age.ts'
import type { Column } from './definition.ts'
import { asList, asObject, asString, at, type Json } from './json.ts'
import type { KubeObject } from './object.ts'

const AGE: Column = {
  name: 'Age',
  type: 'date',
  description: 'How long ago the object was created.',
  cell: '.metadata.creationTimestamp',
}
const CREATED: Column = {
  name: 'Created At',
  type: 'date',
  description: 'When the object was created.',
  cell: (object) => object.metadata.creationTimestamp,
}
const text = (name: string, cell: Column['cell'], priority = 0): Column => ({
  name,
  type: 'string',
  description: '',
  priority,
  cell,
})
const count = (name: string, cell: (object: KubeObject) => number, priority = 0): Column => ({
  name,
  type: 'integer',
  description: '',
  priority,
  cell,
})
const membersOf = (object: KubeObject, ...keys: readonly string[]): number =>
  keys.reduce((sum, key) => sum + Object.keys(asObject(object[key])).length, 0)
const subjects = (object: KubeObject, kind: string): string =>
  asList(object.subjects)
    .filter((subject) => at(subject, 'kind') === kind)
    .map(
      (subject) =>
        (kind === 'ServiceAccount' ? `${asString(at(subject, 'namespace'))}/` : '') + asString(at(subject, 'name')),
    )
    .join(', ')
const roleRef: Column['cell'] = (object) =>
  `${asString(at(object, 'roleRef', 'kind'))}/${asString(at(object, 'roleRef', 'name'))}`
const binding: readonly Column[] = [
  text('Role', roleRef),
  AGE,
  text('Users', (object) => subjects(object, 'User'), 1),
  text('Groups', (object) => subjects(object, 'Group'), 1),
  text('ServiceAccounts', (object) => subjects(object, 'ServiceAccount'), 1),
]
const lastSeen = (object: KubeObject): string =>
  asString(at(object, 'series', 'lastObservedTime')) ||
  asString(object.lastTimestamp) ||
  asString(object.eventTime) ||
  asString(object.firstTimestamp)
const about = (object: KubeObject): Json | undefined => object.involvedObject ?? object.regarding
const sourceText = (object: KubeObject): string => {
  const component = asString(at(object, 'source', 'component')) || asString(object.reportingComponent)
  const host = asString(at(object, 'source', 'host')) || asString(object.reportingInstance)
  return host === '' ? component : `${component}, ${host}`
}

export const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Namespace: [text('Status', '.status.phase'), AGE],
  ConfigMap: [count('Data', (object) => membersOf(object, 'data', 'binaryData')), AGE],
  Secret: [text('Type', '.type'), count('Data', (object) => membersOf(object, 'data')), AGE],
  ServiceAccount: [count('Secrets', (object) => asList(object.secrets).length), AGE],
  Lease: [text('Holder', (object) => asString(at(object, 'spec', 'holderIdentity'))), AGE],
  CustomResourceDefinition: [CREATED],
  Role: [CREATED],
  ClusterRole: [CREATED],
  RoleBinding: binding,
  ClusterRoleBinding: binding,
  ValidatingWebhookConfiguration: [count('Webhooks', (object) => asList(object.webhooks).length), AGE],
  Event: [
    text('Last Seen', (object, now) => ageOf(lastSeen(object), now)),
    text('Type', '.type'),
    text('Reason', '.reason'),
    text(
      'Object',
      (object) => `${asString(at(about(object), 'kind')).toLowerCase()}/${asString(at(about(object), 'name'))}`,
    ),
    text('Subobject', (object) => asString(at(about(object), 'fieldPath')), 1),
    text('Source', sourceText, 1),
    text('Message', (object) => asString(object.message ?? object.note).trim()),
    text('First Seen', (object, now) => ageOf(asString(object.firstTimestamp) || asString(object.eventTime), now), 1),
    count('Count', (object) => Number(object.count ?? at(object, 'series', 'count') ?? 1), 1),
    text('Name', (object) => object.metadata.name, 1),
  ],
}
