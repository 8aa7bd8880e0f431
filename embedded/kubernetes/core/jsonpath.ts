/** The JSONPath of printer columns, scale paths and selectable fields: members, indexes, wildcards and
 *  `[?(@.a=="b")]`. */
import { at, isList, isObject, type Json } from './json.ts'

type Step = (values: readonly Json[]) => readonly Json[]

const VALUE = /(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?<bare>[\w.-]+))/
const TOKEN = new RegExp(
  [
    /\.\.(?<deep>[\w-]+)/,
    /\.(?<member>(?:[\w$/-]|\\\.)+)/,
    /\.(?<star>\*)/,
    /\[(?<all>\*)\]/,
    /\[(?<index>-?\d+)\]/,
    /\[['"](?<quoted>[^'"]+)['"]\]/,
    new RegExp(String.raw`\[\?\(@\.(?<path>[\w.-]+)\s*(?<operator>==|!=)\s*${VALUE.source}\s*\)\]`),
  ]
    .map(({ source }) => source)
    .join('|'),
  'y',
)

/** A function from an object to all values at the path. Throws a SyntaxError when the path is invalid. */
export function compileJsonPath(path: string): (value: Json) => readonly Json[] {
  const text = path.replace(/^\{|\}$/g, '').replace(/^\$/, '')
  const whole = text.startsWith('.') || text.startsWith('[') ? text : `.${text}`
  const steps: Step[] = []
  TOKEN.lastIndex = 0
  for (let position = 0; position < whole.length; position = TOKEN.lastIndex) {
    TOKEN.lastIndex = position
    const groups = TOKEN.exec(whole)?.groups
    if (!groups)
      throw new SyntaxError(`cannot read ${JSON.stringify(path)} from ${JSON.stringify(whole.slice(position))}`)
    steps.push(stepOf(groups))
  }
  return (value) => steps.reduce<readonly Json[]>((values, step) => step(values), [value])
}

function stepOf(groups: Readonly<Record<string, string | undefined>>): Step {
  const { deep, member, quoted, index, path, operator } = groups
  if (deep !== undefined) return (values) => values.flatMap((value) => deepMembers(value, deep))
  const name = member?.replaceAll('\\.', '.') ?? quoted
  if (name !== undefined) return (values) => values.flatMap((value) => present(at(value, name)))
  if (index !== undefined)
    return (values) => values.flatMap((value) => (isList(value) ? present(value.at(Number(index))) : []))
  if (path !== undefined) {
    const wanted = groups.double ?? groups.single ?? groups.bare ?? ''
    const holds = (item: Json) => (String(at(item, ...path.split('.'))) === wanted) === (operator === '==')
    return (values) => values.flatMap((value) => children(value).filter(holds))
  }
  return (values) => values.flatMap(children)
}

const present = (value: Json | undefined): readonly Json[] => (value === undefined ? [] : [value])
const children = (value: Json): readonly Json[] =>
  isList(value) ? value : isObject(value) ? Object.values(value).filter((item) => item !== undefined) : []
const deepMembers = (value: Json, name: string): readonly Json[] => [
  ...present(at(value, name)),
  ...children(value).flatMap((child) => deepMembers(child, name)),
]
