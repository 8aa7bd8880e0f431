/** What programs that generate clients need of a document, beyond OpenAPI: one type for each value, and names for what
 *  has none. They name bodies and answers by themselves otherwise, each in its way and none for people
 *  (`ListServersResponse200`). A name follows from the shape of the answer or from the operation, so that a new route
 *  has names without more words. */
import type { createDocument } from 'zod-openapi'
import type { Schema } from './openapi-fields.ts'

interface Media {
  schema?: Schema
}
interface Content {
  readonly content?: Readonly<Record<string, Media>>
}
interface Operation {
  readonly operationId: string
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { schemas: Record<string, Schema> }
}

/** Gives each schema one type, which may be nullable: of others, some programs make nothing, or what does not compile.
 *  A member that is always null is one that would be a text. Changes the document. */
export function separateTypes(document: ReturnType<typeof createDocument>): void {
  separate(document.components)
  separate(document.paths)
}

function separate(part: unknown, isAlternative = false): void {
  if (typeof part !== 'object' || part === null) return
  const schema = part as { type?: unknown; anyOf?: unknown; default?: unknown } // as far as it is one
  if (schema.type === 'null' && !isAlternative) schema.type = ['string', 'null']
  if (Array.isArray(schema.type) && !(schema.type.length === 2 && schema.type.includes('null'))) {
    schema.anyOf = schema.type.map((type: unknown) => ({ type }))
    delete schema.type
  }
  if (Array.isArray(schema.anyOf)) {
    joinNull(schema as { anyOf: Alternative[] }) // schemas
    // Null is no value of a named schema, which is beside it here.
    if (schema.anyOf !== undefined && schema.default === null) delete schema.default
  }
  for (const [key, inner] of Object.entries<unknown>({ ...part }))
    if (key === 'anyOf' && Array.isArray(inner)) for (const one of inner) separate(one, true)
    else if (!key.startsWith('example')) separate(inner)
}

interface Alternative {
  type?: unknown
  enum?: unknown[]
}

/** An alternative that may be null, in place of null as an alternative beside it. A named schema has none. */
function joinNull(schema: { anyOf?: Alternative[] }): void {
  const others = (schema.anyOf ?? []).filter(({ type }) => type !== 'null')
  const [first] = others
  if (others.length === schema.anyOf?.length || typeof first?.type !== 'string') return
  const nullable = { ...first, type: [first.type, 'null'], ...(first.enum && { enum: [...first.enum, null] }) }
  if (others.length > 1) {
    schema.anyOf = [nullable, ...others.slice(1)]
    return
  }
  delete schema.anyOf
  Object.assign(schema, { ...nullable, ...schema })
}

const SCHEMAS = '#/components/schemas/'

/** Of answers, while a schema differs in requests. Nothing that is served has it. */
export const OUTPUT_SUFFIX = 'AsAnswered'
const INPUT_SUFFIX = 'Input'

/** Names the two forms of a schema that is in requests and in answers: requests are closed, answers are not. The answer
 *  has the noun (`KubernetesTaint`), the request is `KubernetesTaintInput`. Changes the document. Throws when something
 *  else has that name. */
export function nameDirections(document: ReturnType<typeof createDocument>): void {
  const { components } = document as unknown as Document // what createDocument makes
  const names = new Map<string, string>()
  for (const answered of Object.keys(components.schemas).filter((name) => name.endsWith(OUTPUT_SUFFIX))) {
    const noun = answered.slice(0, -OUTPUT_SUFFIX.length)
    const request = noun + INPUT_SUFFIX
    if (request in components.schemas) throw new TypeError(`two different schemas would be ${request}`)
    names.set(noun, request).set(answered, noun)
  }
  components.schemas = Object.fromEntries(
    Object.entries(components.schemas).map(([name, schema]) => [names.get(name) ?? name, schema]),
  )
  rename(document, names)
}

function rename(part: unknown, names: ReadonlyMap<string, string>): void {
  if (typeof part !== 'object' || part === null) return
  const schema = part as { $ref?: unknown } // as far as it is one
  if (typeof schema.$ref === 'string' && schema.$ref.startsWith(SCHEMAS)) {
    const name = schema.$ref.slice(SCHEMAS.length)
    schema.$ref = SCHEMAS + (names.get(name) ?? name)
  }
  for (const [key, inner] of Object.entries<unknown>({ ...part })) if (!key.startsWith('example')) rename(inner, names)
}

/** Makes each body and each answer in JSON a named schema. Changes the document. Throws when two different schemas
 *  would have one name: give one of them a name where it is defined (`.meta({ id })`). */
export function nameBodies(document: ReturnType<typeof createDocument>): void {
  const { paths, components } = document as unknown as Document // what createDocument makes
  const name = (media: Media | undefined, nameOf: (schema: Schema) => string) => {
    const { schema } = media ?? {}
    if (media === undefined || schema === undefined || schema.$ref !== undefined) return
    const id = nameOf(schema)
    if (JSON.stringify((components.schemas[id] ??= schema)) !== JSON.stringify(schema))
      throw new TypeError(`two different schemas would be ${id}`)
    media.schema = { $ref: SCHEMAS + id }
  }
  for (const { operationId, requestBody, responses } of Object.values(paths).flatMap((methods) =>
    Object.values(methods),
  )) {
    name(requestBody?.content?.['application/json'], () => wordsOf(operationId))
    for (const { content } of Object.values(responses))
      name(content?.['application/json'], (schema) => nameOfAnswer(schema, operationId))
  }
}

/** `ServerPage` for `{items, next_cursor}`, `ServerStarted` for `{server, operation}`, `ServerAnswer` for `{server}`;
 *  otherwise the words of the operation: `CreateApiTokenAnswer`. */
function nameOfAnswer({ properties = {} }: Schema, operationId: string): string {
  const [first, second, ...others] = Object.entries(properties)
  const noun = first === undefined || others.length > 0 ? undefined : referredIn(first[1].items ?? first[1])
  if (noun !== undefined && first?.[0] === 'items' && second?.[0] === 'next_cursor') return `${noun}Page`
  if (noun !== undefined && second?.[0] === 'operation') return `${noun}Started`
  if (noun !== undefined && second === undefined) return `${noun}Answer`
  return `${wordsOf(operationId)}Answer`
}

const referredIn = ({ $ref }: Schema): string | undefined => $ref?.slice(SCHEMAS.length)

/** `CreateApiToken` for `create_api_token`. */
const wordsOf = (operationId: string): string =>
  operationId
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
