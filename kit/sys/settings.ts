/** Settings of a process: one zod object for each process, with a description for each field. A parent that starts the
 *  process passes them as one JSON value in SVCCLOUD_SETTINGS. Anybody else sets a variable for each field:
 *  `databaseUrl` is SVCCLOUD_DATABASE_URL. docs/settings.md is generated from the schemas. */
import { z } from 'zod'

/** JSON: an object with the fields of the schema. With it, no variable of a single field is read. */
export const SETTINGS_VARIABLE = 'SVCCLOUD_SETTINGS'

export type Environment = Readonly<Record<string, string | undefined>>

/** The faults, for people: a line for each field. Never with values, which may be secrets. */
export class SettingsRefused extends Error {}

export const Port = z.coerce.number<number | string>().int().min(0).max(65_535)

/** In a variable: `true` or `false`. */
export const Flag = z.union([z.boolean(), z.stringbool()], 'must be true or false')

/** In a variable: separated by commas. */
export const List = z.union([
  z.array(z.string()),
  z.string().transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  ),
])

export const HttpUrl = z.url({ protocol: /^https?$/ })

export const logLevel = z
  .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
  .default('info')
  .describe('Least severe messages that are logged.')

/** For every process that uses the database. */
export const databaseSettings = {
  databaseUrl: z
    .string()
    .min(1)
    .meta({
      description: 'URL of the PostgreSQL database, with user and password.',
      variables: ['DATABASE_URL', 'SVCCLOUD_DATABASE_URL'],
    }),
  databaseConnections: z.coerce
    .number<number | string>()
    .int()
    .min(1)
    .max(500)
    .default(20)
    .describe('Connections to the database at most.'),
}

/** For every process that unseals secrets. */
export const sealingSettings = {
  sealingKeys: z.string().default('').describe('Keys that secrets in the database are sealed with (identity.md).'),
  lostSealingKeys: List.default([]).describe('Ids of sealing keys that are lost, and whose loss is accepted.'),
}

/** Variables of the field, of which the first that is set counts. */
export function variablesOf(schema: z.ZodObject, field: string): readonly string[] {
  const { variables } = schema.shape[field]?.meta?.() ?? {}
  return Array.isArray(variables) ? variables.map(String) : [variableOf(field)]
}

/** The name that is derived from that of the field. */
export const variableOf = (field: string): string =>
  `SVCCLOUD_${field.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`

/** Reads settings from the environment. The empty text is an empty list, and refused for every other field: a setting
 *  whose value was lost must not count as not set, which often allows more. Throws SettingsRefused for that, for
 *  invalid JSON, a field that is missing or wrong, and in JSON for a field that the process does not have. Variables
 *  that are not the process's own are ignored: processes of one machine or pod share an environment. */
export function settingsIn<Schema extends z.ZodObject>(schema: Schema, environment: Environment): z.output<Schema> {
  const json = environment[SETTINGS_VARIABLE]
  const input = json === undefined ? fromVariables(schema, environment) : fromJson(json)
  const empty = Object.keys(input).filter((field) => input[field] === '' && !takesEmpty(schema, field))
  const read = schema.strict().safeParse(input)
  if (read.success && empty.length === 0) return read.data as z.output<Schema> // `strict` loses the fields' types
  const wrong = (read.error?.issues ?? []).filter(({ path: [field] }) => !empty.includes(String(field)))
  const lines = [
    ...empty.map((field) => lineOf(schema, field, 'is empty. Give it a value, or remove it')),
    ...wrong.flatMap((issue) => linesOf(schema, issue, input)),
  ]
  throw new SettingsRefused(`Settings are missing or wrong (docs/settings.md has all of them):\n${lines.join('\n')}`)
}

function fromVariables(schema: z.ZodObject, environment: Environment): Readonly<Record<string, unknown>> {
  const fields = Object.keys(schema.shape).map((field) => {
    const values = variablesOf(schema, field).map((name) => environment[name])
    return [field, values.find((value) => value !== undefined)] as const
  })
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

function fromJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text))
  } catch {
    throw new SettingsRefused(`${SETTINGS_VARIABLE} must be a JSON object.`)
  }
}

/** Whether the field is a list, or a record, and the empty text an empty one. */
const takesEmpty = (schema: z.ZodObject, field: string): boolean =>
  typeof schema.shape[field]?.safeParse('').data === 'object'

function linesOf(schema: z.ZodObject, issue: z.core.$ZodIssue, input: Readonly<Record<string, unknown>>): string[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((field) => `${field}: there is no such setting`)
  const [field = ''] = issue.path.map(String)
  return [lineOf(schema, field, field in input ? issue.message : 'is not set')]
}

function lineOf(schema: z.ZodObject, field: string, fault: string): string {
  const description = schema.shape[field]?.meta?.()?.description ?? ''
  return `${variablesOf(schema, field).join(' or ')} (${field}): ${fault}. ${description}`.trim()
}

/** Throws when a setting that this process needs is not set. */
export function required<Value>(name: string, value: Value | undefined): Value {
  if (value === undefined) throw new Error(`${name} is not set`)
  return value
}
