/** The scale subresource: any resource with a replica count in the form of an autoscaling/v1 Scale. */
import { defined } from '../../../domain/defined.ts'
import { compileJsonPath } from './jsonpath.ts'
import { at, withAt, type Json, type JsonObject } from './json.ts'
import type { Definition, ScalePaths } from './definition.ts'
import { looseMetadata, type KubeObject } from './object.ts'
import { badRequest, fieldInvalid, internal, invalid, noSuchResource } from './status.ts'

const partsOf = (path: string): readonly string[] => path.split('.').filter((part) => part !== '')

function pathsOf(definition: Definition): ScalePaths {
  if (!definition.scale) throw noSuchResource()
  return definition.scale
}

const read = (object: KubeObject, path: string | undefined): Json | undefined =>
  path === undefined || path === '' ? undefined : compileJsonPath(path)(object)[0]

/** The `scale` subresource of the object. */
export function toScale(definition: Definition, object: KubeObject): JsonObject {
  const paths = pathsOf(definition)
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata
  const replicas = read(object, paths.specReplicasPath)
  if (replicas === undefined)
    throw internal(`the spec replicas field ${JSON.stringify(paths.specReplicasPath)} does not exist`)
  const selector = read(object, paths.labelSelectorPath)
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, ...defined({ namespace }), uid, resourceVersion, creationTimestamp },
    spec: { replicas },
    status: {
      replicas: read(object, paths.statusReplicasPath) ?? 0,
      ...(selector === undefined || selector === ''
        ? {}
        : { selector: typeof selector === 'string' ? selector : labelText(selector) }),
    },
  }
}

/** The object with the replica count of the Scale. */
export function fromScale(definition: Definition, object: KubeObject, scale: JsonObject): JsonObject {
  const replicas = at(scale, 'spec', 'replicas') ?? 0
  if (typeof replicas !== 'number' || !Number.isInteger(replicas))
    throw badRequest('spec.replicas of a Scale must be an integer')
  if (scale.kind !== undefined && scale.kind !== 'Scale')
    throw badRequest(`${String(scale.kind)} cannot be handled as a Scale`)
  if (replicas < 0)
    throw invalid(definition, object.metadata.name, [
      fieldInvalid('.spec.replicas', replicas, 'should be a non-negative integer'),
    ])
  const { resourceVersion } = looseMetadata(scale)
  const changed = withAt(object, partsOf(pathsOf(definition).specReplicasPath), replicas)
  return resourceVersion === undefined || resourceVersion === ''
    ? changed
    : { ...changed, metadata: { ...looseMetadata(changed), resourceVersion } }
}

const labelText = (selector: Json): string =>
  Object.entries(at(selector, 'matchLabels') ?? {})
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(',')
