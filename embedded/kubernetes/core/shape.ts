/** Transforms the object of a client to the stored form. Every write of every kind passes through these steps, in this
 *  order: metadata, the parts that this endpoint must not change, pruning, defaults, the kind's own preparation,
 *  generation, validation. Pure, except for the identity of a new object. */
import { defined } from '../../../domain/defined.ts'
import type { Random } from '../../../kit/sys/random.ts'
import { hasRules, ruleFaults } from '../schema/rules.ts'
import { withDefaults } from '../schema/defaults.ts'
import { pruned } from '../schema/prune.ts'
import { schemaFaults } from '../schema/validate.ts'
import { groupVersionOf, type Definition } from './definition.ts'
import { isEqual, type Json, type JsonObject } from './json.ts'
import { changedMetadata, metadataFaults, newMetadata, unknownMetadata, type NameRule } from './metadata.ts'
import { looseMetadata, type KubeObject } from './object.ts'
import { badRequest, invalid, type Cause } from './status.ts'

export interface ShapeInput {
  readonly definition: Definition
  readonly draft: JsonObject
  /** The current object, in the version of the definition; undefined for a create. */
  readonly old: KubeObject | undefined
  readonly namespace: string
  readonly name: string
  readonly subresource: string
  readonly now: Date
  readonly random: Random
}

export interface ShapedObject {
  readonly object: KubeObject
  /** Paths of members that the schema does not contain; they were removed from the object. */
  readonly unknown: readonly string[]
}

/** The object that would be stored. Does not refuse anything. */
export function shape(input: ShapeInput): ShapedObject {
  const { definition, draft, old, namespace, name, subresource, now, random } = input
  const metadata = looseMetadata(draft)
  const { apiVersion: _version, kind: _kind, metadata: _metadata, status, ...rest } = draft
  const content: JsonObject = {
    ...(subresource === 'status' && old ? contentOf(old) : rest),
    ...statusMember(definition, subresource, status, old),
  }
  const unknown: string[] = subresource === 'status' ? [] : unknownMetadata(metadata)
  const prunedContent = definition.schema ? pruned(content, definition.schema, unknown) : content
  const filled = definition.schema ? withDefaults(prunedContent, definition.schema) : prunedContent
  const identity =
    old === undefined
      ? newMetadata(metadata, namespace, name, now, random)
      : subresource === 'status'
        ? changedMetadata(definition.isCustom ? old.metadata : { ...old.metadata, ...metadata }, old)
        : changedMetadata(metadata, old)
  const object: KubeObject = {
    apiVersion: groupVersionOf(definition),
    kind: definition.kind,
    metadata: identity,
    ...filled,
  }
  const prepared = definition.hooks.prepare ? definition.hooks.prepare(object, old, { now, subresource }) : object
  return { object: withGeneration(definition, prepared, old, subresource), unknown }
}

/** Everything but type, metadata and status. */
function contentOf(object: KubeObject): JsonObject {
  const { apiVersion: _version, kind: _kind, metadata: _metadata, status: _status, ...content }: JsonObject = object
  return content
}

function statusMember(
  definition: Definition,
  subresource: string,
  sentStatus: Json | undefined,
  old: KubeObject | undefined,
): JsonObject {
  const status = definition.hasStatus && subresource !== 'status' ? old?.status : sentStatus
  return status === undefined ? {} : { status }
}

function withGeneration(
  definition: Definition,
  object: KubeObject,
  old: KubeObject | undefined,
  subresource: string,
): KubeObject {
  if (!definition.hasGeneration) return object
  const before = old?.metadata.generation ?? 0
  const isSame =
    old !== undefined &&
    (subresource === 'status' || isEqual(desiredOf(definition, object), desiredOf(definition, old)))
  const generation = isSame ? before : before + 1
  return generation === 0 ? object : { ...object, metadata: { ...object.metadata, generation } }
}

const desiredOf = (definition: Definition, object: KubeObject): JsonObject =>
  definition.hasStatus || object.status === undefined
    ? contentOf(object)
    : { ...contentOf(object), status: object.status }

/** Throws a 400 when a built-in object has members of the wrong type, because it would be unreadable. */
export function checkReadable(definition: Definition, object: KubeObject): void {
  const { schema, kind, version } = definition
  if (definition.isCustom || !schema) return
  const fault = schemaFaults(contentWithStatus(object), schema).find(
    ({ reason, message }) => reason === 'FieldValueTypeInvalid' && !message.endsWith('"null"'),
  ) // null counts as absent everywhere
  if (fault)
    throw badRequest(
      `${kind} in version ${JSON.stringify(version)} cannot be handled as a ${kind}: ${fault.field ?? ''}: ` +
        `${fault.message}`,
    )
}

/** Throws a 422 with every fault of the object. Returns warnings for violations that existed before. */
export function checkValid(
  definition: Definition,
  object: KubeObject,
  old: KubeObject | undefined,
  subresource: string,
): string[] {
  const tolerated: Cause[] = []
  const causes = contentFaults(definition, object, old, subresource, {
    own: [...metadataFaults(object, old, nameRuleOf(definition)), ...(definition.hooks.validate?.(object, old) ?? [])],
    tolerated,
  })
  if (causes.length > 0) {
    const [group = ''] = definition.storageKey.split('/') // refusals use the kind in its stored form
    throw invalid({ ...definition, group }, object.metadata.name, causes)
  }
  return tolerated.map(({ field, message }) => `${field ?? ''}: ${message}`)
}

/** All faults of the object; `own` are those of its metadata and its kind. */
function contentFaults(
  definition: Definition,
  object: KubeObject,
  old: KubeObject | undefined,
  subresource: string,
  { own, tolerated }: { readonly own: readonly Cause[]; readonly tolerated: Cause[] },
): Cause[] {
  const { schema } = definition
  if (!schema || !definition.isCustom) return [...own]
  // Each endpoint validates only its own part: an old stored status never blocks a change of the spec.
  const isStatus = subresource === 'status'
  const part = (whole: KubeObject): JsonObject =>
    isStatus ? { status: whole.status } : definition.hasStatus && old ? withoutStatus(whole) : contentWithStatus(whole)
  const relevant = isStatus
    ? { ...schema, required: (schema.required ?? []).filter((key) => key === 'status') }
    : schema
  const faults = schemaFaults(part(object), relevant, '', old && part(old))
  if ([...own, ...faults].some(({ reason }) => BLOCKING.has(reason ?? '')))
    return [...own, ...faults, ...uncheckedRules(definition)]
  return [...own, ...faults, ...ruleFaults(rulesView(object), old && rulesView(old), schema, '', tolerated)]
}

/** After these faults, validation rules cannot be evaluated reliably. */
const BLOCKING = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

const RULES_UNCHECKED: Cause = {
  reason: 'FieldValueInvalid',
  message:
    'Invalid value: null: some validation rules were not checked because the object was invalid; correct the ' +
    'existing errors to complete validation',
  field: '<nil>',
}

/** Reports that validation rules were skipped, if there are any. */
export const uncheckedRules = ({ schema }: Definition): Cause[] => (schema && hasRules(schema) ? [RULES_UNCHECKED] : [])

/** Rules can see only the name in the metadata. */
const rulesView = (object: KubeObject): JsonObject => {
  const { name, generateName } = object.metadata
  return { ...object, metadata: { name, ...defined({ generateName }) } }
}

const contentWithStatus = ({
  apiVersion: _version,
  kind: _kind,
  metadata: _metadata,
  ...rest
}: KubeObject): JsonObject => rest
const withoutStatus = contentOf

const PATH_NAMED = new Set(['rbac.authorization.k8s.io'])
const nameRuleOf = (definition: Definition): NameRule =>
  PATH_NAMED.has(definition.group)
    ? 'path'
    : definition.group === '' && (definition.resource === 'namespaces' || definition.resource === 'services')
      ? 'label'
      : 'subdomain'
