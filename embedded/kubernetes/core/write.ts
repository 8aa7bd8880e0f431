/** Create, replace, patch: one loop reads, computes, asks admission, and stores if nothing has changed meanwhile. */
import { apply, trackUpdate } from '../apply/managers.ts'
import { strategicMerge } from '../apply/strategic.ts'
import { typeSchemaOf } from '../apply/type-schema.ts'
import { negotiate } from './accept.ts'
import { checkType, mediaType, parseJson, parseObject, parseYamlOrJson } from './body.ts'
import { asStored, groupVersionOf, type Definition } from './definition.ts'
import { json, keyOf, type Answer, type Engine } from './engine.ts'
import { asList, asObject, asString, at, isEqual, isObject, sortedText, strings, type Json, type JsonObject } from './json.ts'
import { jsonPatch, mergePatch } from './json-patch.ts'
import { finalizerWarnings, generatedName } from './metadata.ts'
import { looseMetadata, withMetadata, type KubeObject, type ManagedFieldsEntry, type User } from './object.ts'
import type { Target } from './read.ts'
import { rendererOf } from './render.ts'
import { fieldValidationOf, isDryRun, isTrue, type Query, type Request } from './request.ts'
import { checkReadable, checkValid, shape, uncheckedRules } from './shape.ts'
import { alreadyExists, badRequest, conflict, fieldForbidden, fieldInvalid, fieldRequired, fieldTooLong, forbidden, invalid, notFound, Refusal, unavailable, unexpected, unknownPatchType, unsupportedMediaType } from './status.ts'
import { viewOf } from './view.ts'
import { fromScale, toScale } from './scale.ts'

const CHANGE_MOST_ATTEMPTS = 10
const GENERATE_MOST_ATTEMPTS = 8

/** One write request, taken apart. */
export interface Write {
  readonly target: Target
  readonly request: Request
  readonly query: Query
  readonly user: User
}

interface Outcome {
  readonly object: KubeObject
  readonly warnings: readonly string[]
  readonly status: number
}

export async function create(engine: Engine, write: Write): Promise<Answer> {
  const { target, request, query } = write
  const { definition } = target
  const { object, duplicates } = parseObject(request.body, request.headers['content-type'])
  checkType(object, definition, request.body)
  const given = withNamespaceOf(object, target)
  const metadata = looseMetadata(given)
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') throw unexpected('resourceVersion should not be set on objects to be created')
  const base = asString(metadata.generateName)
  const fixed = asString(metadata.name)
  if (fixed === '' && base === '') {
    throw invalid(definition, '', [fieldRequired('metadata.name', 'name or generateName is required'), ...uncheckedRules(definition)])
  }
  for (let attempt = 1; ; attempt++) {
    const name = fixed === '' ? generatedName(base, engine.random) : fixed
    try {
      return await dressed(engine, write, await change(engine, { ...write, target: { ...target, name } }, {
        make: (current) => {
          if (current) throw alreadyExists(definition, name)
          return { given, source: 'body', duplicates }
        },
      }))
    } catch (error) {
      const isTaken = error instanceof Refusal && error.reason === 'AlreadyExists'
      if (fixed !== '' || !isTaken || attempt >= GENERATE_MOST_ATTEMPTS) throw error
    }
  }
}

export async function replace(engine: Engine, write: Write): Promise<Answer> {
  const { target, request } = write
  const { object, duplicates } = parseObject(request.body, request.headers['content-type'])
  if (target.subresource === 'scale') {
    return scaled(engine, write, await change(engine, write, { make: (current) => ({ given: fromScale(target.definition, existing(target, current), object), source: 'body', duplicates }) }))
  }
  checkType(object, target.definition, request.body)
  const given = withNamespaceOf(object, target)
  const name = asString(looseMetadata(given).name)
  if (name !== target.name) {
    throw badRequest(name === '' ? 'name must be provided' : `the name of the object (${name}) does not match the name on the URL (${target.name})`)
  }
  return dressed(engine, write, await change(engine, write, {
    make: (current) => {
      existing(target, current)
      return { given, source: 'body', duplicates, isRevisionNeeded: needsRevision(target) }
    },
  }))
}

export const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

const PATCH_OPTIONS = { group: 'meta.k8s.io', kind: 'PatchOptions' }

export async function patch(engine: Engine, write: Write): Promise<Answer> {
  const { target, request, query } = write
  const type = mediaType(request.headers['content-type'])
  const { definition } = target
  const body = request.body ?? ''
  if (type === PATCH_TYPES.apply) return applyPatch(engine, write)
  if (query.get('force') !== null) throw invalid(PATCH_OPTIONS, '', [fieldForbidden('force', 'may not be specified for non-apply patch')])
  const compute = patcherOf(type, body, definition)
  if (!compute && !definition.isCustom) throw unknownPatchType()
  if (!compute) throw unsupportedMediaType([PATCH_TYPES.json, PATCH_TYPES.merge, PATCH_TYPES.apply].join(', '))
  const outcome = await change(engine, write, {
    make: (current) => {
      const old = existing(target, current)
      const before: JsonObject = target.subresource === 'scale' ? toScale(definition, old) : old
      const after = compute.patch(before)
      if (!isObject(after)) throw badRequest('the patch does not leave an object')
      if (target.subresource === 'scale') return { given: fromScale(definition, old, after), source: 'patch', duplicates: compute.duplicates }
      checkPatched(target, after, old, body)
      return { given: after, source: 'patch', duplicates: compute.duplicates, isRevisionNeeded: false }
    },
  })
  return target.subresource === 'scale' ? scaled(engine, write, outcome) : dressed(engine, write, outcome)
}

/** Server-side apply: creates what does not exist. */
async function applyPatch(engine: Engine, write: Write): Promise<Answer> {
  const { target, request, query } = write
  const { definition, name, subresource } = target
  if (query.get('fieldManager') === null || query.get('fieldManager') === '') throw invalid(PATCH_OPTIONS, '', [fieldRequired('fieldManager', 'is required for apply patch')])
  const { value, duplicates } = parseYamlOrJson(request.body ?? '')
  if (!isObject(value)) throw badRequest('error decoding YAML: an apply configuration must be an object')
  if (subresource === 'scale') throw unsupportedMediaType([PATCH_TYPES.json, PATCH_TYPES.merge].join(', '))
  if (typeof value.kind !== 'string' || typeof value.apiVersion !== 'string') throw badRequest('invalid object type: /, Kind=')
  checkType(value, definition)
  const config = withNamespaceOf(value, target)
  const own = asString(looseMetadata(config).name)
  if (own !== '' && own !== name) throw badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`)
  const outcome = await change(engine, write, {
    make: (current) => {
      const { uid } = looseMetadata(config)
      if (current) checkPreconditions(target, config, current, false)
      else if (uid !== undefined && uid !== '') throw conflict(definition, name, `uid mismatch: the provided object specified uid ${String(uid)}, and no existing object was found`)
      if (!current && subresource !== '') throw notFound(definition, name)
      const { object, managedFields } = apply({ definition, manager: managerOf(write), subresource, now: engine.clock.now() }, config, current, isTrue(query, 'force'), asString(looseMetadata(value).namespace))
      return { given: object, source: 'patch', duplicates, managedFields }
    },
  })
  return dressed(engine, write, outcome)
}

interface Patcher {
  readonly duplicates: readonly string[]
  readonly patch: (before: Json) => Json
}

function patcherOf(type: string, body: string, definition: Definition): Patcher | undefined {
  if (type === PATCH_TYPES.json) {
    const { value } = parseJson(body)
    return { duplicates: [], patch: (before) => jsonPatch(before, value) }
  }
  if (type === PATCH_TYPES.merge) {
    const { value, duplicates } = parseYamlOrJson(body)
    if (!isObject(value)) throw badRequest('error decoding patch: a merge patch must be an object')
    return { duplicates, patch: (before) => mergePatch(before, value) }
  }
  if (type === PATCH_TYPES.strategic && !definition.isCustom) {
    const { value, duplicates } = parseYamlOrJson(body)
    if (!isObject(value)) throw badRequest('error decoding patch: a strategic merge patch must be an object')
    return { duplicates, patch: (before) => strategicMerge(before, value, typeSchemaOf(definition)) }
  }
  return undefined
}

function existing(target: Target, current: KubeObject | undefined): KubeObject {
  if (!current) throw notFound(target.definition, target.name)
  return current
}

function withNamespaceOf(object: JsonObject, { definition, namespace }: Target): JsonObject {
  const metadata = looseMetadata(object)
  const given = asString(metadata.namespace)
  if (!definition.isNamespaced) {
    if (given !== '') throw badRequest('namespace is not allowed on this type')
    return { ...object, metadata }
  }
  if (given !== '' && given !== namespace) throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  return { ...object, metadata: { ...metadata, namespace } }
}

/** Patches may not rename, move or retype an object. */
function checkPatched({ definition }: Target, after: JsonObject, old: KubeObject, text: string): void {
  const metadata = looseMetadata(after)
  checkType(after, definition, text)
  if (metadata.uid !== old.metadata.uid && metadata.uid !== undefined) throw invalid(definition, old.metadata.name, [fieldInvalid('metadata.uid', metadata.uid, 'field is immutable')])
  if (asString(metadata.name) === '') throw badRequest(`the name of the object (${old.metadata.name} based on URL) was undeterminable: name must be provided`)
  if (asString(metadata.name) !== old.metadata.name) throw badRequest(`the name of the object (${asString(metadata.name)}) does not match the name on the URL (${old.metadata.name})`)
  if (asString(metadata.namespace) !== (old.metadata.namespace ?? '')) throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}

/** Kinds that may be replaced without naming the revision that was read. */
const needsRevision = ({ definition: { isCustom, resource } }: Target): boolean => isCustom || resource === 'leases' || resource === 'customresourcedefinitions'

function checkPreconditions({ definition, name }: Target, given: JsonObject, old: KubeObject, isRevisionNeeded: boolean): void {
  const { resourceVersion, uid } = looseMetadata(given)
  if (isRevisionNeeded && (resourceVersion === undefined || resourceVersion === '' || resourceVersion === '0')) {
    throw invalid({ group: definition.group, kind: definition.resource }, name, [fieldInvalid('metadata.resourceVersion', 0, 'must be specified for an update')])
  }
  const { deletionTimestamp } = looseMetadata(given)
  if (typeof deletionTimestamp === 'string' && deletionTimestamp !== old.metadata.deletionTimestamp) throw invalid(definition, name, [fieldInvalid('metadata.deletionTimestamp', deletionTimestamp, 'field is immutable')])
  if (uid !== undefined && uid !== '' && uid !== old.metadata.uid) {
    const key = ['/registry', definition.group, definition.resource, old.metadata.namespace, name].filter((part) => part !== undefined && part !== '').join('/')
    throw conflict(definition, name, `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${String(uid)}, UID in object meta: ${old.metadata.uid}`)
  }
  if (resourceVersion !== undefined && resourceVersion !== null && resourceVersion !== '' && resourceVersion !== old.metadata.resourceVersion) throw conflict(definition, name)
}

interface Made {
  readonly given: JsonObject
  readonly source: 'body' | 'patch'
  readonly duplicates: readonly string[]
  /** Set when the change must be made to the object that it names: whether it must name a revision. */
  readonly isRevisionNeeded?: boolean
  /** Who manages what, when the change says so itself. */
  readonly managedFields?: readonly ManagedFieldsEntry[]
}

const MANAGER_MOST_LETTERS = 128

const optionsOf = ({ method }: Request): string => (method === 'POST' ? 'CreateOptions' : method === 'PUT' ? 'UpdateOptions' : 'PatchOptions')

/** The name that the client gives, or the beginning of its user agent. */
function managerOf({ request, query }: Write): string {
  const given = query.get('fieldManager') ?? ''
  if (given.length > MANAGER_MOST_LETTERS) throw invalid({ group: 'meta.k8s.io', kind: optionsOf(request) }, '', [fieldTooLong('fieldManager', MANAGER_MOST_LETTERS)])
  return given || ((request.headers['user-agent'] ?? '').split('/')[0] || 'unknown').slice(0, MANAGER_MOST_LETTERS)
}

interface Changing {
  /** Computes the change of the object as it is now; called again when another write came first. */
  readonly make: (current: KubeObject | undefined) => Made
}

export async function change(engine: Engine, write: Write, changing: Changing): Promise<Outcome> {
  const { target, request, query, user } = write
  const { definition, namespace, name, subresource } = target
  const isDry = isDryRun(query, optionsOf(request))
  const table = engine.store.table(definition.storageKey)
  const key = keyOf(namespace, name)
  for (let attempt = 0; attempt < CHANGE_MOST_ATTEMPTS; attempt++) {
    const stored = table.get(key)
    const old = stored && viewOf(definition, stored)
    const made = changing.make(old)
    if (old === undefined) checkNamespace(engine, target)
    const now = engine.clock.now()
    const { object: shaped, unknown } = shape({ definition, given: made.given, old, namespace, name, subresource: ownPart(subresource), now, random: engine.random })
    const managedFields = made.managedFields ?? trackUpdate({ definition, manager: managerOf(write), subresource, now }, made.given, old, shaped)
    const object = withMetadata(shaped, { managedFields: managedFields.length === 0 ? undefined : managedFields })
    const strict = strictness(write, made, unknown)
    if (old && made.isRevisionNeeded !== undefined) checkPreconditions(target, made.given, old, made.isRevisionNeeded)
    const warnings = [...strict, ...finalizerWarnings(strings(looseMetadata(made.given).finalizers), old?.metadata.finalizers ?? [])]
    checkReadable(definition, object)
    checkValid(definition, object, old, ownPart(subresource))
    const asking = engine.admit({ operation: old ? 'UPDATE' : 'CREATE', definition, namespace, name, subresource, object, old, user, isDryRun: isDry })
    if (asking) {
      warnings.push(...(await asking).warnings)
      if (table.get(key) !== stored) continue
    }
    const next = asStored(definition, object)
    const status = old ? 200 : 201
    if (isDry) return { object: viewOf(definition, next.metadata.resourceVersion === '' ? withMetadata(next, { resourceVersion: undefined }) : next), warnings, status }
    if (stored && isSameState(next, stored)) return settled(engine, { object: viewOf(definition, stored), warnings, status })
    const isGone = next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0 && definition.hooks.isHeld?.(next) !== true
    // The answer to the write that lets an object go shows it as it was at its last revision.
    if (isGone) engine.store.remove(definition.storageKey, key, next)
    const kept = isGone ? next : engine.store.put(definition.storageKey, key, next)
    return settled(engine, { object: viewOf(definition, kept), warnings, status })
  }
  throw unavailable('the object changes too fast')
}

async function settled(engine: Engine, outcome: Outcome): Promise<Outcome> {
  await engine.store.durable()
  return outcome
}

const ownPart = (subresource: string): string => (subresource === 'scale' ? '' : subresource)

/** Nothing but times of managed fields differs. */
function isSameState(a: KubeObject, b: KubeObject): boolean {
  const content = (object: KubeObject) => withMetadata(object, { resourceVersion: '', managedFields: undefined })
  const owners = (object: KubeObject): Json => asList(object.metadata.managedFields).map((entry) => ({ ...asObject(entry), time: undefined }))
  return isEqual(content(a), content(b)) && isEqual(owners(a), owners(b))
}

/** Unknown and duplicate members: an error, a warning, or nothing, as the client asked. */
function strictness({ target: { definition }, request, query }: Write, made: Made, unknown: readonly string[]): string[] {
  const validation = fieldValidationOf(query, optionsOf(request))
  if (validation === 'Ignore') return []
  const faults = [
    ...made.duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
  ]
  if (validation === 'Warn' || faults.length === 0) return faults
  const detail = `strict decoding error: ${faults.join(', ')}`
  if (made.source === 'patch') throw invalid({ group: '', kind: '' }, '', [fieldInvalid('patch', sortedText(made.given), detail)])
  throw badRequest(`${definition.kind} in version ${JSON.stringify(definition.version)} cannot be handled as a ${definition.kind}: ${detail}`)
}

/** Objects live only in namespaces that exist and are not going away. */
function checkNamespace(engine: Engine, { definition, namespace, name }: Target): void {
  const crd = definition.isCustom ? engine.store.table('apiextensions.k8s.io/customresourcedefinitions').get(`${definition.resource}.${definition.group}`) : undefined
  if (crd?.metadata.deletionTimestamp !== undefined) throw forbidden(definition, name, 'create not allowed while custom resource definition is terminating')
  if (!definition.isNamespaced) return
  const home = engine.store.table('/namespaces').get(namespace)
  if (!home) throw notFound({ group: '', resource: 'namespaces' }, namespace)
  if (at(home, 'status', 'phase') === 'Terminating') {
    throw forbidden(definition, name, `unable to create new content in namespace ${namespace} because it is being terminated`, [
      { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' },
    ])
  }
}

function dressed(engine: Engine, { target, request, query }: Write, { object, warnings, status }: Outcome): Answer {
  const as = negotiate(request.headers.accept, ['Table', 'PartialObjectMetadata'])
  return json(status, rendererOf(target.definition, as, query.get('includeObject') ?? '', engine.clock.now()).object(object), warningHeaders(warnings))
}

const scaled = (_engine: Engine, { target }: Write, { object, warnings, status }: Outcome): Answer =>
  json(status, JSON.stringify(toScale(target.definition, object)), warningHeaders(warnings))

export const warningHeaders = (warnings: readonly string[]): Record<string, string> =>
  warnings.length === 0 ? {} : { warning: [...new Set(warnings)].map((text) => `299 - ${JSON.stringify(text)}`).join(', ') }

