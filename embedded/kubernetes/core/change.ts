/** The loop of every write: read, compute, shape, validate, ask admission, and store unless another write came first.
 */
import { trackUpdate } from '../apply/managers.ts'
import { negotiate } from './accept.ts'
import { asStored, type Definition } from './definition.ts'
import { json, entryKey, type Answer, type Engine } from './engine.ts'
import { asList, asObject, asString, at, isEqual, sortedText, strings, type Json, type JsonObject } from './json.ts'
import { finalizerWarnings } from './metadata.ts'
import { looseMetadata, withMetadata, type KubeObject, type ManagedFieldsEntry, type User } from './object.ts'
import { checkQuota } from './quota.ts'
import type { ReadTarget } from './read.ts'
import { rendererOf } from './render.ts'
import { fieldValidationOf, isDryRun, type Query, type Request } from './request.ts'
import { toScale } from './scale.ts'
import { checkReadable, checkValid, shape } from './shape.ts'
import {
  badRequest,
  conflict,
  fieldInvalid,
  fieldTooLong,
  forbidden,
  invalid,
  notFound,
  unavailable,
} from './status.ts'
import { versionView } from './view.ts'

const CHANGE_MOST_ATTEMPTS = 10

/** One parsed write request. */
export interface Write {
  readonly target: ReadTarget
  readonly request: Request
  readonly query: Query
  readonly user: User
}

export interface Outcome {
  readonly object: KubeObject
  readonly warnings: readonly string[]
  readonly status: number
}

/** The object to change; throws when it does not exist. */
export function existing(target: ReadTarget, current: KubeObject | undefined): KubeObject {
  if (!current) throw notFound(target.definition, target.name)
  return current
}

/** The object with the namespace of the path; throws when it names another namespace. */
export function withNamespaceOf(object: JsonObject, { definition, namespace }: ReadTarget): JsonObject {
  const metadata = looseMetadata(object)
  const ownNamespace = asString(metadata.namespace)
  if (!definition.isNamespaced) {
    if (ownNamespace !== '') throw badRequest('namespace is not allowed on this type')
    return { ...object, metadata }
  }
  if (ownNamespace !== '' && ownNamespace !== namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  return { ...object, metadata: { ...metadata, namespace } }
}

/** Throws when the change names a uid or revision that the object does not have. */
export function checkPreconditions(
  { definition, name }: ReadTarget,
  draft: JsonObject,
  old: KubeObject,
  isRevisionNeeded: boolean,
): void {
  const { resourceVersion, uid } = looseMetadata(draft)
  if (isRevisionNeeded && (resourceVersion === undefined || resourceVersion === '' || resourceVersion === '0')) {
    throw invalid({ group: definition.group, kind: definition.resource }, name, [
      fieldInvalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    ])
  }
  const { deletionTimestamp } = looseMetadata(draft)
  if (typeof deletionTimestamp === 'string' && deletionTimestamp !== old.metadata.deletionTimestamp)
    throw invalid(definition, name, [
      fieldInvalid('metadata.deletionTimestamp', deletionTimestamp, 'field is immutable'),
    ])
  if (uid !== undefined && uid !== '' && uid !== old.metadata.uid) {
    const key = ['/registry', definition.group, definition.resource, old.metadata.namespace, name]
      .filter((part) => part !== undefined && part !== '')
      .join('/')
    throw conflict(
      definition,
      name,
      `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition ` +
        `failed: UID in precondition: ${String(uid)}, UID in object meta: ${old.metadata.uid}`,
    )
  }
  if (
    resourceVersion !== undefined &&
    resourceVersion !== null &&
    resourceVersion !== '' &&
    resourceVersion !== old.metadata.resourceVersion
  )
    throw conflict(definition, name)
}

/** The result of a change, before it is shaped. */
export interface ProposedObject {
  readonly draft: JsonObject
  readonly source: 'body' | 'patch'
  readonly duplicates: readonly string[]
  /** Set when the uid and revision that the change names must match the object. True when it must name a revision. */
  readonly isRevisionNeeded?: boolean
  /** The field managers, when the change determines them itself. */
  readonly managedFields?: readonly ManagedFieldsEntry[]
}

const MANAGER_MOST_LETTERS = 128

const optionsOf = ({ method }: Request): string =>
  method === 'POST' ? 'CreateOptions' : method === 'PUT' ? 'UpdateOptions' : 'PatchOptions'

/** The name that the client gives, or the start of its user agent. */
export function managerOf({ request, query }: Write): string {
  const manager = query.get('fieldManager') ?? ''
  if (manager.length > MANAGER_MOST_LETTERS)
    throw invalid({ group: 'meta.k8s.io', kind: optionsOf(request) }, '', [
      fieldTooLong('fieldManager', MANAGER_MOST_LETTERS),
    ])
  return manager || ((request.headers['user-agent'] ?? '').split('/')[0] || 'unknown').slice(0, MANAGER_MOST_LETTERS)
}

interface Changing {
  /** Computes the change for the current object; called again when another write came first. */
  readonly make: (current: KubeObject | undefined) => ProposedObject
}

/** Carries out one write: computes it from the stored object, asks admission, and stores it. Starts again when another
 *  write came first. Resolves when the change is durable. */
export async function change(engine: Engine, write: Write, changing: Changing): Promise<Outcome> {
  const { target, request, query, user } = write
  const { definition, namespace, name, subresource } = target
  const isDry = isDryRun(query, optionsOf(request))
  const table = engine.store.table(definition.storageKey)
  const key = entryKey(namespace, name)
  for (let attempt = 0; attempt < CHANGE_MOST_ATTEMPTS; attempt++) {
    const stored = table.get(key)
    const { object, old, warnings } = prepare(engine, write, changing, stored)
    const admission = engine.admit({
      operation: old ? 'UPDATE' : 'CREATE',
      definition,
      namespace,
      name,
      subresource,
      object,
      old,
      user,
      isDryRun: isDry,
      fieldManager: query.get('fieldManager') ?? '',
    })
    if (admission) {
      warnings.push(...(await admission).warnings)
      if (table.get(key) !== stored) continue
    }
    const next = asStored(definition, object)
    const status = old ? 200 : 201
    if (!old) checkQuota(engine, target) // last, so that nothing can happen between this and the write
    if (isDry) return { object: versionView(definition, withoutEmptyRevision(next)), warnings, status }
    const result = store(engine, definition, key, stored, next)
    await engine.store.durable()
    return { object: versionView(definition, result), warnings, status }
  }
  throw unavailable('the object changes too fast')
}

interface PreparedChange {
  readonly object: KubeObject
  readonly old: KubeObject | undefined
  readonly warnings: string[]
}

/** The stored object after the change, shaped and validated. */
function prepare(engine: Engine, write: Write, { make }: Changing, stored: KubeObject | undefined): PreparedChange {
  const { target } = write
  const { definition, namespace, name, subresource } = target
  const old = stored && versionView(definition, stored)
  const proposed = make(old)
  const { draft } = proposed
  if (old === undefined) checkNamespace(engine, target)
  const now = engine.clock.now()
  const { object: shaped, unknown } = shape({
    definition,
    draft,
    old,
    namespace,
    name,
    subresource: ownPart(subresource),
    now,
    random: engine.random,
  })
  const managedFields =
    proposed.managedFields ??
    trackUpdate({ definition, manager: managerOf(write), subresource, now }, draft, old, shaped)
  const object = withMetadata(shaped, { managedFields: managedFields.length === 0 ? undefined : managedFields })
  const strict = strictness(write, proposed, unknown)
  if (old && proposed.isRevisionNeeded !== undefined) checkPreconditions(target, draft, old, proposed.isRevisionNeeded)
  const finalizers = finalizerWarnings(strings(looseMetadata(draft).finalizers), old?.metadata.finalizers ?? [])
  checkReadable(definition, object)
  return {
    object,
    old,
    warnings: [...strict, ...finalizers, ...checkValid(definition, object, old, ownPart(subresource))],
  }
}

const withoutEmptyRevision = (object: KubeObject): KubeObject =>
  object.metadata.resourceVersion === '' ? withMetadata(object, { resourceVersion: undefined }) : object

/** Replaces the stored state; returns the resulting object. */
function store(
  engine: Engine,
  { storageKey, hooks }: Definition,
  key: string,
  stored: KubeObject | undefined,
  next: KubeObject,
): KubeObject {
  if (stored && isSameState(next, stored)) return stored
  const { deletionTimestamp, finalizers = [] } = next.metadata
  const isGone = deletionTimestamp !== undefined && finalizers.length === 0 && hooks.isHeld?.(next) !== true
  if (!isGone) return engine.store.put(storageKey, key, next)
  // The response to the write that removes the last finalizer shows the object's final state and revision.
  engine.store.remove(storageKey, key, next)
  return next
}

const ownPart = (subresource: string): string => (subresource === 'scale' ? '' : subresource)

/** Whether only times of managed fields differ. */
function isSameState(a: KubeObject, b: KubeObject): boolean {
  const content = (object: KubeObject) => withMetadata(object, { resourceVersion: '', managedFields: undefined })
  const owners = (object: KubeObject): Json =>
    asList(object.metadata.managedFields).map((entry) => ({ ...asObject(entry), time: undefined }))
  return isEqual(content(a), content(b)) && isEqual(owners(a), owners(b))
}

/** Limit of the unknown and duplicate members in one response. */
const FAULTS_MAXIMUM = 100

/** Handles unknown and duplicate members as the client requested: error, warning, or nothing. */
function strictness(
  { target: { definition }, request, query }: Write,
  proposed: ProposedObject,
  unknown: readonly string[],
): string[] {
  const validation = fieldValidationOf(query, optionsOf(request))
  if (validation === 'Ignore') return []
  const faults = [
    ...proposed.duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
  ]
  if (validation === 'Warn' || faults.length === 0) return faults.slice(0, FAULTS_MAXIMUM)
  const detail = `strict decoding error: ${faults.slice(0, FAULTS_MAXIMUM).join(', ')}`
  if (proposed.source === 'patch')
    throw invalid({ group: '', kind: '' }, '', [fieldInvalid('patch', sortedText(proposed.draft), detail)])
  throw badRequest(
    `${definition.kind} in version ${JSON.stringify(definition.version)} cannot be handled as a ` +
      `${definition.kind}: ${detail}`,
  )
}

/** Objects are created only in namespaces that exist and are not being deleted. */
function checkNamespace(engine: Engine, { definition, namespace, name }: ReadTarget): void {
  const crd = definition.isCustom
    ? engine.store
        .table('apiextensions.k8s.io/customresourcedefinitions')
        .get(`${definition.resource}.${definition.group}`)
    : undefined
  if (crd?.metadata.deletionTimestamp !== undefined)
    throw forbidden(definition, name, 'create not allowed while custom resource definition is terminating')
  if (!definition.isNamespaced) return
  const home = engine.store.table('/namespaces').get(namespace)
  if (!home) throw notFound({ group: '', resource: 'namespaces' }, namespace)
  if (at(home, 'status', 'phase') === 'Terminating') {
    throw forbidden(
      definition,
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    )
  }
}

/** The response in the representation that the client requested. */
export function renderOutcome(
  engine: Engine,
  { target, request, query }: Write,
  { object, warnings, status }: Outcome,
): Answer {
  if (target.subresource === 'scale')
    return json(status, JSON.stringify(toScale(target.definition, object)), warningHeaders(warnings))
  const as = negotiate(request.headers.accept, ['Table', 'PartialObjectMetadata'])
  return json(
    status,
    rendererOf(target.definition, as, query.get('includeObject') ?? '', engine.clock).object(object),
    warningHeaders(warnings),
  )
}

const warningHeaders = (warnings: readonly string[]): Record<string, string> =>
  warnings.length === 0
    ? {}
    : { warning: [...new Set(warnings)].map((text) => `299 - ${JSON.stringify(text)}`).join(', ') }
