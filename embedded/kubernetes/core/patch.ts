/** Patches: computed from the current object, and recomputed when another write came first. */
import { authorizeCreate } from '../access/authorize.ts'
import { apply } from '../apply/managers.ts'
import { strategicMerge } from '../apply/strategic.ts'
import { typeSchemaOf } from '../apply/type-schema.ts'
import { checkSize, checkType, mediaType, parseJson, parseYamlOrJson } from './body.ts'
import {
  change,
  checkPreconditions,
  renderOutcome,
  existing,
  managerOf,
  withNamespaceOf,
  type Write,
} from './change.ts'
import type { Definition } from './definition.ts'
import type { Answer, Engine } from './engine.ts'
import { asString, isObject, type Json, type JsonObject } from './json.ts'
import { jsonPatch, mergePatch } from './json-patch.ts'
import { looseMetadata, type KubeObject } from './object.ts'
import type { ReadTarget } from './read.ts'
import { isTrue } from './request.ts'
import { fromScale, toScale } from './scale.ts'
import {
  badRequest,
  conflict,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  invalid,
  notFound,
  unknownPatchType,
  unsupportedMediaType,
} from './status.ts'

const PATCH_TYPES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

const PATCH_OPTIONS = { group: 'meta.k8s.io', kind: 'PatchOptions' }

/** Throws 415 for a type of patch that the object does not support. */
export async function patch(engine: Engine, write: Write): Promise<Answer> {
  const { target, request, query } = write
  const type = mediaType(request.headers['content-type'])
  const { definition } = target
  const body = request.body ?? ''
  if (type === PATCH_TYPES.apply) return applyPatch(engine, write)
  if (query.get('force') !== null)
    throw invalid(PATCH_OPTIONS, '', [fieldForbidden('force', 'may not be specified for non-apply patch')])
  const compute = patcherOf(type, body, definition)
  if (!compute && !definition.isCustom) throw unknownPatchType()
  if (!compute) throw unsupportedMediaType([PATCH_TYPES.json, PATCH_TYPES.merge, PATCH_TYPES.apply].join(', '))
  const outcome = await change(engine, write, {
    make: (current) => {
      const old = existing(target, current)
      const before: JsonObject = target.subresource === 'scale' ? toScale(definition, old) : old
      const after = compute.patch(before)
      checkSize(after)
      if (!isObject(after)) throw badRequest('the patch does not leave an object')
      if (target.subresource === 'scale')
        return { draft: fromScale(definition, old, after), source: 'patch', duplicates: compute.duplicates }
      checkPatched(target, after, old, body)
      return { draft: after, source: 'patch', duplicates: compute.duplicates, isRevisionNeeded: false }
    },
  })
  return renderOutcome(engine, write, outcome)
}

/** Server-side apply: creates a missing object if the user may create it. */
async function applyPatch(engine: Engine, write: Write): Promise<Answer> {
  const { target, request, query, user } = write
  const { definition, name, subresource } = target
  if (query.get('fieldManager') === null || query.get('fieldManager') === '')
    throw invalid(PATCH_OPTIONS, '', [fieldRequired('fieldManager', 'is required for apply patch')])
  const { value, duplicates } = parseYamlOrJson(request.body ?? '')
  if (!isObject(value)) throw badRequest('error decoding YAML: an apply configuration must be an object')
  if (subresource === 'scale') throw unsupportedMediaType([PATCH_TYPES.json, PATCH_TYPES.merge].join(', '))
  if (typeof value.kind !== 'string' || typeof value.apiVersion !== 'string')
    throw badRequest('invalid object type: /, Kind=')
  checkType(value, definition)
  const config = withNamespaceOf(value, target)
  const own = asString(looseMetadata(config).name)
  if (own !== '' && own !== name)
    throw badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`)
  const outcome = await change(engine, write, {
    make: (current) => {
      const { uid } = looseMetadata(config)
      if (current) checkPreconditions(target, config, current, false)
      else if (uid !== undefined && uid !== '')
        throw conflict(
          definition,
          name,
          `uid mismatch: the provided object specified uid ${String(uid)}, and no existing object was found`,
        )
      if (!current && subresource !== '') throw notFound(definition, name)
      if (!current) authorizeCreate(engine, user, target)
      const { object, managedFields } = apply(
        { definition, manager: managerOf(write), subresource, now: engine.clock.now() },
        config,
        current,
        isTrue(query, 'force'),
        asString(looseMetadata(value).namespace),
      )
      return { draft: object, source: 'patch', duplicates, managedFields }
    },
  })
  return renderOutcome(engine, write, outcome)
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

/** Patches must not change the name, namespace or type of an object. */
function checkPatched({ definition }: ReadTarget, after: JsonObject, old: KubeObject, text: string): void {
  const metadata = looseMetadata(after)
  checkType(after, definition, text)
  if (metadata.uid !== old.metadata.uid && metadata.uid !== undefined)
    throw invalid(definition, old.metadata.name, [fieldInvalid('metadata.uid', metadata.uid, 'field is immutable')])
  if (asString(metadata.name) === '')
    throw badRequest(
      `the name of the object (${old.metadata.name} based on URL) was undeterminable: name must be provided`,
    )
  if (asString(metadata.name) !== old.metadata.name)
    throw badRequest(
      `the name of the object (${asString(metadata.name)}) does not match the name on the URL (${old.metadata.name})`,
    )
  if (asString(metadata.namespace) !== (old.metadata.namespace ?? ''))
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
}
