/** What a form holds, as a resource of Terraform. Pure. */

/** How a resource says the body of a creation. */
export interface TerraformResource {
  readonly type: string
  /** The field that names it. */
  readonly name: string
  /** Attributes that are in no state. */
  readonly secrets: readonly string[]
  /** Fields that no resource has. */
  readonly leaves: readonly string[]
  /** Fields of the body that another attribute says, by its values. */
  readonly creates: Readonly<Record<string, CreatedBy>>
}

interface CreatedBy {
  readonly attribute: string
  readonly values: Readonly<Record<string, unknown>>
}

/** Something, and no empty list or object. */
const isSaid = (value: unknown): boolean =>
  typeof value === 'object' && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined && value !== null && value !== ''

/** Texts of JSON are texts of Terraform, but for two escapes and what begins a template. */
const textOf = (text: string): string =>
  JSON.stringify(text)
    .replace(/\\([bf\\])/g, (escape, letter: string) =>
      letter === '\\' ? escape : letter === 'b' ? '\\u0008' : '\\u000c',
    )
    .replace(/[$%]\{/g, (begin) => begin.charAt(0) + begin)

const NAME = /^[a-z_][\w-]*$/i

function expressionOf(value: unknown): string {
  if (typeof value === 'string') return textOf(value)
  if (Array.isArray(value)) return `[${value.map(expressionOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined && member !== null)
  const texts = members.map(([key, member]) => `${NAME.test(key) ? key : textOf(key)} = ${expressionOf(member)}`)
  return texts.length === 0 ? '{}' : `{ ${texts.join(', ')} }`
}

/** A label of a block: letters, digits, underscores and dashes. */
function labelOf(value: unknown): string {
  const label = typeof value === 'string' ? value.replace(/[^\w-]+/g, '_') : ''
  return NAME.test(label) ? label : label === '' ? 'example' : `_${label}`
}

function attributesOf(
  resource: TerraformResource,
  field: string,
  value: unknown,
): readonly (readonly [string, string])[] {
  const created = Object.hasOwn(resource.creates, field) ? resource.creates[field] : undefined
  if (created !== undefined)
    return Object.entries(created.values)
      .filter(([, asked]) => asked === value)
      .map(([said]) => [created.attribute, textOf(said)] as const)
  const expression = expressionOf(value)
  return resource.secrets.includes(field)
    ? [
        [`${field}_wo`, expression],
        [`${field}_wo_version`, '1'],
      ]
    : [[field, expression]]
}

/** A block, laid out as `terraform fmt` does. Undefined when a resource cannot say the body. */
export function terraformOf(resource: TerraformResource, body: Readonly<Record<string, unknown>>): string | undefined {
  const said = Object.entries(body).filter(([, value]) => isSaid(value))
  if (said.some(([field]) => resource.leaves.includes(field))) return undefined
  const attributes = said.flatMap(([field, value]) => attributesOf(resource, field, value))
  const width = Math.max(...attributes.map(([name]) => name.length))
  const lines = attributes.map(([name, expression]) => `  ${name.padEnd(width)} = ${expression}\n`)
  return `resource "${resource.type}" "${labelOf(body[resource.name])}" {\n${lines.join('')}}`
}
