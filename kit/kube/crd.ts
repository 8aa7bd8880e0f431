/** From a kind's zod schemas to its CustomResourceDefinition, and from CustomResourceDefinitions into a cluster.
 *  Refuses, with the path of the field, everything that a structural schema cannot express or leaves unbounded: the API
 *  server's cost estimate refuses rules over unbounded data, and a rule that is dropped silently is worse than none. */
import { z } from 'zod'
import type { Clock } from '../sys/clock.ts'
import { CustomResourceDefinition, type KubeObject, type ResourceType } from './object.ts'
import type { Store } from './store.ts'

/** The properties of a kind that its CRD needs. */
export interface KindDefinition extends ResourceType {
  readonly singular: string
  readonly shortNames: readonly string[]
  readonly description: string
  readonly spec: z.ZodType
  readonly status: z.ZodType
  readonly columns: readonly {
    readonly name: string
    readonly type: string
    readonly jsonPath: string
    readonly priority?: number
    readonly description?: string
  }[]
  readonly selectableFields: readonly string[]
  readonly rules: readonly CrdRule[]
  /** Fields of the spec whose descriptions say that they never change. */
  readonly fixed: readonly string[]
}

/** A CEL rule about the value that it is attached to. */
export interface CrdRule {
  readonly rule: string
  readonly message: string
}

export type Crd = KubeObject<Readonly<Record<string, unknown>>>

/** The CustomResourceDefinition of a kind with one version, which has a status subresource. Throws on a schema that it
 *  cannot express. */
export function crdOf(kind: KindDefinition, category: string): Crd {
  const schema = {
    description: kind.description,
    type: 'object',
    required: ['spec'],
    ...(kind.rules.length > 0 && { 'x-kubernetes-validations': kind.rules }),
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: withFixed(schemaOf(kind.spec, `${kind.kind}.spec`), kind.fixed),
      status: schemaOf(kind.status, `${kind.kind}.status`),
    },
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: kind.scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        ...(kind.shortNames.length > 0 && { shortNames: kind.shortNames }),
        categories: [category],
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: kind.columns,
          ...(kind.selectableFields.length > 0 && {
            selectableFields: kind.selectableFields.map((jsonPath) => ({ jsonPath })),
          }),
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  }
}

/** The schema of a spec, whose fixed fields say so at the end of their descriptions. */
function withFixed({ properties = {}, ...spec }: JsonSchema, fixed: readonly string[]): JsonSchema {
  if (fixed.length === 0) return { ...spec, properties }
  const described = fixed.map((field) => {
    const { description = '' } = properties[field] ?? {}
    return [field, { ...properties[field], description: `${String(description)} Cannot be changed.`.trim() }] as const
  })
  return { ...spec, properties: { ...properties, ...Object.fromEntries(described) } }
}

/** The members of a JSON Schema that are read here; others are passed on. */
export interface JsonSchema {
  readonly [member: string]: unknown
  readonly type?: string
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly unknown[]
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly required?: readonly string[]
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}

/** The structural schema of a zod schema. `at` names the place in errors. */
export function schemaOf(schema: z.ZodType, at: string): JsonSchema {
  // the members named in JsonSchema have these types in every JSON Schema
  return structural(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', reused: 'inline' }) as JsonSchema, at)
}

const INTEGER_LIMIT = Number.MAX_SAFE_INTEGER
const INT32 = { least: -(2 ** 31), most: 2 ** 31 - 1 }
/** Formats whose values are always short. */
const BOUNDED_FORMATS = new Set(['date-time', 'date', 'time', 'duration', 'uuid', 'ipv4', 'ipv6', 'cidrv4', 'cidrv6'])
const BOUNDED_FORMAT_LENGTH = 64
/** RE2 has neither lookaround nor back references. */
const BEYOND_RE2 = /\(\?<?[=!]|\\[1-9]|\\k</

function structural(node: JsonSchema, at: string): JsonSchema {
  const { $schema: _schema, ...plain } = node
  if (Object.keys(plain).length === 0) return { 'x-kubernetes-preserve-unknown-fields': true }
  const branches = plain.anyOf ?? plain.oneOf
  if (branches !== undefined) {
    const { anyOf: _any, oneOf: _one, ...around } = plain
    return { ...around, ...unionOf(branches, at) }
  }
  switch (plain.type) {
    case 'object':
      return objectOf(plain, at)
    case 'array':
      return arrayOf(plain, at)
    case 'string':
      return stringOf(plain, at)
    case 'integer':
      return integerOf(plain)
    case 'number':
    case 'boolean':
      return plain
    default:
      throw new Error(`${at}: a CRD cannot say ${JSON.stringify(plain).slice(0, 120)}`)
  }
}

function objectOf(node: JsonSchema, at: string): JsonSchema {
  const { properties, additionalProperties, propertyNames: _names, ...rest } = node
  const isOpen =
    additionalProperties === true ||
    (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length === 0)
  if (
    properties !== undefined &&
    (Object.keys(properties).length > 0 || typeof additionalProperties !== 'object' || isOpen)
  ) {
    const entries = Object.entries(properties).map(
      ([name, child]) => [name, structural(child, `${at}.${name}`)] as const,
    )
    return {
      ...rest,
      ...(entries.length > 0 && { properties: Object.fromEntries(entries) }),
      ...(isOpen && { 'x-kubernetes-preserve-unknown-fields': true }),
    }
  }
  if (typeof additionalProperties !== 'object' || isOpen)
    return { ...rest, 'x-kubernetes-preserve-unknown-fields': true }
  if (rest['maxProperties'] === undefined) throw new Error(`${at}: a map needs maxProperties`)
  return { ...rest, additionalProperties: structural(additionalProperties, `${at}.*`) }
}

function arrayOf(node: JsonSchema, at: string): JsonSchema {
  if (node['maxItems'] === undefined) throw new Error(`${at}: a list needs a maximum`)
  if (node.items === undefined) throw new Error(`${at}: a list needs the schema of its items`)
  return { ...node, items: structural(node.items, `${at}[]`) }
}

function stringOf(node: JsonSchema, at: string): JsonSchema {
  const { pattern, ...rest } = node
  const { format } = rest
  const isShort = format !== undefined && BOUNDED_FORMATS.has(format)
  if (rest['maxLength'] === undefined && rest.enum === undefined && !isShort)
    throw new Error(`${at}: a string needs a maximum`)
  const bound = isShort && rest['maxLength'] === undefined ? { maxLength: BOUNDED_FORMAT_LENGTH } : {}
  if (pattern === undefined || (format !== undefined && BEYOND_RE2.test(pattern))) return { ...rest, ...bound }
  if (BEYOND_RE2.test(pattern)) throw new Error(`${at}: RE2 cannot match ${pattern}`)
  return { ...rest, ...bound, pattern }
}

function integerOf(node: JsonSchema): JsonSchema {
  const { minimum = -INTEGER_LIMIT, maximum = INTEGER_LIMIT, ...rest } = node
  return {
    ...rest,
    format: minimum >= INT32.least && maximum <= INT32.most ? 'int32' : 'int64',
    ...(minimum > -INTEGER_LIMIT && { minimum }),
    ...(maximum < INTEGER_LIMIT && { maximum }),
  }
}

/** Text or number; one of several literals; or objects distinguished by one field that each fixes to a literal. */
function unionOf(branches: readonly JsonSchema[], at: string): JsonSchema {
  const types = new Set(branches.map(({ type }) => type))
  if (types.size === 2 && types.has('string') && types.has('integer')) return { 'x-kubernetes-int-or-string': true }
  const [type] = types
  if (types.size === 1 && type !== undefined && branches.every((branch) => branch.enum !== undefined))
    return { type, enum: [...new Set(branches.flatMap((branch) => branch.enum ?? []))] }
  if (types.size === 1 && type === 'object') return taggedUnionOf(branches, at)
  throw new Error(`${at}: a CRD cannot say this union; name its members by a discriminator`)
}

/** The fields of all members side by side, only the common ones required, and a CEL rule for each field that belongs to
 *  some members only. */
function taggedUnionOf(branches: readonly JsonSchema[], at: string): JsonSchema {
  const tagOf = (branch: JsonSchema, name: string) => branch.properties?.[name]?.enum?.map(String) ?? []
  const names = [...new Set(branches.flatMap((branch) => Object.keys(branch.properties ?? {})))]
  const tag = names.find((name) =>
    branches.every((branch) => tagOf(branch, name).length > 0 && branch.required?.includes(name)),
  )
  if (tag === undefined) throw new Error(`${at}: a union of objects needs a discriminator`)

  const isRequiredIn = (name: string) => branches.filter((branch) => branch.required?.includes(name))
  const properties: Record<string, JsonSchema> = {}
  const rules: CrdRule[] = []
  for (const name of names) {
    const holders = branches.filter((branch) => name in (branch.properties ?? {}))
    if (name === tag) {
      properties[name] = { type: 'string', enum: branches.flatMap((branch) => tagOf(branch, name)) }
      continue
    }
    const [first, ...others] = holders.map((branch) => structural(branch.properties?.[name] ?? {}, `${at}.${name}`))
    if (first === undefined || others.some((other) => JSON.stringify(other) !== JSON.stringify(first)))
      throw new Error(`${at}.${name}: members of the union disagree on it`)
    properties[name] = first
    const oneOf = (members: readonly JsonSchema[]) =>
      `self.${tag} in [${members
        .flatMap((branch) => tagOf(branch, tag))
        .map((value) => `'${value}'`)
        .join(', ')}]`
    const needing = isRequiredIn(name)
    if (holders.length < branches.length)
      rules.push({ rule: `!has(self.${name}) || ${oneOf(holders)}`, message: `${name} does not belong to this ${tag}` })
    if (needing.length > 0 && needing.length < branches.length)
      rules.push({ rule: `has(self.${name}) || !(${oneOf(needing)})`, message: `${name} is needed for this ${tag}` })
  }
  const required = names.filter((name) => isRequiredIn(name).length === branches.length)
  return { type: 'object', properties, required, ...(rules.length > 0 && { 'x-kubernetes-validations': rules }) }
}

const ESTABLISHED_TIMEOUT_MILLISECONDS = 60_000
const ESTABLISHED_POLL_MILLISECONDS = 100

/** Applies the definitions and waits until the server serves every one. Safe to repeat; throws when one is refused or
 *  not served in time. */
export async function installCrds(store: Store, crds: readonly Crd[], clock: Clock): Promise<void> {
  for (const { metadata, spec } of crds) await store.apply(CustomResourceDefinition, { metadata, spec })
  const deadline = clock.monotonicMilliseconds() + ESTABLISHED_TIMEOUT_MILLISECONDS
  for (const {
    metadata: { name },
  } of crds) {
    while (!isEstablished(name, await store.get(ServedDefinition, { name }))) {
      if (clock.monotonicMilliseconds() > deadline) throw new Error(`the API server does not serve ${name} in time`)
      await clock.sleep(ESTABLISHED_POLL_MILLISECONDS)
    }
  }
}

/** A definition with the parts of its status that are read. */
const ServedDefinition: ResourceType<unknown, CrdStatus> = CustomResourceDefinition

interface CrdStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
}

function isEstablished(name: string, crd: KubeObject<unknown, CrdStatus> | undefined): boolean {
  const condition = (type: string) => crd?.status?.conditions?.find((each) => each.type === type)
  const names = condition('NamesAccepted')
  if (names?.status === 'False') throw new Error(`the names of ${name} are taken: ${names.message ?? ''}`)
  return condition('Established')?.status === 'True'
}
