/** The definitions of the nouns that programs keep as they are written down, from their registrations, routes and
 *  views. A provider of infrastructure as code knows nothing else of a noun. */
import { z } from 'zod'
import { defined } from '../domain/defined.ts'
import { simplify } from '../kit/http/openapi-fields.ts'
import type { Route } from '../kit/http/route.ts'
import { itemOf } from '../resources/kit/filters.ts'
import { type ManagedNoun, type ManagedChange, type ManagedField, setBy } from '../resources/kit/managed.ts'

/** Increases with every change that a reader of an older format would misread. */
const DEFINITIONS_FORMAT = 1

type Shape = Readonly<Record<string, z.ZodType>>

// a shape is of schemas
const shapeOf = (schema: z.ZodType | null): Shape => (schema instanceof z.ZodObject ? (schema.shape as Shape) : {})

const callOf = ({ id, method, path, starts }: Route): object => ({
  id,
  method,
  path,
  ...(starts.length === 0 ? {} : { operation: true }),
})

const changeOf = (change: ManagedChange): object => {
  if ('each' in change)
    return { ...change, list: callOf(change.list), add: callOf(change.add), remove: callOf(change.remove) }
  if ('when' in change) return { by: callOf(change.by), when: change.when }
  const { by, readBy, ...rest } = change
  return { by: callOf(by), ...rest, sets: setBy(change), ...(readBy === undefined ? {} : { readBy: callOf(readBy) }) }
}

const schemaOf = (schema: z.ZodType, io: 'input' | 'output'): object => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    reused: 'inline',
    override: ({ jsonSchema }) => simplify(jsonSchema),
  })
  return rest
}

type AttributeMode = 'required' | 'optional' | 'default' | 'chosen' | 'computed'

/** `chosen`: the service chooses it where nobody writes it, and shows what it chose. */
function modeOf(field: ManagedField, created: z.ZodType | undefined, shown: z.ZodType | undefined): AttributeMode {
  if (field.default !== undefined) return 'default'
  if (created !== undefined && !created.safeParse(undefined).success) return 'required'
  if (created instanceof z.ZodDefault) return 'default'
  if (field.isOptional === true || field.shows !== undefined || shown === undefined) return 'optional'
  return shown.safeParse(null).success ? 'optional' : 'chosen'
}

/** What people write, and what a program shows them afterwards; moments are neither. */
function attributesOf({ view, routes, changes, fields = {}, facts }: ManagedNoun): Readonly<Record<string, object>> {
  const created = shapeOf(routes.create.body)
  const shown = shapeOf(view)
  const replaced = new Set(Object.values(fields).map(({ creates }) => creates?.field))
  const set = new Set(changes.flatMap((change) => Object.keys(setBy(change))))
  const wishes = [...new Set([...Object.keys(created).filter((name) => !replaced.has(name)), ...set])]
  const wished = wishes.map((name) => {
    const { creates, default: left, shows, isOptional: _said, ...rest } = fields[name] ?? {}
    const asked = created[name]
    const mode = modeOf(fields[name] ?? {}, asked, shown[name])
    const schema = asked === undefined ? shown[name] : asked
    return [
      name,
      {
        mode,
        ...defined({ default: left, creates, shows }),
        ...(set.has(name) ? {} : { replaces: true }),
        // the creation does not take it: a change sets it afterwards
        ...(asked === undefined && creates === undefined ? { later: true } : {}),
        ...rest,
        schema: schema === undefined ? {} : schemaOf(schema, asked === undefined ? 'output' : 'input'),
      },
    ] as const
  })
  const known = facts.map((name) => [
    name,
    { mode: 'computed', schema: schemaOf(shown[name] ?? z.unknown(), 'output') },
  ])
  return Object.fromEntries([...wished, ...known])
}

/** Moments that are values or lists of values. A program that shows an operation reads it where operations are. */
const momentsOf = ({ view, moments }: ManagedNoun): Readonly<Record<string, object>> =>
  Object.fromEntries(
    moments
      .map((name) => [name, schemaOf(shapeOf(view)[name] ?? z.unknown(), 'output')] as const)
      .filter(([, schema]) => !JSON.stringify(schema).includes('"properties"')),
  )

/** Text of the file of definitions. */
export function definitionsText(nouns: readonly ManagedNoun[]): string {
  const definitions = nouns.map((noun) => {
    const { list, create, read, remove } = noun.routes
    const takes = Object.keys(shapeOf(remove.query)).filter((name) => name !== 'dry_run')
    return {
      noun: noun.noun,
      names: noun.names,
      uniqueIn: noun.uniqueIn ?? null,
      routes: {
        // whole: its items have all members of a single read
        list: { ...callOf(list), whole: itemOf(list) === noun.view },
        create: callOf(create),
        read: callOf(read),
        remove: { ...callOf(remove), takes, needs: noun.removeNeeds ?? {} },
      },
      changes: noun.changes.map(changeOf),
      attributes: attributesOf(noun),
      moments: momentsOf(noun),
    }
  })
  return `${JSON.stringify({ format: DEFINITIONS_FORMAT, nouns: definitions }, null, 2)}\n`
}
