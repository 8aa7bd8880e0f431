/** Managers of fields: the fields that an update takes over and that an apply claims, and its conflicts. */
import { toSeconds } from '../../../kit/sys/clock.ts'
import { EMPTY_EVENT } from '../core/builtin-hooks.ts'
import { groupVersionOf, type Definition } from '../core/definition.ts'
import { asList, asObject, asString, isObject, sortedText, type Json, type JsonObject } from '../core/json.ts'
import { looseMetadata, type KubeObject, type ManagedFieldsEntry } from '../core/object.ts'
import { badRequest, Refusal, type Cause } from '../core/status.ts'
import type { Schema } from '../schema/schema.ts'
import { compare, valueFields } from './compare.ts'
import {
  difference,
  EMPTY,
  fromFieldsV1,
  intersection,
  isEmpty,
  onlyMember,
  pathsOf,
  toFieldsV1,
  union,
  without,
  type FieldSet,
} from './field-set.ts'
import { merged, removed } from './merge.ts'
import { typeSchemaOf } from './type-schema.ts'

const UPDATE_MOST_MANAGERS = 10
const ANCIENT = 'ancient-changes'

interface Manager {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly subresource: string
  readonly time: string
  readonly fields: FieldSet
}

/** Fields that nobody manages: the identity of the object and what the server writes. */
const UNMANAGED: readonly (readonly string[])[] = [
  ['apiVersion'],
  ['kind'],
  ...[
    'name',
    'namespace',
    'generateName',
    'uid',
    'resourceVersion',
    'generation',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'selfLink',
    'managedFields',
  ].map((name) => ['metadata', name]),
]

/** The identity of an apply does not depend on the version. */
const identity = ({ manager, operation, apiVersion, subresource }: Manager): string =>
  JSON.stringify([manager, operation, operation === 'Apply' ? '' : apiVersion, subresource])

export interface Writing {
  readonly definition: Definition
  readonly manager: string
  readonly subresource: string
  readonly now: Date
}

/** The fields that a write through this endpoint can own. */
function ownable({ definition, subresource }: Writing, fields: FieldSet): FieldSet {
  const managed = without(fields, UNMANAGED)
  if (subresource === 'status') return onlyMember(managed, 'status')
  return definition.hasStatus ? without(managed, [['status']]) : managed
}

function decode(entries: readonly Json[]): Manager[] {
  return entries.filter(isObject).map((entry) => ({
    manager: asString(entry.manager),
    operation: entry.operation === 'Apply' ? 'Apply' : 'Update',
    apiVersion: asString(entry.apiVersion),
    subresource: asString(entry.subresource),
    time: asString(entry.time),
    fields: fromFieldsV1(asObject(entry.fieldsV1)),
  }))
}

function encode(managers: readonly Manager[]): ManagedFieldsEntry[] {
  return managers
    .filter(({ fields }) => !isEmpty(fields))
    .map(({ manager, operation, apiVersion, subresource, time, fields }) => ({
      apiVersion,
      fieldsType: 'FieldsV1' as const,
      fieldsV1: toFieldsV1(fields),
      manager,
      operation,
      ...(subresource === '' ? {} : { subresource }),
      ...(time === '' ? {} : { time }),
    }))
    .sort(
      (a, b) =>
        compareText(a.operation, b.operation) ||
        compareText(a.time ?? '', b.time ?? '') ||
        compareText(a.manager, b.manager),
    )
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** The managers at the start of the write: a client may replace them, or clear them with `[{}]`. */
function startingManagers(draft: JsonObject, old: KubeObject | undefined, subresource: string): Manager[] {
  const sent = asList(looseMetadata(draft).managedFields)
  const live = decode(asList(old?.metadata.managedFields))
  if (subresource !== '' || sent.length === 0) return live
  if (sent.length === 1 && Object.keys(asObject(sent[0])).length === 0) return []
  return decode(sent)
}

/** managedFields after a create, a replace or a patch: the changed fields belong to the writer. */
export function trackUpdate(
  writing: Writing,
  draft: JsonObject,
  old: KubeObject | undefined,
  object: KubeObject,
): ManagedFieldsEntry[] {
  const { definition, now } = writing
  const schema = typeSchemaOf(definition)
  const changes = compare(old ?? emptyOf(definition), object, schema)
  const ownFields = ownable(writing, union(changes.modified, changes.added))
  const removals = without(changes.removed, UNMANAGED)
  const own = {
    manager: writing.manager,
    operation: 'Update',
    apiVersion: groupVersionOf(definition),
    subresource: writing.subresource,
    time: '',
    fields: EMPTY,
  } as const
  const managers = startingManagers(draft, old, writing.subresource)
  const mine = managers.find((one) => identity(one) === identity(own)) ?? own
  const others = managers
    .filter((one) => one !== mine)
    .map((one) => ({ ...one, fields: difference(difference(one.fields, ownFields), removals) }))
  const fields = difference(union(mine.fields, ownFields), removals)
  const time = isEmpty(ownFields) || writing.subresource === 'scale' ? mine.time : toSeconds(now)
  return encode(foldAncient([...others, { ...mine, fields, time }], definition))
}

/** If there are too many managers, those with the oldest updates are merged into one. */
function foldAncient(managers: readonly Manager[], definition: Definition): readonly Manager[] {
  const updates = managers
    .filter(({ operation, fields }) => operation === 'Update' && !isEmpty(fields))
    .sort((a, b) => compareText(a.time, b.time))
  const surplus = updates.slice(0, Math.max(0, updates.length - UPDATE_MOST_MANAGERS))
  if (surplus.length === 0) return managers
  const folded = new Set([...surplus, ...(surplus.length > 0 ? updates.slice(surplus.length, surplus.length + 1) : [])])
  const fields = [...folded].reduce((all, one) => union(all, one.fields), EMPTY)
  const time = [...folded].at(-1)?.time ?? ''
  return [
    ...managers.filter((one) => !folded.has(one)),
    { manager: ANCIENT, operation: 'Update', apiVersion: groupVersionOf(definition), subresource: '', time, fields },
  ]
}

/** A new object is compared with an empty one of its kind. */
const emptyOf = ({ isCustom }: Definition): JsonObject => ({ metadata: {}, ...(isCustom ? {} : EMPTY_PARTS) })

/** Initial members of objects of built-in kinds. They do no harm to a kind that lacks one of them. */
const EMPTY_PARTS: JsonObject = {
  spec: {
    finalizers: ['kubernetes'],
    names: {},
    containers: [],
    resources: {},
    strategy: {},
    updateStrategy: {},
    template: { metadata: {}, spec: { containers: [] } },
  },
  status: { loadBalancer: {} },
  roleRef: {},
  involvedObject: {},
  ...EMPTY_EVENT,
}

export interface ApplyResult {
  readonly object: JsonObject
  readonly managedFields: ManagedFieldsEntry[]
}

/** Server-side apply: merges the configuration into the live object, and removes the fields that this manager no longer
 *  specifies. */
export function apply(
  writing: Writing,
  config: JsonObject,
  live: KubeObject | undefined,
  isForced: boolean,
  givenNamespace: string,
): ApplyResult {
  const { definition, manager, subresource, now } = writing
  if (looseMetadata(config).managedFields !== undefined) throw badRequest('metadata.managedFields must be nil')
  const schema = typeSchemaOf(definition)
  checkDeclared(config, schema, definition, givenNamespace)
  const wanted = ownable(writing, valueFields(config, schema))
  const own = {
    manager,
    operation: 'Apply',
    apiVersion: groupVersionOf(definition),
    subresource,
    time: '',
    fields: EMPTY,
  } as const
  const known = decode(asList(live?.metadata.managedFields))
  const managers = live && known.length === 0 ? [beforeFirstApply(writing, live, schema)] : known
  const mine = managers.find((one) => identity(one) === identity(own)) ?? own
  const others = managers.filter((one) => one !== mine)
  const joined = asObject(merged(live, config, schema))
  const theirs = others.reduce((all, one) => union(all, one.fields), EMPTY)
  const object = asObject(removed(joined, difference(mine.fields, wanted), union(theirs, wanted), schema) ?? {})
  const changes = compare(live ?? emptyOf(definition), object, schema)
  const touched = ownable(writing, union(changes.modified, changes.added))
  const conflicts = others
    .map((one) => ({ one, fields: intersection(one.fields, touched) }))
    .filter(({ fields }) => !isEmpty(fields))
  if (conflicts.length > 0 && !isForced) throw conflictOf(conflicts)
  const removals = without(changes.removed, UNMANAGED)
  const lost = new Map(conflicts.map(({ one, fields }) => [one, fields]))
  const otherManagers = others.map((one) => ({
    ...one,
    fields: difference(difference(one.fields, lost.get(one) ?? EMPTY), removals),
  }))
  const isChanged =
    live === undefined || !isEmpty(without(union(union(changes.modified, changes.added), changes.removed), UNMANAGED))
  const time = isChanged ? toSeconds(now) : mine.time
  return {
    object: manager === KUBECTL ? withLastApplied(object, config) : object,
    managedFields: encode([...otherManagers, { ...mine, fields: wanted, time }]),
  }
}

const KUBECTL = 'kubectl'
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** If kubectl stored its configuration in an annotation, it is kept up to date, so that kubectl can return to
 *  client-side apply. */
function withLastApplied(object: JsonObject, config: JsonObject): JsonObject {
  const metadata = looseMetadata(object)
  const annotations = asObject(metadata.annotations)
  if (annotations[LAST_APPLIED] === undefined) return object
  const { annotations: ownAnnotations, managedFields: _managedFields, ...others } = looseMetadata(config)
  const { [LAST_APPLIED]: _own, ...left } = asObject(ownAnnotations)
  const applied = {
    ...config,
    metadata: { ...others, ...(Object.keys(left).length === 0 ? {} : { annotations: left }) },
  }
  return {
    ...object,
    metadata: { ...metadata, annotations: { ...annotations, [LAST_APPLIED]: `${sortedText(applied)}\n` } },
  }
}

/** Fields of an object without managers, from before the first apply, belong to a separate manager. */
const beforeFirstApply = (writing: Writing, live: KubeObject, schema: Schema): Manager => ({
  manager: 'before-first-apply',
  operation: 'Update',
  apiVersion: groupVersionOf(writing.definition),
  subresource: '',
  time: '',
  fields: ownable({ ...writing, subresource: '' }, valueFields(live, schema)),
})

/** A configuration may only contain fields of the schema, and each keyed item once. */
function checkDeclared(
  config: JsonObject,
  schema: Schema,
  { kind, group, version }: Definition,
  namespace: string,
): void {
  const faults = undeclared(config, schema, '')
  if (faults.length > 0) {
    const type = groupVersionOf({ group, version })
    const text = faults.length === 1 ? faults[0] : `errors:\n${faults.map((fault) => `  ${fault}`).join('\n')}`
    throw new Refusal(
      500,
      '',
      `failed to create typed patch object (${namespace}/${asString(looseMetadata(config).name)}; ${type}, ` +
        `Kind=${kind}): ${text}`,
    )
  }
}

function undeclared(value: Json, schema: Schema | undefined, path: string): string[] {
  if (!schema || schema['x-kubernetes-preserve-unknown-fields']) return []
  if (isObject(value) && (schema.properties || schema.type === 'object')) {
    const isOpen = schema.additionalProperties !== undefined && schema.additionalProperties !== false
    return Object.entries(value).flatMap(([key, member]) => {
      const known = schema.properties && Object.hasOwn(schema.properties, key) ? schema.properties[key] : undefined
      if (known) return undeclared(member ?? null, known, `${path}.${key}`)
      return isOpen ? [] : [`${path}.${key}: field not declared in schema`]
    })
  }
  if (Array.isArray(value) && schema.items) {
    return [...repeated(value, schema, path), ...value.flatMap((item: Json) => undeclared(item, schema.items, path))]
  }
  return scalarFaults(value, schema, path)
}

const SCALARS: Readonly<Record<string, { readonly name: string; readonly is: string }>> = {
  integer: { name: 'numeric (int or float)', is: 'number' },
  number: { name: 'numeric (int or float)', is: 'number' },
  string: { name: 'string', is: 'string' },
  boolean: { name: 'boolean', is: 'boolean' },
}

function scalarFaults(
  value: Json,
  { type = '', 'x-kubernetes-int-or-string': isIntOrString }: Schema,
  path: string,
): string[] {
  if (value === null || isIntOrString) return []
  const shown = isObject(value)
    ? 'map'
    : Array.isArray(value)
      ? 'list'
      : typeof value === 'number'
        ? 'int'
        : typeof value === 'boolean'
          ? 'bool'
          : 'string'
  const expected = SCALARS[type]
  if (expected && typeof value !== expected.is) return [`${path}: expected ${expected.name}, got ${shown}`]
  if (type === 'object' && !isObject(value)) return [`${path}: expected map, got ${shown}`]
  return type === 'array' && !Array.isArray(value) ? [`${path}: expected list, got ${shown}`] : []
}

function repeated(list: readonly Json[], schema: Schema, path: string): string[] {
  if (schema['x-kubernetes-list-type'] !== 'map') return []
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const named = list.map((item) =>
    keys
      .map((key) => `${key}=${JSON.stringify(asObject(item)[key] ?? schema.items?.properties?.[key]?.default)}`)
      .join(','),
  )
  return named
    .filter((key, index) => named.indexOf(key) !== index)
    .map((key) => `${path}: duplicate entries for key [${key}]`)
}

function conflictOf(conflicts: readonly { readonly one: Manager; readonly fields: FieldSet }[]): Refusal {
  const found = conflicts.flatMap(({ one, fields }) => pathsOf(fields).map((path) => ({ who: whoIs(one), path })))
  const causes: Cause[] = found.map(({ who, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${who}`,
    field: path,
  }))
  const [first] = found
  const byManager = [...Map.groupBy(found, ({ who }) => who)].sort(([a], [b]) => compareText(a, b))
  const text =
    found.length === 1 && first
      ? `conflict with ${first.who}: ${first.path}`
      : byManager
          .map(([who, paths]) => [`conflicts with ${who}:`, ...paths.map(({ path }) => `- ${path}`)].join('\n'))
          .join('\n')
  return new Refusal(
    409,
    'Conflict',
    `Apply failed with ${found.length} conflict${found.length === 1 ? '' : 's'}: ${text}`,
    { causes },
  )
}

function whoIs({ manager, subresource, operation, apiVersion }: Manager): string {
  const named = JSON.stringify(manager) + (subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`)
  if (operation === 'Apply') return named
  return `${named} using ${apiVersion}`
}
