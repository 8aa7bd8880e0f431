/** CustomResourceDefinitions: their validation, the fields that the server adds, and the resources that they provide.
 */
import { toSeconds } from '../../../kit/sys/clock.ts'
import { definitionFaults } from '../schema/structural.ts'
import type { Schema } from '../schema/schema.ts'
import type { Column, Definition, Hooks, Preparing, ScalePaths } from './definition.ts'
import { asList, asObject, asString, at, isObject, strings, type Json, type JsonObject } from './json.ts'
import type { KubeObject } from './object.ts'
import { fieldInvalid, fieldNotSupported, fieldRequired, type Cause } from './status.ts'

export const CRD_KEY = 'apiextensions.k8s.io/customresourcedefinitions'
export const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io'

/** The resources of an established definition: one for each served version, all stored in the same form. */
export function customDefinitions(crd: KubeObject): Definition[] {
  const spec = asObject(crd.spec)
  const names = asObject(at(crd, 'status', 'acceptedNames') ?? spec.names)
  const versions = asList(spec.versions).filter(isObject)
  const group = asString(spec.group)
  const kind = asString(names.kind)
  const storageVersion = asString(versions.find((version) => version.storage === true)?.name)
  if (conditionOf(crd, 'Established') !== 'True') return []
  return versions
    .filter((version) => version.served === true)
    .map((version): Definition => {
      const scale = at(version, 'subresources', 'scale')
      const schema = at(version, 'schema', 'openAPIV3Schema')
      return {
        group,
        version: asString(version.name),
        resource: asString(names.plural),
        singular: asString(names.singular) || kind.toLowerCase(),
        kind,
        listKind: asString(names.listKind) || `${kind}List`,
        isNamespaced: spec.scope === 'Namespaced',
        shortNames: strings(names.shortNames),
        categories: strings(names.categories),
        storing: 'record',
        isCustom: true,
        hasStatus: at(version, 'subresources', 'status') !== undefined,
        ...(isObject(scale) ? { scale: scalePathsOf(scale) } : {}),
        // structural.ts validated it when the definition was written
        ...(isObject(schema) ? { schema: schema as Schema } : {}),
        ...(version.additionalPrinterColumns === undefined
          ? {}
          : { columns: asList(version.additionalPrinterColumns).map(columnOf) }),
        selectableFields: asList(version.selectableFields).map((field) => asString(at(field, 'jsonPath'))),
        hasGeneration: true,
        storageKey: `${group}/${asString(names.plural)}`,
        storageVersion,
        ...(version.deprecated === true
          ? {
              deprecation:
                asString(version.deprecationWarning) || `${group}/${asString(version.name)} ${kind} is deprecated`,
            }
          : {}),
        hooks: {},
      }
    })
}

const scalePathsOf = ({ specReplicasPath, statusReplicasPath, labelSelectorPath }: JsonObject): ScalePaths => ({
  specReplicasPath: asString(specReplicasPath),
  statusReplicasPath: asString(statusReplicasPath),
  ...(typeof labelSelectorPath === 'string' ? { labelSelectorPath } : {}),
})

function columnOf(value: Json): Column {
  const { name, type, format, description, priority, jsonPath } = asObject(value)
  return {
    name: asString(name),
    type: asString(type) as Column['type'], // validated when the definition was written
    ...(typeof format === 'string' ? { format } : {}),
    description:
      typeof description === 'string'
        ? description
        : 'Custom resource definition column (in JSONPath format): ' + asString(jsonPath),
    ...(typeof priority === 'number' ? { priority } : {}),
    cell: asString(jsonPath),
  }
}

const conditionOf = (crd: KubeObject, type: string): Json | undefined =>
  at(
    asList(at(crd, 'status', 'conditions')).find((condition) => at(condition, 'type') === type),
    'status',
  )

/** The reason and the text of a conflict of names. */
export type IsTaken = (crd: KubeObject) => { readonly reason: string; readonly message: string } | undefined

/** `isTaken` returns whether another definition or a built-in resource has one of the names already. */
export const crdHooks = (isTaken: IsTaken): Hooks => ({
  holdsOnDelete: [CLEANUP],
  prepare: (crd, old, preparing) => prepared(crd, old, preparing, isTaken),
  validate: (crd, old) => [...namingFaults(crd, old), ...storedFaults(crd), ...definitionFaults(crd)],
})

function prepared(
  crd: KubeObject,
  old: KubeObject | undefined,
  { now, subresource }: Preparing,
  isTaken: IsTaken,
): KubeObject {
  const spec = withSpecDefaults(asObject(crd.spec))
  const named: KubeObject = { ...crd, spec }
  const collision = isTaken(named)
  const before = asList(at(old, 'status', 'conditions'))
  const condition = (type: string, isTrue: boolean, reason: string, message: string): Json => {
    const status = isTrue ? 'True' : 'False'
    const known = asObject(before.find((item) => at(item, 'type') === type))
    const lastTransitionTime = known.status === status ? (known.lastTransitionTime ?? toSeconds(now)) : toSeconds(now)
    return { lastTransitionTime, message, reason, status, type }
  }
  const stored = asString(
    at(
      asList(spec.versions).find((version) => at(version, 'storage') === true),
      'name',
    ),
  )
  const storedVersions = strings(at(subresource === 'status' ? crd : old, 'status', 'storedVersions'))
  const isEstablished = collision === undefined
  return {
    ...named,
    status: {
      conditions: [
        collision === undefined
          ? condition('NamesAccepted', true, 'NoConflicts', 'no conflicts found')
          : condition('NamesAccepted', false, collision.reason, collision.message),
        isEstablished
          ? condition('Established', true, 'InitialNamesAccepted', 'the initial names have been accepted')
          : condition('Established', false, 'NotAccepted', 'not all names are accepted'),
        ...(crd.metadata.deletionTimestamp === undefined
          ? []
          : [condition('Terminating', true, 'InstanceDeletionInProgress', 'CustomResource deletion is in progress')]),
      ],
      acceptedNames: isEstablished ? (spec.names ?? {}) : { plural: '', kind: '' },
      storedVersions: [...new Set([...storedVersions, stored])].filter((version) => version !== ''),
    },
  }
}

function withSpecDefaults(spec: JsonObject): JsonObject {
  const names = asObject(spec.names)
  const kind = asString(names.kind)
  return {
    ...spec,
    conversion: spec.conversion ?? { strategy: 'None' },
    names: { ...names, singular: names.singular ?? kind.toLowerCase(), listKind: names.listKind ?? `${kind}List` },
  }
}

const DNS_LABEL = /^[a-z]([-a-z0-9]*[a-z0-9])?$/

function storedFaults(crd: KubeObject): Cause[] {
  const names = new Set(asList(at(crd, 'spec', 'versions')).map((version) => at(version, 'name')))
  return strings(at(crd, 'status', 'storedVersions')).flatMap((version, index) =>
    names.has(version)
      ? []
      : [
          fieldInvalid(
            `status.storedVersions[${index}]`,
            version,
            `missing from spec.versions; ${version} was previously a storage version, and must remain in ` +
              `spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ` +
              `${version} from status.storedVersions`,
          ),
        ],
  )
}

function namingFaults(crd: KubeObject, old: KubeObject | undefined): Cause[] {
  const spec = asObject(crd.spec)
  const names = asObject(spec.names)
  const group = asString(spec.group)
  const expected = `${asString(names.plural)}.${group}`
  const versions = asList(spec.versions)
  const storages = versions.filter((version) => at(version, 'storage') === true).length
  return [
    ...(old && at(old, 'spec', 'group') !== group ? [fieldInvalid('spec.group', group, 'field is immutable')] : []),
    ...(old && at(old, 'spec', 'scope') !== spec.scope
      ? [fieldInvalid('spec.scope', spec.scope, 'field is immutable')]
      : []),
    ...(crd.metadata.name === expected || old
      ? []
      : [fieldInvalid('metadata.name', crd.metadata.name, `must be spec.names.plural+"."+spec.group`)]),
    ...(group.includes('.')
      ? []
      : group === ''
        ? [fieldRequired('spec.group')]
        : [fieldInvalid('spec.group', group, 'should be a domain with at least one dot')]),
    ...(['plural', 'kind'] as const)
      .filter((key) => asString(names[key]) === '')
      .map((key) => fieldRequired(`spec.names.${key}`)),
    ...(DNS_LABEL.test(asString(names.plural)) || asString(names.plural) === ''
      ? []
      : [
          fieldInvalid(
            'spec.names.plural',
            names.plural,
            'a DNS-1035 label must consist of lower case alphanumeric characters',
          ),
        ]),
    ...(spec.scope === 'Namespaced' || spec.scope === 'Cluster'
      ? []
      : spec.scope === undefined
        ? [fieldRequired('spec.scope')]
        : [fieldNotSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced'])]),
    ...(versions.length === 0 ? [fieldRequired('spec.versions')] : []),
    ...(storages === 1
      ? []
      : [
          fieldInvalid(
            'spec.versions',
            versions.map((version) => at(version, 'name') ?? null),
            'must have exactly one version marked as storage version',
          ),
        ]),
    ...(at(spec, 'conversion', 'strategy') === 'None'
      ? []
      : [
          fieldInvalid(
            'spec.conversion.strategy',
            at(spec, 'conversion', 'strategy') ?? null,
            'this server converts between versions only by strategy None',
          ),
        ]),
  ]
}

/** The conflict when a name of the definition belongs to another resource of its group. */
export function nameConflict(all: readonly Definition[], crd: KubeObject): ReturnType<IsTaken> {
  const names = asObject(at(crd, 'spec', 'names'))
  const group = asString(at(crd, 'spec', 'group'))
  const others = all.filter(
    (other) => other.group === group && other.storageKey !== `${group}/${asString(names.plural)}`,
  )
  const resources = new Set(others.flatMap((other) => [other.resource, other.singular, ...other.shortNames]))
  const kinds = new Set(others.flatMap((other) => [other.kind, other.listKind]))
  const checks: readonly (readonly [string, readonly string[], ReadonlySet<string>])[] = [
    ['ListKindConflict', [asString(names.listKind)], kinds],
    ['KindConflict', [asString(names.kind)], kinds],
    ['ShortNamesConflict', strings(names.shortNames), resources],
    ['SingularConflict', [asString(names.singular)], resources],
    ['PluralConflict', [asString(names.plural)], resources],
  ]
  for (const [reason, wanted, namesInUse] of checks) {
    const name = wanted.find((one) => namesInUse.has(one))
    if (name !== undefined) return { reason, message: `${JSON.stringify(name)} is already in use` }
  }
  return undefined
}
