/** The OpenAPI document that the clients for Python and Go are generated from: what a program with a token calls. The
 *  layer written by hand does the rest for every call, so none has it in its signature: refusals, conditional reads. */
import type { OpenApiDocument } from '../../kit/http/openapi.ts'

const JSON_TYPE = 'application/json'
const METHODS: readonly string[] = ['get', 'post', 'put', 'patch', 'delete']
const KEY_HEADER = 'Idempotency-Key'
/** What the layer does, or generated clients have no types for: dry runs answer something else. */
const PARAMETERS_LEFT_OUT: readonly string[] = ['dry_run', 'If-None-Match']

/** Operations that a token may call and that the clients do not have, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  export_audit_entries: 'lines of JSON, as long as the log',
  stream_changes: 'a stream of events',
  stream_server_console: 'a stream of events',
  send_server_console_input: 'a part of the console, which is for people',
  send_mcp_message: 'for assistants',
}

interface Parameter {
  readonly name: string
}
interface Response {
  readonly headers?: unknown
  readonly content?: Readonly<Record<string, unknown>>
}
interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly 'x-credentials': readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly responses: Readonly<Record<string, Response>>
}
type Paths = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** Of the document for customers. Throws when a POST has no place for an Idempotency-Key: the layers send one with
 *  each, and repeat it. */
export function sdkDocument(document: OpenApiDocument): object {
  const { paths, components, ...others } = withTexts(JSON.parse(JSON.stringify(document))) as OpenApiDocument
  const chosen = Object.entries(paths as Paths).flatMap(([path, methods]) => {
    const operations = Object.entries(methods).flatMap(([method, value]) => {
      if (!METHODS.includes(method)) return [[method, value]]
      const operation = value as Operation // of the document
      const isLeftOut = !operation['x-credentials'].includes('token') || operation.operationId in LEFT_OUT
      return isLeftOut ? [] : [[method, callOf(method, operation)]]
    })
    return operations.length === 0 ? [] : [[path, Object.fromEntries(operations)]]
  })
  const called: unknown = Object.fromEntries(chosen)
  return {
    ...others,
    paths: called,
    components: { ...components, responses: {}, schemas: schemasOf(called, components) },
  }
}

function callOf(method: string, { parameters = [], responses, tags, ...operation }: Operation): object {
  if (method === 'post' && !parameters.some(({ name }) => name === KEY_HEADER))
    throw new TypeError(`${operation.operationId} takes no ${KEY_HEADER}: say in LEFT_OUT why it is left out`)
  return {
    ...operation,
    // names of modules: capitals begin words
    tags: tags.map((tag) => tag.toLowerCase()),
    parameters: parameters.filter(({ name }) => !PARAMETERS_LEFT_OUT.includes(name)),
    responses: Object.fromEntries(
      Object.entries(responses).flatMap(([status, response]) => {
        if (!status.startsWith('2')) return []
        const { content, headers: _headers, ...ordinary } = response
        if (content === undefined) return [[status, ordinary]]
        return JSON_TYPE in content ? [[status, { ...ordinary, content: { [JSON_TYPE]: content[JSON_TYPE] } }]] : []
      }),
    ),
  }
}

/** Ids are texts. Some are known as UUIDs, some name others by a text: a program passes one as the other. */
function withTexts(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withTexts)
  if (typeof part !== 'object' || part === null) return part
  const members = Object.entries(part).map(([key, inner]) => [key, withTexts(inner)] as const)
  return Object.fromEntries('format' in part && part.format === 'uuid' ? members.filter(isOfNoUuid) : members)
}
const isOfNoUuid = ([key]: readonly [string, unknown]): boolean => key !== 'format' && key !== 'pattern'

const SCHEMAS = '#/components/schemas/'
/** Of refusals, which the layers read. */
const ALWAYS: readonly string[] = ['Problem']

/** Those that are referred to. */
function schemasOf(called: unknown, components: OpenApiDocument['components']): object {
  const all: Readonly<Record<string, unknown>> = components?.schemas ?? {}
  const found = new Set<string>()
  const follow = (part: unknown) => {
    if (typeof part !== 'object' || part === null) return
    if ('$ref' in part) add(String(part.$ref).slice(SCHEMAS.length))
    for (const inner of Object.values(part)) follow(inner)
  }
  const add = (name: string) => {
    if (found.has(name)) return
    found.add(name)
    follow(all[name])
  }
  for (const name of ALWAYS) add(name)
  follow(called)
  return Object.fromEntries(Object.entries(all).filter(([name]) => found.has(name)))
}
