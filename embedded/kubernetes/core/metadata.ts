/** The metadata of every object: the fields that clients may set, those that the server determines, and validation. */
import { defined } from '../../../domain/defined.ts'
import { newUuid, type Random } from '../../../kit/sys/random.ts'
import { toSeconds } from '../../../kit/sys/clock.ts'
import {
  asList,
  asObject,
  at,
  isList,
  isObject,
  strings,
  type Json,
  type JsonObject,
  type MutableObject,
} from './json.ts'
import type { KubeObject, Metadata } from './object.ts'
import { fieldDuplicate, fieldForbidden, fieldInvalid, type Cause } from './status.ts'

const NAME_LETTERS = 'bcdfghjklmnpqrstvwxz2456789'
const GENERATED_LETTERS = 5
const GENERATED_BASE_LENGTH = 58
const NAME_LENGTH = 253
const LABEL_LENGTH = 63
const ANNOTATIONS_BYTES = 262_144

const CLIENT_MEMBERS = [
  'name',
  'generateName',
  'namespace',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'managedFields',
] as const
const SERVER_MEMBERS = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const
const KNOWN = new Set<string>([...CLIENT_MEMBERS, ...SERVER_MEMBERS, 'selfLink'])

export const generatedName = (base: string, random: Random): string =>
  base.slice(0, GENERATED_BASE_LENGTH) +
  Array.from(
    { length: GENERATED_LETTERS },
    () => NAME_LETTERS[Math.floor(random.fraction() * NAME_LETTERS.length)],
  ).join('')

/** Metadata of a new object; the write sets its resource version. */
export function newMetadata(draft: JsonObject, namespace: string, name: string, now: Date, random: Random): Metadata {
  return {
    ...clientMembers(draft),
    name,
    ...(namespace === '' ? {} : { namespace }),
    uid: newUuid(random),
    resourceVersion: '',
    creationTimestamp: toSeconds(now),
  }
}

/** Metadata of a changed object: the fields that the client may change from `draft`, the rest from the old object. */
export function changedMetadata(draft: JsonObject, old: KubeObject): Metadata {
  const serverMembers: MutableObject = {}
  for (const member of SERVER_MEMBERS)
    if (old.metadata[member] !== undefined) serverMembers[member] = old.metadata[member]
  const { name, namespace } = old.metadata
  // Every required member is in `serverMembers` or named here.
  return { ...clientMembers(draft), ...serverMembers, name, ...defined({ namespace }) } as Metadata
}

function clientMembers(draft: JsonObject): MutableObject {
  const members: MutableObject = {}
  for (const member of CLIENT_MEMBERS) {
    const value = draft[member]
    const isEmpty = value === undefined || value === null || value === '' || (isList(value) && value.length === 0)
    const hasMembers = !isObject(value) || Object.keys(value).length > 0
    if (!isEmpty && hasMembers) members[member] = value
  }
  return members
}

/** Members of metadata that Kubernetes does not know. */
export const unknownMetadata = (draft: JsonObject): string[] =>
  Object.keys(draft)
    .filter((key) => !KNOWN.has(key))
    .map((key) => `metadata.${key}`)

/** Type errors that make a body unreadable; undefined when there are none. */
export function metadataTypeError(metadata: Json | undefined): string | undefined {
  if (metadata === undefined || metadata === null) return undefined
  if (!isObject(metadata)) return 'metadata must be an object'
  for (const member of ['labels', 'annotations'] as const) {
    const map = metadata[member]
    if (map === undefined || map === null) continue
    if (!isObject(map)) return `metadata.${member} must be a map of strings`
    const wrong = Object.keys(map).find((key) => typeof map[key] !== 'string')
    if (wrong !== undefined)
      return (
        `json: cannot unmarshal ${typeof map[wrong]} into Go struct field ObjectMeta.metadata.${member} of type ` +
        'string'
      )
  }
  for (const member of ['name', 'generateName', 'namespace', 'uid', 'resourceVersion'] as const) {
    const value = metadata[member]
    if (value !== undefined && value !== null && typeof value !== 'string')
      return `json: cannot unmarshal ${typeof value} into Go struct field ObjectMeta.metadata.${member} of type string`
  }
  for (const member of ['finalizers', 'ownerReferences', 'managedFields'] as const) {
    const value = metadata[member]
    if (value !== undefined && value !== null && !isList(value)) return `metadata.${member} must be a list`
  }
  if (asList(metadata.finalizers).some((item) => typeof item !== 'string'))
    return 'metadata.finalizers must be a list of strings'
  return undefined
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
  "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const QUALIFIED_TEXT =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
  "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const LABEL_VALUE_TEXT =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for " +
  "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

/** How strict the names of a resource are: RBAC allows everything that fits in a path. */
export type NameRule = 'subdomain' | 'label' | 'path'

function nameFaults(field: string, name: string, rule: NameRule): Cause[] {
  if (rule === 'path')
    return /[/%]/.test(name) || name === '.' || name === '..'
      ? [fieldInvalid(field, name, `may not contain '/' or '%', and may not be '.' or '..'`)]
      : []
  if (rule === 'label' && name.includes('.')) return [fieldInvalid(field, name, 'must not contain dots')]
  const [pattern, text, limit] =
    rule === 'label' ? [LABEL, LABEL_TEXT, LABEL_LENGTH] : [SUBDOMAIN, SUBDOMAIN_TEXT, NAME_LENGTH]
  return [
    ...(name.length > limit ? [fieldInvalid(field, name, `must be no more than ${limit} bytes`)] : []),
    ...(pattern.test(name) ? [] : [fieldInvalid(field, name, text)]),
  ]
}

function qualifiedFaults(field: string, key: string): Cause[] {
  const [name = '', prefix] = key.includes('/')
    ? [key.slice(key.indexOf('/') + 1), key.slice(0, key.indexOf('/'))]
    : [key]
  return [
    ...(prefix !== undefined && !SUBDOMAIN.test(prefix)
      ? [fieldInvalid(field, key, `prefix part ${SUBDOMAIN_TEXT}`)]
      : []),
    ...(name.length > LABEL_LENGTH
      ? [fieldInvalid(field, key, `name part must be no more than ${LABEL_LENGTH} bytes`)]
      : []),
    ...(QUALIFIED.test(name) ? [] : [fieldInvalid(field, key, QUALIFIED_TEXT)]),
  ]
}

export function metadataFaults({ metadata }: KubeObject, old: KubeObject | undefined, rule: NameRule): Cause[] {
  const annotations = asObject(metadata.annotations)
  const annotationBytes = Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + key.length + String(value).length,
    0,
  )
  return [
    ...(old === undefined ? nameFaults('metadata.name', metadata.name, rule) : []),
    ...Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => [
      ...qualifiedFaults('metadata.labels', key),
      ...(value.length > LABEL_LENGTH
        ? [fieldInvalid('metadata.labels', value, `must be no more than ${LABEL_LENGTH} bytes`)]
        : []),
      ...(value === '' || QUALIFIED.test(value) ? [] : [fieldInvalid('metadata.labels', value, LABEL_VALUE_TEXT)]),
    ]),
    ...Object.keys(annotations).flatMap((key) => qualifiedFaults('metadata.annotations', key.toLowerCase())),
    ...(annotationBytes > ANNOTATIONS_BYTES
      ? [
          {
            reason: 'FieldValueTooLong',
            message: `Too long: may not be more than ${ANNOTATIONS_BYTES} bytes`,
            field: 'metadata.annotations',
          },
        ]
      : []),
    ...ownerFaults(asList(metadata.ownerReferences)),
    ...finalizerFaults(strings(metadata.finalizers), old),
  ]
}

function ownerFaults(owners: readonly Json[]): Cause[] {
  const faults = owners.flatMap((owner) => {
    return (['apiVersion', 'kind', 'name', 'uid'] as const).flatMap((member) => {
      const value = at(owner, member)
      return typeof value === 'string' && value !== ''
        ? []
        : [
            fieldInvalid(
              `metadata.ownerReferences.${member}`,
              value ?? '',
              member === 'apiVersion' ? 'version must not be empty' : 'must not be empty',
            ),
          ]
    })
  })
  const controllers = owners.filter((owner) => at(owner, 'controller') === true)
  return controllers.length > 1
    ? [
        ...faults,
        fieldInvalid(
          'metadata.ownerReferences',
          controllers,
          `Only one reference can have Controller set to true. Found "true" in references for ${controllers
            .slice(0, 2)
            .map((owner) => `${String(at(owner, 'kind'))}/${String(at(owner, 'name'))}`)
            .join(' and ')}`,
        ),
      ]
    : faults
}

const BARE_FINALIZERS = new Set(['orphan', 'foregroundDeletion', 'kubernetes'])

function finalizerFaults(finalizers: readonly string[], old: KubeObject | undefined): Cause[] {
  const before = new Set(old?.metadata.finalizers)
  const added = finalizers.filter((finalizer) => !before.has(finalizer))
  return [
    ...finalizers.flatMap((finalizer) => qualifiedFaults('metadata.finalizers', finalizer)),
    ...finalizers
      .filter((finalizer, index) => finalizers.indexOf(finalizer) !== index)
      .map((finalizer) => fieldDuplicate('metadata.finalizers', finalizer)),
    ...(finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')
      ? [fieldInvalid('metadata.finalizers', finalizers, 'finalizer orphan and foregroundDeletion cannot be both set')]
      : []),
    ...(old?.metadata.deletionTimestamp !== undefined && added.length > 0
      ? [
          fieldForbidden(
            'metadata.finalizers',
            'no new finalizers can be added if the object is being deleted, found new finalizers ' +
              `[]string{${added.map((name) => JSON.stringify(name)).join(', ')}}`,
          ),
        ]
      : []),
  ]
}

/** Finalizers without a domain work, but cause a warning. */
export const finalizerWarnings = (finalizers: readonly string[], before: readonly string[]): string[] =>
  finalizers
    .filter((finalizer) => !before.includes(finalizer))
    .filter((finalizer) => !finalizer.includes('/') && !BARE_FINALIZERS.has(finalizer))
    .map(
      (finalizer) =>
        `metadata.finalizers: ${JSON.stringify(finalizer)}: prefer a domain-qualified finalizer ` +
        `name${finalizer.includes('.') ? ' including a path (/)' : ''} to avoid accidental conflicts with other ` +
        'finalizer writers',
    )
