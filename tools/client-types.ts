/** The OpenAPI document as the TypeScript types that openapi-fetch reads: `paths`, `operations`, `components`. Covers exactly what
 *  our document uses and throws for anything else, so that nothing becomes `unknown` in silence. */
import type { OpenApiDocument } from '../kit/http/openapi.ts'

/** The parts of JSON Schema that the document uses. */
interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly description?: string
}
interface Content { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }
interface Parameter { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: Schema; readonly description?: string }
interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Content & { readonly required?: boolean }
  readonly responses: Readonly<Record<string, Content>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const
const LOCATIONS = ['query', 'header', 'path', 'cookie'] as const

/** The text of a module of types. */
export function clientTypes(document: OpenApiDocument): string {
  const { paths, components } = JSON.parse(JSON.stringify(document)) as Document // as it is served
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
  return [
    '/** Generated from the OpenAPI document by `npm run generate`; never edited by hand. */', '',
    'export interface paths {', ...Object.entries(paths).map(([path, methods]) => indent(`${JSON.stringify(path)}: ${pathType(methods)}`)), '}', '',
    'export interface components {', '  schemas: {', ...Object.entries(components.schemas).map(([name, schema]) => indent(indent(member(name, schema, true)))), '  }', '}', '',
    'export interface operations {', ...operations.map((operation) => indent(`${comment([operation.summary, operation.description])}${operation.operationId}: ${operationType(operation)}`)), '}', '',
  ].join('\n')
}

const indent = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')
const block = (lines: readonly string[]): string => (lines.length === 0 ? '{}' : `{\n${lines.map(indent).join('\n')}\n}`)
const quoted = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name))
const comment = (texts: readonly (string | undefined)[]): string => {
  const said = texts.filter((text) => text !== undefined && text !== '').join('. ').replaceAll('*/', '* /')
  return said === '' ? '' : `/** ${said} */\n`
}
const member = (name: string, schema: Schema, isRequired: boolean): string => `${comment([schema.description])}${quoted(name)}${isRequired ? '' : '?'}: ${typeOf(schema)}`

const pathType = (methods: Readonly<Record<string, Operation>>): string =>
  block(['parameters: { query?: never; header?: never; path?: never; cookie?: never }', ...METHODS.map((method) => (methods[method] === undefined ? `${method}?: never` : `${method}: operations[${JSON.stringify(methods[method].operationId)}]`))])

function operationType({ parameters = [], requestBody, responses }: Operation): string {
  return block([
    `parameters: ${block(LOCATIONS.map((location) => {
      const here = parameters.filter((parameter) => parameter.in === location)
      if (here.length === 0) return `${location}?: never`
      return `${location}${here.some(({ required }) => required === true) ? '' : '?'}: ${block(here.map(({ name, schema, required, description }) => member(name, { ...schema, ...(description === undefined ? {} : { description }) }, required === true)))}`
    }))}`,
    requestBody === undefined ? 'requestBody?: never' : `requestBody${requestBody.required === true ? '' : '?'}: { content: ${contentType(requestBody)} }`,
    `responses: ${block(Object.entries(responses).map(([status, response]) => `${status}: { headers: { [name: string]: unknown }; content${response.content === undefined ? '?: never' : `: ${contentType(response)}`} }`))}`,
  ])
}

const contentType = ({ content = {} }: Content): string => block(Object.entries(content).map(([mediaType, { schema = {} }]) => `${JSON.stringify(mediaType)}: ${typeOf(schema)}`))

function typeOf(schema: Schema): string {
  const { $ref, type, enum: choices, anyOf, oneOf, allOf } = schema
  if ($ref !== undefined) return `components["schemas"][${JSON.stringify($ref.slice('#/components/schemas/'.length))}]`
  if ('const' in schema) return JSON.stringify(schema.const)
  if (choices !== undefined) return choices.map((choice) => JSON.stringify(choice)).join(' | ')
  const union = anyOf ?? oneOf
  if (union !== undefined) return union.map((each) => grouped(typeOf(each))).join(' | ')
  if (allOf !== undefined) return allOf.map((each) => grouped(typeOf(each))).join(' & ')
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each as string })).join(' | ') // the members of a list of types
  switch (type) {
    case 'string': case 'boolean': case 'null': return type
    case 'integer': case 'number': return 'number'
    case 'array': return `${grouped(typeOf(schema.items ?? {}))}[]`
    case 'object': return objectType(schema)
    case undefined: return 'unknown'
    default: throw new Error(`no type for ${JSON.stringify(schema)}`)
  }
}

const grouped = (type: string): string => (/[|&]/.test(type) && !type.startsWith('{') ? `(${type})` : type)

function objectType({ properties = {}, required = [], additionalProperties }: Schema): string {
  const members = Object.entries(properties).map(([name, schema]) => member(name, schema, required.includes(name)))
  const rest = typeof additionalProperties === 'object' && Object.keys(additionalProperties).length > 0 ? typeOf(additionalProperties) : 'unknown'
  // Answers may gain members, which compile as they are; open objects without any of their own are maps.
  return members.length > 0 ? block(members) : additionalProperties === false ? 'Record<string, never>' : `{ [name: string]: ${rest} }`
}
