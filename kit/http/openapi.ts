/** The route table as an OpenAPI 3.1 document. Everything comes from the routes; nothing is described by hand. */
import { z } from 'zod'
import {
  createDocument,
  type CreateDocumentOptions,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import { TITLES } from '../../domain/problem.ts'
import { addExamples, completeFields } from './openapi-examples.ts'
import { nameBodies, nameDirections, OUTPUT_SUFFIX, separateTypes } from './openapi-generators.ts'
import { type Descriptions, KNOWN_VALUES, simplify } from './openapi-fields.ts'
import { HEADERS, refusalName, refusalResponse, type RefusalStatus } from './openapi-refusals.ts'
import { DRY_RUN_MEDIA_TYPE, DryRun } from './dry-run.ts'
import { exactlyOneText } from './exactly-one.ts'
import { takesIdempotencyKey } from './idempotency.ts'
import { isPlainRead } from './representation.ts'
import type { Credential, Route } from './route.ts'
import { sentence } from '../sys/sentence.ts'

export interface DocumentOptions {
  readonly title: string
  readonly description: string
  readonly version: string
  readonly serverUrl: string
  /** Values by field name: examples of answers are composed from them. */
  readonly exampleValues?: Readonly<Record<string, unknown>>
  /** For fields without a description. */
  readonly descriptions?: Descriptions
}

export type OpenApiDocument = ReturnType<typeof createDocument>
type JsonSchema = Pick<z.core.JSONSchema.BaseSchema, 'enum' | 'const'>

/** OpenAPI 3.1 of exactly these routes. */
export function openApiDocument(routes: readonly Route[], options: DocumentOptions): OpenApiDocument {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const route of routes) (paths[route.path] ??= {})[route.method.toLowerCase()] = operationOf(route)
  const document = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: options.title,
        description: options.description,
        version: options.version,
        contact: { name: 'The operators of this cloud' },
        license: { name: 'Apache 2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: options.serverUrl }],
      tags: [...new Set(routes.map(tagOf))].map((name) => ({
        name,
        description: placesOf(routes.filter((route) => tagOf(route) === name)),
      })),
      paths: paths as ZodOpenApiPathsObject, // keys are paths and lower-case methods
      components: {
        securitySchemes: Object.fromEntries(
          Object.entries(SECURITY_SCHEMES).filter(([name]) =>
            routes.some(({ credentials }) =>
              credentials.some((credential) => SECURITY[credential].some((scheme) => scheme === name)),
            ),
          ),
        ),
        responses: Object.fromEntries(
          [...new Set(routes.flatMap(refusalsOf))].map((status) => [refusalName(status), refusalResponse(status)]),
        ),
      },
    },
    { override, outputIdSuffix: OUTPUT_SUFFIX },
  )
  completeFields(document, { descriptions: options.descriptions ?? {}, values: options.exampleValues })
  if (options.exampleValues !== undefined) addExamples(document, options.exampleValues)
  separateTypes(document)
  nameDirections(document)
  nameBodies(document)
  return document
}

/** No name is that of a schema, whatever its case: clients have types of both. */
const SECURITY_SCHEMES = {
  token: { type: 'http', scheme: 'bearer', description: 'An API token. It acts as its creator, limited by its scope.' },
  session_cookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'svccloud_session',
    description: 'A portal session. Unsafe requests also send X-CSRF-Token with the value of the svccloud_csrf cookie.',
  },
  operator: { type: 'http', scheme: 'bearer', description: 'A bearer token of the management Kubernetes cluster.' },
  staff_cookie: {
    type: 'apiKey',
    in: 'cookie',
    name: 'svccloud_staff_session',
    description:
      'A session of the staff. Unsafe requests also send X-CSRF-Token with the value of the svccloud_staff_csrf ' +
      'cookie.',
  },
} as const

/** The security schemes of each kind of credentials. */
const SECURITY: Readonly<Record<Credential, readonly (keyof typeof SECURITY_SCHEMES)[]>> = {
  token: ['token'],
  session: ['session_cookie'],
  operator: ['operator', 'staff_cookie'],
  public: [],
}

const securityOf = (credentials: readonly Credential[]): Record<string, string[]>[] =>
  credentials.flatMap((credential) =>
    credential === 'public' ? [{}] : SECURITY[credential].map((scheme) => ({ [scheme]: [] })),
  )

const IDEMPOTENCY_HEADER = z.object({
  'Idempotency-Key': z
    .uuid()
    .optional()
    .describe(
      'Makes the request safe to send again: for a day the same key and body answer what they answered first, ' +
        'without credentials and with Idempotent-Replayed: true.',
    ),
})

const CONDITIONAL_HEADER = z.object({
  'If-None-Match': z
    .string()
    .optional()
    .describe('The ETag of an earlier answer: while the answer is the same, it is 304 without a body.'),
})
const NOT_MODIFIED = { description: 'The answer is the one with the ETag of If-None-Match.', headers: HEADERS }

/** Where a path has its noun: `/v1/account` is one too, and has others below it. */
const NOUN = /^(?:\/v1)?(?:\/(?:admin|operator|account(?=\/)))?\/([a-z-]+)/
/** Words that are written in another way in titles. */
const SPELLINGS: Readonly<Record<string, string>> = {
  account: 'accounts',
  auth: 'sign-in',
  ips: 'IPs',
  mcp: 'MCP',
  mfa: 'MFA',
  ssh: 'SSH',
  token: 'tokens',
}

/** The noun of the route, `Floating IPs` for `/v1/floating-ips/{id}`: generated clients have a module for each. */
function tagOf({ path }: Route): string {
  const words = (NOUN.exec(path)?.[1] ?? '').split('-').map((word) => SPELLINGS[word] ?? word)
  const text = words.join(' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Where the operations of a tag are: the first parts of their paths. */
const placesOf = (routes: readonly Route[]): string => {
  const folders = routes.map(({ path }) => NOUN.exec(path)?.[0] ?? path)
  return `Under ${[...new Set(folders)].join(', ')}.`
}

function operationOf(route: Route): ZodOpenApiOperationObject {
  const requestParams = {
    ...(route.path.includes('{') ? { path: route.params as z.ZodObject } : {}), // routes declare objects
    ...(hasFields(route.query) ? { query: route.query } : {}),
    ...(takesIdempotencyKey(route) ? { header: IDEMPOTENCY_HEADER } : {}),
    ...(isPlainRead(route) ? { header: CONDITIONAL_HEADER } : {}),
  }
  return {
    operationId: route.id,
    tags: [tagOf(route)],
    summary: route.summary,
    description: route.description ?? sentence(route.summary),
    security: securityOf(route.credentials),
    ...(route.deprecation === null ? {} : { deprecated: true, 'x-deprecated-at': route.deprecation.at.toISOString() }),
    'x-permission': route.permission,
    'x-credentials': [...route.credentials],
    'x-reveals-credential': route.isCredentialRead,
    'x-operation-kinds': [...route.starts],
    'x-requires-verified-email': route.requiresVerifiedEmail,
    'x-audience': route.audience,
    'x-destructive': route.isDestructive,
    'x-takes-dry-run': route.takesDryRun,
    ...(route.noDryRun === null ? {} : { 'x-no-dry-run': route.noDryRun }),
    ...(Object.keys(requestParams).length === 0 ? {} : { requestParams }),
    ...(route.body === null
      ? {}
      : {
          requestBody: {
            required: !route.body.safeParse({}).success,
            content: {
              'application/json': { schema: route.body, ...(route.example === null ? {} : { example: route.example }) },
            },
          },
        }),
    responses: responsesOf(route),
  }
}

const hasFields = (schema: z.ZodType): schema is z.ZodObject =>
  schema instanceof z.ZodObject && Object.keys(schema.shape).length > 0

function responsesOf(route: Route): ZodOpenApiResponsesObject {
  const responses: Record<string, ZodOpenApiResponsesObject[`2${string}`]> = {}
  for (const [status, schema] of Object.entries(route.answers)) {
    responses[status] = {
      // other numbers match nothing
      description: TITLES[Number(status) as keyof typeof TITLES] ?? (schema === null ? 'Done; no body.' : 'Done.'),
      headers: HEADERS,
      ...(schema === null
        ? {}
        : {
            content: {
              [route.mediaType]: { schema: repeatable(route, schema), ...eventsOf(route) },
              // some refusals of the route are problem documents like all others
              ...(Number(status) < 400 ? {} : refusalResponse(status as unknown as RefusalStatus).content),
            },
          }),
    }
  }
  if (isPlainRead(route)) responses['304'] = NOT_MODIFIED
  if (route.takesDryRun) {
    const { content, ...ordinary } = (responses[200] ?? {}) as ZodOpenApiResponseObject // it is none by reference
    responses[200] = {
      description: 'What a dry run would do.',
      headers: HEADERS,
      ...ordinary,
      content: { ...content, [DRY_RUN_MEDIA_TYPE]: { schema: DryRun } },
    }
  }
  for (const status of refusalsOf(route))
    responses[status] ??= { $ref: `#/components/responses/${refusalName(status)}` }
  return responses as ZodOpenApiResponsesObject // keys are statuses
}

/** A repeated answer for an Idempotency-Key has no secrets. */
function repeatable(route: Route, schema: z.ZodType): z.ZodType {
  if (route.secretFields.length === 0 || !takesIdempotencyKey(route)) return schema
  if (!(schema instanceof z.ZodObject)) throw new TypeError(`${route.id} has secrets and answers no object`)
  const shape: z.ZodRawShape = schema.shape
  return schema.extend(
    Object.fromEntries(
      route.secretFields.flatMap((name) => {
        const field = shape[name]
        return field instanceof z.ZodType
          ? [[name, field.optional().describe('Not in an answer that is repeated for an Idempotency-Key.')]]
          : []
      }),
    ),
  )
}

/** The events of a stream, by name; nothing for other routes. */
const eventsOf = ({ events }: Route): object =>
  events === null
    ? {}
    : {
        'x-events': Object.fromEntries(
          Object.entries(events).map(([name, schema]) => [
            name,
            z.toJSONSchema(schema, { reused: 'inline', override: ({ jsonSchema }) => openValues(jsonSchema) }),
          ]),
        ),
      }

/** By status; `default` is last. */
function refusalsOf(route: Route): (RefusalStatus | 'default')[] {
  const isPublic = route.credentials.every((credential) => credential === 'public')
  // Every route refuses unknown parameters.
  const shared = [
    400,
    429,
    500,
    ...(isPublic ? [] : [401, 403]),
    ...(route.requiresStanding ? [402] : []),
    ...(route.body === null ? [] : [413, 415]),
    ...(takesIdempotencyKey(route) ? [409, 422] : []),
  ]
  const statuses = [...new Set([...shared, ...route.refuses])].sort((one, other) => one - other)
  return [...(statuses as RefusalStatus[]), 'default'] // no other status is a refusal
}

/** Answers may gain fields at any time, so they are not closed. */
const override: NonNullable<CreateDocumentOptions['override']> = ({ jsonSchema, zodSchema, io }) => {
  const text = zodSchema instanceof z.ZodObject ? exactlyOneText(zodSchema) : undefined
  if (text !== undefined)
    jsonSchema.description = [jsonSchema.description, text].filter((part) => part !== undefined).join(' ')
  if (io === 'output') {
    if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    openValues(jsonSchema)
  }
  simplify(jsonSchema)
}

/** Values may be added to answers as well: clients with closed types would fail at the first new one. */
function openValues(jsonSchema: JsonSchema): void {
  const values = jsonSchema.enum ?? ('const' in jsonSchema ? [jsonSchema.const] : [])
  if (values.length === 0 || values.some((value) => typeof value !== 'string')) return
  delete jsonSchema.enum
  delete jsonSchema.const
  Object.assign(jsonSchema, { type: 'string', [KNOWN_VALUES]: values })
}
