/** The table of a chart's values in its README: names, defaults and meanings, from `values.yaml` and its schema. */
import { parse, stringify } from 'yaml'

const HEADING = '## Values\n'
const NOTICE = '<!-- Generated from values.schema.json and values.yaml by `npm run generate`; never edited by hand. -->'

interface Schema {
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
}

interface Value {
  /** Dotted path. */
  readonly name: string
  readonly default: unknown
  readonly meaning: string
}

/** The innermost values below a schema. */
function leavesOf(schema: Schema, defaults: unknown, path: readonly string[] = []): Value[] {
  if (schema.properties)
    return Object.entries(schema.properties).flatMap(([name, below]) => {
      // a schema with properties describes a map
      const value = (defaults as Readonly<Record<string, unknown>> | undefined)?.[name]
      return path.length === 0 && name === 'global' ? [] : leavesOf(below, value, [...path, name])
    })
  const name = path.join('.')
  if (!schema.description) throw new Error(`the schema has no description of ${name}`)
  if (defaults === undefined) throw new Error(`values.yaml has no default of ${name}`)
  return [{ name, default: defaults, meaning: schema.description }]
}

const cell = (text: string): string => text.trim().replaceAll('|', '\\|')

/** The README with the table in place of everything below its last heading, `## Values`. Throws when that heading, a
 *  default or a description is missing.
 *  @param schema text of `values.schema.json` @param values text of `values.yaml` */
export function withValueTable(readme: string, schema: string, values: string): string {
  const end = readme.indexOf(HEADING)
  if (end === -1) throw new Error('the README has no heading for its values')
  // our own files
  const rows = leavesOf(JSON.parse(schema) as Schema, parse(values)).map(
    (value) =>
      `| \`${value.name}\` | \`${cell(stringify(value.default, { collectionStyle: 'flow', lineWidth: 0 }))}\` | ` +
      `${cell(value.meaning)} |`,
  )
  return [
    readme.slice(0, end) + HEADING,
    NOTICE,
    '',
    '| Value | Default | Meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
