/** Routes as tools: one for each operation that a token may call and that answers JSON. Name, schema and hints come
 *  from the route. */
import { z } from 'zod'
import type { Customer } from '../call.ts'
import { exactlyOneText } from '../exactly-one.ts'
import type { Route } from '../route.ts'
import type { Schema } from '../openapi-fields.ts'
import { describeFields, type Descriptions, simplify } from '../openapi-fields.ts'
import type { Members } from './protocol.ts'
import { sentence } from '../../sys/sentence.ts'

/** Page size of lists when a tool call does not set it: models read the answers, a page at a time. */
export const LIMIT_DEFAULT = 20

export interface Tool {
  readonly route: Route
  /** The name by which a client may request a subset of the tools: the first part of the path, as in `/v1/servers`. */
  readonly toolset: string
  /** In the form of `tools/list`, without the schema of its answers. */
  readonly shown: ShownTool
  /** Of the answer; undefined where there is none. */
  readonly outputSchema: Members | undefined
}

export interface ShownTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Members
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: false
  }
}

/** Tools in the order of their names. `names` are by operationId, where another name describes better what a model can
 *  request; `descriptions` are for arguments and answers that do not describe themselves. Throws when a route's inputs
 *  share a name: arguments could not be distinguished. */
export const toolsOf = (
  routes: readonly Route[],
  {
    names = {},
    descriptions = {},
  }: {
    readonly names?: Readonly<Record<string, string>> | undefined
    readonly descriptions?: Descriptions | undefined
  } = {},
): readonly Tool[] =>
  routes
    .filter(isCallable)
    .map((route) => toolOf(route, names[route.id] ?? route.id, descriptions))
    .sort((one, other) => (one.shown.name < other.shown.name ? -1 : 1))

/** Streams, pages for a browser and routes without a caller are not tools. Neither are operations of a token on itself,
 *  because they would disconnect the client. Session-only routes are dispatched, and refuse. */
const isCallable = (route: Route): boolean =>
  route.audience === 'customer' &&
  route.mediaType === 'application/json' &&
  !route.credentials.includes('public') &&
  route.credentials.some((credential) => credential !== 'token') &&
  route.readsBodyAs === 'json'

const isReading = ({ method, isCredentialRead }: Route): boolean => method === 'GET' && !isCredentialRead

function toolOf(route: Route, name: string, descriptions: Descriptions): Tool {
  const { id, method, summary, description, isDestructive } = route
  const success = Object.entries(route.answers).filter(([status, schema]) => status.startsWith('2') && schema !== null)
  const [answer] = success
  return {
    route,
    toolset: route.path.split('/')[2] ?? '',
    shown: {
      name,
      title: summary,
      description: [summary, description, exactlyOneText(route.body), route.starts.length > 0 ? STARTS : undefined]
        .filter((text) => text !== undefined)
        .map(sentence)
        .join(' '),
      inputSchema: inputSchemaOf(route, descriptions),
      annotations: {
        readOnlyHint: isReading(route),
        destructiveHint: method === 'DELETE' || isDestructive,
        idempotentHint: method === 'GET' || method === 'PUT',
        openWorldHint: false,
      },
    },
    // A schema with a name would be a reference; clients want the object itself.
    outputSchema:
      success.length === 1 && answer?.[1] instanceof z.ZodObject
        ? schemaOf(answerShape(route, answer[1]), 'output', { shape: id, descriptions })
        : undefined,
  }
}

/** A dry run answers other fields, so that none is always there. */
const answerShape = ({ takesDryRun }: Route, { shape }: z.ZodObject): z.ZodObject =>
  takesDryRun ? z.strictObject(shape).partial() : z.strictObject(shape)

const STARTS =
  'Answers an operation at once: call get_operation with its id until status is succeeded, failed or cancelled.'

/** A parameter of a path, and the argument of the tool that it comes from. */
export interface PathParameter {
  readonly name: string
  readonly argument: string
}

/** A route's inputs, by their destination. A path parameter whose name the body or the query has too becomes the
 *  argument `path_<name>`. */
export function placesOf(route: Route): { readonly path: readonly PathParameter[]; readonly query: readonly string[] } {
  const query = Object.keys(shapeOf(route.query))
  const others = [...query, ...Object.keys(shapeOf(route.body))]
  return {
    path: [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
      name,
      argument: others.includes(name) ? `path_${name}` : name,
    })),
    query,
  }
}

const shapeOf = (schema: z.ZodType | null): z.ZodRawShape => (schema instanceof z.ZodObject ? schema.shape : {})

function inputSchemaOf(route: Route, descriptions: Descriptions): Members {
  const { path, query } = placesOf(route)
  const body = Object.keys(shapeOf(route.body))
  const names = [...path.map(({ argument }) => argument), ...query, ...body]
  if (new Set(names).size !== names.length || (route.body !== null && !(route.body instanceof z.ZodObject)))
    throw new Error(`${route.id}: path, query and body do not fit into one object`)
  const params = shapeOf(route.params)
  const pathShape = Object.fromEntries(path.map(({ name, argument }) => [argument, params[name] ?? z.string()]))
  const schema = schemaOf(z.strictObject({ ...pathShape, ...shapeOf(route.query), ...shapeOf(route.body) }), 'input', {
    shape: route.id,
    descriptions,
  })
  // the schema of an object has the schemas of its properties
  const { limit } = (schema['properties'] ?? {}) as { readonly limit?: { default?: number } }
  if (query.includes('limit') && limit !== undefined) limit.default = LIMIT_DEFAULT
  return schema
}

/** JSON Schema 2020-12 that refers to nothing outside itself. Answers may gain fields, so their objects are open. */
function schemaOf(
  schema: z.ZodType,
  io: 'input' | 'output',
  { shape, descriptions }: { readonly shape: string; readonly descriptions: Descriptions },
): Members {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    reused: 'inline',
    override: ({ jsonSchema }) => {
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
      simplify(jsonSchema)
    },
  })
  describeFields(rest as Schema, shape, descriptions) // JSON Schema
  // and so is every part of it
  for (const [name, part] of Object.entries(rest.$defs ?? {})) describeFields(part as Schema, name, descriptions)
  return rest
}

/** The selection of tools that a request may make. */
export interface ToolFilter {
  /** Undefined for all; names that do not exist select nothing. */
  readonly toolsets: readonly string[] | undefined
  readonly isReadOnly: boolean
}

/** Whether the client requested this kind of tool. */
export const isChosen = ({ toolset, shown }: Tool, { toolsets, isReadOnly }: ToolFilter): boolean =>
  (toolsets === undefined || toolsets.includes(toolset)) && (!isReadOnly || shown.annotations.readOnlyHint)

/** Whether the token may call it, by its scope and its user's current role. */
export function isAllowed({ route }: Tool, caller: Customer, isReadOnlyToken: boolean): boolean {
  if (!route.credentials.includes('token') || (route.isCredentialRead && isReadOnlyToken)) return false
  return route.permission === null || caller.permissions.includes(route.permission)
}
