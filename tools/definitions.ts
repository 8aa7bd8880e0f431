/** The definitions of the nouns that programs keep as they are written down, from their registrations, routes and
 *  views. A provider of infrastructure as code knows nothing else of a noun. */
import { z } from 'zod'
import { defined } from '../domain/defined.ts'
import { simplify } from '../kit/http/openapi-fields.ts'
import type { Route } from '../kit/http/route.ts'
import { itemOf } from '../resources/kit/filters.ts'
import {
  type ManagedChange,
  type ManagedField,
  type ManagedNoun,
  type ManagedParent,
  setBy,
  shownOf,
} from '../resources/kit/managed.ts'

/** Increases with every change that a reader of an older format would misread. */
const DEFINITIONS_FORMAT = 3

type Shape = Readonly<Record<string, z.ZodType>>

// a shape is of schemas
const shapeOf = (schema: z.ZodType | null): Shape => (schema instanceof z.ZodObject ? (schema.shape as Shape) : {})

const callOf = ({ id, method, path, starts, secretFields, takesDryRun }: Route): object => ({
  id,
  method,
  path,
  ...(starts.length === 0 ? {} : { operation: true }),
  ...(secretFields.length === 0 ? {} : { secretFields }),
  ...(takesDryRun || method === 'GET' ? {} : { noDryRun: true }),
})

const maybe = (route: Route | undefined): object | undefined => route && callOf(route)

const changeOf = (change: ManagedChange): object => {
  if ('each' in change) {
    const { list, add, remove, ...rest } = change
    return { ...rest, ...defined({ list: maybe(list) }), add: callOf(add), remove: callOf(remove) }
  }
  if ('when' in change) return { by: callOf(change.by), when: change.when }
  const { by, readBy, ...rest } = change
  return { by: callOf(by), ...rest, sets: setBy(change), ...defined({ readBy: maybe(readBy) }) }
}

const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): object => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    reused: 'inline',
    override({ zodSchema, jsonSchema }) {
      // it is not said where something below is converted
      if (zodSchema instanceof z.ZodDefault) jsonSchema.default ??= zodSchema.parse(undefined)
      simplify(jsonSchema)
    },
  })
  return rest
}

type AttributeMode = 'required' | 'optional' | 'default' | 'chosen' | 'computed'

/** `chosen`: the service chooses it where nobody writes it, and shows what it chose. */
function modeOf(field: ManagedField, created: z.ZodType | undefined, shown: z.ZodType | undefined): AttributeMode {
  if (field.default !== undefined) return 'default'
  if (created !== undefined && !created.safeParse(undefined).success) return 'required'
  if (created instanceof z.ZodDefault) return 'default'
  if (field.isChosen === true) return 'chosen'
  if (field.isOptional === true || field.shows !== undefined || shown === undefined) return 'optional'
  return shown.safeParse(null).success ? 'optional' : 'chosen'
}

/** What people write, and what a program shows them afterwards; moments are neither. */
function attributesOf(noun: ManagedNoun): Readonly<Record<string, object>> {
  const { view, routes, changes, fields = {}, facts, leaves = [], parent } = noun
  const created = Object.fromEntries(
    Object.entries(shapeOf(routes.create.body)).filter(([name]) => !leaves.includes(name)),
  )
  const shown = shapeOf(view)
  const replaced = new Set(Object.values(fields).map(({ creates }) => creates?.field))
  const set = new Set(changes.flatMap((change) => Object.keys(setBy(change))))
  const wishes = [...new Set([...Object.keys(created).filter((name) => !replaced.has(name)), ...set])]
  const wished = wishes.map((name) => {
    const field = fields[name] ?? {}
    const {
      creates,
      default: left,
      shows,
      isOptional: _optional,
      isChosen: _chosen,
      isEdited: _edited,
      changedBy,
      ...rest
    } = field
    const asked = created[name]
    const answered = shownOf(view, name, field)
    const mode = modeOf(field, asked, answered)
    const schema = asked === undefined ? answered : asked
    return [
      name,
      {
        mode,
        ...defined({ default: left ?? (mode === 'default' ? asked?.parse(undefined) : undefined), creates, shows }),
        ...(set.has(name) ? {} : { replaces: true, ...defined({ changedBy: maybe(changedBy) }) }),
        // the creation does not take it: a change sets it afterwards
        ...(asked === undefined && creates === undefined ? { later: true } : {}),
        ...rest,
        schema: schema === undefined ? {} : schemaOf(schema, asked === undefined ? 'output' : 'input'),
      },
    ] as const
  })
  const above =
    parent === undefined || parent.field in created ? [] : [[parent.field, parentAttribute(parent)] as const]
  const known = facts.map((name) => [
    name,
    { mode: 'computed', schema: schemaOf(shown[name] ?? z.unknown(), 'output') },
  ])
  return Object.fromEntries([...above, ...wished, ...known])
}

const parentAttribute = ({ refers }: ManagedParent): object => ({
  mode: 'required',
  replaces: true,
  refers,
  schema: { type: 'string' },
})

/** The routes by which programs keep nouns as they are written down. */
const keptBy = ({ routes: { create, list, read, remove }, changes }: ManagedNoun): readonly (Route | undefined)[] => [
  create,
  list,
  read,
  remove,
  ...changes.flatMap((change) =>
    'each' in change
      ? [change.list, change.add, change.remove]
      : [change.by, 'readBy' in change ? change.readBy : undefined],
  ),
]

const pathOf = ({ routes: { read, create } }: ManagedNoun): string => (read ?? create).path

/** A request that keeps nothing as it is written: what it takes, and what it answers. */
const verbOf = (route: Route): object => {
  const { summary, query, body, answers, takesDryRun } = route
  const schemasOf = (schema: z.ZodType | null, io: 'input' | 'output') =>
    Object.fromEntries(Object.entries(shapeOf(schema)).map(([name, part]) => [name, schemaOf(part, io)]))
  const required = Object.entries({ ...shapeOf(query), ...shapeOf(body) }).filter(
    ([, part]) => !part.safeParse(undefined).success,
  )
  const { dry_run: _dryRun, ...asked } = schemasOf(query, 'output')
  return {
    ...callOf(route),
    summary,
    ...(takesDryRun ? { dryRun: true } : {}),
    query: asked,
    body: schemasOf(body, 'input'),
    required: required.map(([name]) => name),
    ...(route.isCredentialRead ? { shows: schemasOf(answers[200] ?? null, 'output') } : {}),
  }
}

/** The path names something within the noun, besides its own id. */
function isOfPart(own: string, path: string): boolean {
  const below = path.slice(own.length)
  return (own.endsWith('}') ? below : below.replace(/^\/\{[^}]*\}/, '')).includes('{')
}

/** Its secrets are read, and verbs set no field. Those of its parts are not its own. */
function besides(noun: ManagedNoun, below: readonly Route[]): Readonly<Record<string, readonly object[]>> {
  const settings = new Set(noun.changes.flatMap((change) => ('by' in change ? [change.by.path] : [])))
  const offered = below.filter(
    ({ audience, budget, mediaType, path }) =>
      audience === 'customer' &&
      budget !== 'console' &&
      mediaType === 'application/json' &&
      !settings.has(path) &&
      !isOfPart(pathOf(noun), path),
  )
  return {
    secrets: offered.filter(({ isCredentialRead }) => isCredentialRead).map(verbOf),
    actions: offered.filter(({ method, isCredentialRead }) => method !== 'GET' && !isCredentialRead).map(verbOf),
  }
}

/** Moments that are values or lists of values. A program that shows an operation reads it where operations are. */
const momentsOf = ({ view, moments }: ManagedNoun): Readonly<Record<string, object>> =>
  Object.fromEntries(
    moments
      .map((name) => [name, schemaOf(shapeOf(view)[name] ?? z.unknown(), 'output')] as const)
      .filter(([, schema]) => !JSON.stringify(schema).includes('"properties"')),
  )

/** The parameters of the deletion, with their schemas. */
const takenBy = ({ routes: { remove }, removeLeaves = [] }: ManagedNoun): Readonly<Record<string, object>> =>
  Object.fromEntries(
    Object.entries(shapeOf(remove?.query ?? null))
      .filter(([name]) => name !== 'dry_run' && !removeLeaves.includes(name))
      .map(([name, schema]) => [name, schemaOf(schema, 'output')]),
  )

/** Nouns that the provider serves; those that are made below others have no form for themselves. */
const isServed = ({ routes: { list, create } }: ManagedNoun): boolean =>
  list !== undefined && !create.path.includes('{')

/** How a resource of Terraform says the body of a creation, by the id of the creation; of the nouns that are served. */
export const resourcesOf = (nouns: readonly ManagedNoun[]): Readonly<Record<string, object>> =>
  Object.fromEntries(
    nouns.filter(isServed).map(({ noun, routes, names: [name], leaves = [], fields = {} }) => {
      const entries = Object.entries(fields)
      const creates = entries.flatMap(([attribute, { creates: by }]) =>
        by === undefined ? [] : [[by.field, { attribute, values: by.values }] as const],
      )
      const resource = {
        type: `svccloud_${noun}`,
        name,
        secrets: entries.flatMap(([attribute, { isSecret }]) => (isSecret === true ? [attribute] : [])),
        leaves,
        creates: Object.fromEntries(creates),
      }
      return [routes.create.id, resource]
    }),
  )

/** With the filters that it takes. */
const listOf = (list: Route, whole: boolean): object => ({
  ...callOf(list),
  whole,
  takes: Object.keys(shapeOf(list.query)),
})

/** Text of the file of definitions. */
export function definitionsText(nouns: readonly ManagedNoun[], routes: readonly Route[]): string {
  const kept = new Set(nouns.flatMap(keptBy))
  // a route belongs to the noun with the longest path
  const owners = nouns.toSorted((one, other) => pathOf(other).length - pathOf(one).length)
  const others = Map.groupBy(
    routes.filter((route) => !kept.has(route)),
    (route) => owners.find((noun) => route.path.startsWith(`${pathOf(noun)}/`)),
  )
  const definitions = nouns.map((noun) => {
    const { list, create, read, remove } = noun.routes
    const { parent, isListPartial: isPartial = false } = noun
    return {
      noun: noun.noun,
      ...defined({ formerly: noun.formerly, key: noun.key, identity: noun.identity }),
      ...(parent === undefined ? {} : { parent: parentOf(parent) }),
      names: noun.names,
      uniqueIn: noun.uniqueIn ?? null,
      routes: {
        // whole: its items have all members of a single read
        ...(list === undefined ? {} : { list: listOf(list, itemOf(list) === noun.view && !isPartial) }),
        create: callOf(create),
        ...defined({ read: maybe(read) }),
        ...(remove === undefined
          ? {}
          : { remove: { ...callOf(remove), takes: takenBy(noun), needs: noun.removeNeeds ?? {} } }),
      },
      ...defined({ ready: noun.ready }),
      changes: noun.changes.map(changeOf),
      attributes: attributesOf(noun),
      moments: momentsOf(noun),
      ...besides(noun, others.get(noun) ?? []),
    }
  })
  return `${JSON.stringify({ format: DEFINITIONS_FORMAT, nouns: definitions }, null, 2)}\n`
}

const parentOf = ({ shownIn, ...parent }: ManagedParent): object => ({
  ...parent,
  ...(shownIn === undefined ? {} : { shownIn: { ...shownIn, read: callOf(shownIn.read) } }),
})
