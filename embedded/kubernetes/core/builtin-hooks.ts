/** Behaviour of single built-in kinds. */
import type { Hooks } from './definition.ts'
import {
  asList,
  asObject,
  asString,
  at,
  isEqual,
  isObject,
  type Json,
  type JsonObject,
  type MutableObject,
} from './json.ts'
import { withMetadata, type KubeObject } from './object.ts'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired, fieldTooLong, type Cause } from './status.ts'

const NAME_LABEL = 'kubernetes.io/metadata.name'
const EVENT_KEEPS_SECONDS = 3_600

/** The deletion of a namespace waits until its contents are deleted. */
export const namespaceHooks: Hooks = {
  prepare(object, old, { subresource }) {
    const labelled = withMetadata(object, { labels: { ...object.metadata.labels, [NAME_LABEL]: object.metadata.name } })
    const isDeleting = object.metadata.deletionTimestamp !== undefined
    // Only /finalize changes the finalizers in the spec.
    const finalizers =
      subresource === 'finalize'
        ? asList(at(object, 'spec', 'finalizers'))
        : old
          ? asList(at(old, 'spec', 'finalizers'))
          : ['kubernetes']
    return {
      ...labelled,
      spec: finalizers.length > 0 ? { finalizers } : {},
      status: { ...asObject(object.status), phase: isDeleting ? 'Terminating' : 'Active' },
    }
  },
  isHeld: (object) => asList(at(object, 'spec', 'finalizers')).length > 0,
}

function immutableFaults(object: KubeObject, old: KubeObject | undefined, members: readonly string[]): Cause[] {
  if (old?.immutable !== true) return []
  const why = 'field is immutable when `immutable` is set'
  return ['immutable', ...members]
    .filter((member) => !isEqual(object[member], old[member]))
    .map((member) => fieldForbidden(member, why))
}

const KEY = /^[-._a-zA-Z0-9]+$/
const keyFaults = (field: string, map: Json | undefined): Cause[] =>
  Object.keys(asObject(map))
    .filter((key) => !KEY.test(key))
    .map((key) =>
      fieldInvalid(
        `${field}[${key}]`,
        key,
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or " +
          "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      ),
    )

/** Limit of the values in a ConfigMap or a Secret, without its keys. */
const DATA_MOST_BYTES = 1_048_576
const base64Bytes = (text: Json | undefined): number => Buffer.byteLength(asString(text), 'base64')
const total = (map: Json | undefined, size: (text: Json | undefined) => number): number =>
  Object.values(asObject(map)).reduce<number>((sum, text) => sum + size(text), 0)

/** Removes the named members if they are empty, because typed clients never send an empty map. */
function withoutEmpty(object: KubeObject, members: readonly string[]): KubeObject {
  const entries = Object.entries(object).filter(
    ([name, value]) => !members.includes(name) || Object.keys(asObject(value)).length > 0,
  )
  return Object.fromEntries(entries) as KubeObject // neither metadata nor kind is ever named
}

export const configMapHooks: Hooks = {
  prepare: (object) => withoutEmpty(object, ['data', 'binaryData']),
  validate(object, old) {
    const twice = Object.keys(asObject(object.data)).filter((key) => asObject(object.binaryData)[key] !== undefined)
    const bytes =
      total(object.data, (text) => Buffer.byteLength(asString(text))) + total(object.binaryData, base64Bytes)
    return [
      ...keyFaults('data', object.data),
      ...twice.map((key) => fieldInvalid(`data[${key}]`, key, 'duplicate of key present in binaryData')),
      ...keyFaults('binaryData', object.binaryData),
      ...(bytes > DATA_MOST_BYTES ? [fieldTooLong('[]', DATA_MOST_BYTES)] : []),
      ...immutableFaults(object, old, ['data', 'binaryData']),
    ]
  },
}

/** Members of stringData become base64 in data. The default type is Opaque; the type is immutable. */
export const secretHooks: Hooks = {
  prepare(object, old) {
    const { stringData, data: sentData, ...rest } = object
    const data: MutableObject = { ...asObject(sentData) }
    for (const [key, value] of Object.entries(asObject(stringData)))
      data[key] = Buffer.from(String(value)).toString('base64')
    const type = asString(object.type) || asString(old?.type) || 'Opaque'
    // The rest keeps apiVersion, kind and metadata.
    return { ...(rest as KubeObject), ...(Object.keys(data).length > 0 ? { data } : {}), type }
  },
  validate: (object, old) => [
    ...keyFaults('data', object.data),
    ...(total(object.data, base64Bytes) > DATA_MOST_BYTES ? [fieldTooLong('data', DATA_MOST_BYTES)] : []),
    ...secretKeyFaults(object),
    ...(old && object.type !== old.type ? [fieldInvalid('type', object.type, 'field is immutable')] : []),
    ...immutableFaults(object, old, ['data']),
  ],
}

const SECRET_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}

function secretKeyFaults(object: KubeObject): Cause[] {
  const data = asObject(object.data)
  if (object.type === 'kubernetes.io/basic-auth') {
    const isNamed = data.username !== undefined || data.password !== undefined
    return isNamed ? [] : [fieldRequired('data[username]'), fieldRequired('data[password]')]
  }
  return (SECRET_KEYS[asString(object.type)] ?? [])
    .filter((key) => data[key] === undefined)
    .map((key) => fieldRequired(`data[${key}]`))
}

export const deploymentHooks: Hooks = {
  prepare: (object) => ({
    ...object,
    spec: { ...asObject(object.spec), replicas: at(object, 'spec', 'replicas') ?? 1 },
    status: object.status ?? {},
  }),
  validate: (object) => (isObject(at(object, 'spec', 'selector')) ? [] : [fieldRequired('spec.selector')]),
}

export const leaseHooks: Hooks = {
  validate: (object) =>
    (['leaseDurationSeconds', 'leaseTransitions'] as const).flatMap((member) => {
      const value = at(object, 'spec', member)
      if (value === undefined || value === null) return []
      const least = member === 'leaseDurationSeconds' ? 1 : 0
      return typeof value === 'number' && value >= least
        ? []
        : [
            fieldInvalid(
              `spec.${member}`,
              value,
              least === 1 ? 'must be greater than 0' : 'must be greater than or equal to 0',
            ),
          ]
    }),
}

/** Validates the rules of roles; the role of a binding is immutable. */
export const roleHooks: Hooks = {
  validate: (object) =>
    asList(object.rules).flatMap((rule, index) =>
      asList(at(rule, 'verbs')).length > 0
        ? []
        : [fieldRequired(`rules[${index}].verbs`, 'verbs must contain at least one value')],
    ),
}
export const bindingHooks: Hooks = {
  prepare: (object) => ({
    ...object,
    ...(object.subjects === undefined
      ? {}
      : {
          subjects: asList(object.subjects).map((subject) =>
            at(subject, 'kind') === 'ServiceAccount' || at(subject, 'apiGroup') !== undefined
              ? subject
              : { ...asObject(subject), apiGroup: 'rbac.authorization.k8s.io' },
          ),
        }),
  }),
  validate(object, old) {
    const { apiGroup, kind, name } = asObject(object.roleRef)
    const kinds = object.kind === 'RoleBinding' ? ['Role', 'ClusterRole'] : ['ClusterRole']
    return [
      ...(kinds.includes(asString(kind)) ? [] : [fieldNotSupported('roleRef.kind', kind ?? '', kinds)]),
      ...(old && !isEqual(object.roleRef, old.roleRef)
        ? [fieldInvalid('roleRef', { APIGroup: apiGroup, Kind: kind, Name: name }, 'cannot change roleRef')]
        : []),
    ]
  },
}

/** Members that every event has. */
export const EMPTY_EVENT = {
  eventTime: null,
  firstTimestamp: null,
  lastTimestamp: null,
  reportingComponent: '',
  reportingInstance: '',
  source: {},
}

/** Events are stored as core/v1 and deleted an hour after their last change. */
export const eventHooks: Hooks = {
  prepare: (object) => ({ ...EMPTY_EVENT, ...object }),
  validate: (object) => {
    const about = asString(at(object, 'involvedObject', 'namespace'))
    const home = object.metadata.namespace
    return about === home || (about === '' && home === 'default')
      ? []
      : [fieldInvalid('involvedObject.namespace', about, 'does not match event.namespace')]
  },
  keepsSeconds: EVENT_KEEPS_SECONDS,
}

const renamed = (object: JsonObject, names: Readonly<Record<string, string>>): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [names[key] ?? key, value]))

const TO_CORE = {
  regarding: 'involvedObject',
  note: 'message',
  reportingController: 'reportingComponent',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
}
const FROM_CORE = Object.fromEntries(Object.entries(TO_CORE).map(([from, to]) => [to, from]))

const EVENT_WORD_MAXIMUM = 128
const EVENT_NOTE_MAXIMUM = 1_024

/** Required fields of an event in the newer group, besides its object; faults use the field names of this group. */
function newEventFaults(event: KubeObject): Cause[] {
  const words = ['reportingController', 'reportingInstance', 'action', 'reason'].map(
    (name) => [name, asString(event[name])] as const,
  )
  const note = asString(event.note)
  return [
    ...(event.eventTime === undefined || event.eventTime === null ? [fieldRequired('eventTime')] : []),
    ...words.filter(([, word]) => word === '').map(([name]) => fieldRequired(name)),
    ...words
      .filter(([, word]) => word.length > EVENT_WORD_MAXIMUM)
      .map(([name]) => fieldInvalid(name, '', `can have at most ${EVENT_WORD_MAXIMUM} characters`)),
    ...(note.length > EVENT_NOTE_MAXIMUM
      ? [fieldInvalid('message', '', `can have at most ${EVENT_NOTE_MAXIMUM} characters`)]
      : []),
    ...(['Normal', 'Warning'].includes(asString(event.type))
      ? []
      : [fieldInvalid('type', '', `has invalid value: ${asString(event.type)}`)]),
  ]
}

/** The same events with the names of the newer group. */
export const eventsEventHooks: Hooks = {
  // Renaming keeps kind and metadata.
  fromStored: (object) => ({ ...renamed(object, FROM_CORE), apiVersion: 'events.k8s.io/v1' }) as KubeObject,
  toStored: (object) => ({ ...renamed(object, TO_CORE), apiVersion: 'v1' }) as KubeObject, // as above
  // events of the older group have fewer required fields
  validate: (object, old) => (old === undefined ? newEventFaults(object) : []),
  keepsSeconds: EVENT_KEEPS_SECONDS,
}
