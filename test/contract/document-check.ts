/** Answers held against the OpenAPI document, as a stranger would who has nothing else. Stricter than the document in
 *  two things: it says that answers may gain fields and values, and here they have none that it does not name. */
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { fullFormats } from 'ajv-formats/dist/formats.js'
import { documentFor } from '../../apiserver/kit/pages/documents.ts'
import type { HttpService } from '../../kit/http/exchange.ts'
import { KNOWN_VALUES } from '../../kit/http/openapi-fields.ts'
import type { Route } from '../../kit/http/route.ts'

export interface Given {
  readonly status: number
  readonly header: (name: string) => string | undefined
  /** Undefined for a stream, whose body nobody waits for. */
  readonly text: string | undefined
}

interface Media {
  readonly schema?: object
  readonly example?: unknown
}
interface Response {
  readonly $ref?: string
  readonly content?: Readonly<Record<string, Media>>
}
interface Operation {
  readonly operationId: string
  readonly responses: Readonly<Record<string, Response>>
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly responses: Readonly<Record<string, Response>> }
}

export interface DocumentCheck {
  /** Why the answer is not what the document says; undefined when it is. `path` may carry a query. */
  faultOf(method: string, path: string, given: Given): string | undefined
  /** Every example of an answer, and what is wrong with it. */
  examples(): readonly { readonly place: string; readonly example: unknown; readonly faults: string | undefined }[]
}

const ANY_REQUEST: readonly number[] = [503] // whatever a request stands on may be away
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Takes the document as an object or as it was served. */
export function openDocumentCheck(published: object): DocumentCheck {
  const document = JSON.parse(JSON.stringify(published), close) as Document // a document of ours
  const ajv = new Ajv2020({ strict: false, formats: fullFormats, allErrors: true })
  ajv.addSchema(document, 'document')
  const validators = new Map<string, ValidateFunction>()
  const routes = Object.entries(document.paths).map(([template, methods]) => ({
    template,
    methods,
    pattern: new RegExp(`^${template.replaceAll(/[.]/g, '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }))

  /** What is wrong with the value at the pointer's schema. */
  function faultsOf(pointer: readonly string[], value: unknown): string | undefined {
    const words = pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
    const reference = `document#/${words.join('/')}`
    const validate = validators.get(reference) ?? ajv.compile({ $ref: reference })
    validators.set(reference, validate)
    return validate(value) ? undefined : ajv.errorsText(validate.errors, { dataVar: 'answer' })
  }

  /** Where the response stands, through its reference. */
  const placeOf = (
    pointer: readonly string[],
    response: Response,
  ): { readonly pointer: readonly string[]; readonly response: Response } => {
    const name = response.$ref?.slice('#/components/responses/'.length)
    const shared = name === undefined ? undefined : document.components.responses[name]
    return name === undefined || shared === undefined
      ? { pointer, response }
      : { pointer: ['components', 'responses', name], response: shared }
  }

  function bodyFault(
    at: { readonly pointer: readonly string[]; readonly response: Response },
    { header, text }: Given,
  ): string | undefined {
    const content = at.response.content ?? {}
    const type = header('content-type')?.split(';')[0]
    if (type === undefined)
      return Object.keys(content).length === 0 && (text ?? '') === '' ? undefined : 'has no body, or no type of it'
    if (content[type] === undefined) return `is ${type}, which is not declared`
    if (text === undefined || !type.includes('json')) return undefined
    const pointer = [...at.pointer, 'content', type, 'schema']
    const values = type === 'application/x-ndjson' ? text.split('\n').filter((line) => line !== '') : [text]
    return values.map((value) => faultsOf(pointer, JSON.parse(value))).find((faults) => faults !== undefined)
  }

  return {
    faultOf(method, path, given) {
      if (!UUID.test(given.header('x-request-id') ?? '')) return 'has no X-Request-Id'
      const [bare = ''] = path.split('?')
      const found = routes
        .filter(({ pattern }) => pattern.test(bare))
        .sort((one, other) => one.template.split('{').length - other.template.split('{').length)[0]
      const operation = found?.methods[method.toLowerCase()]
      if (found === undefined || operation === undefined) {
        return given.status === (found === undefined ? 404 : 405)
          ? bodyFault(placeOf([], { $ref: '#/components/responses/Refused' }), given)
          : `answered ${given.status}, and the document has no such operation`
      }
      const declared =
        String(given.status) in operation.responses
          ? String(given.status)
          : ANY_REQUEST.includes(given.status)
            ? 'default'
            : undefined
      if (declared === undefined) return `${operation.operationId} answered ${given.status}, which it does not declare`
      const fault = bodyFault(
        placeOf(
          ['paths', found.template, method.toLowerCase(), 'responses', declared],
          operation.responses[declared] ?? {},
        ),
        given,
      )
      return fault === undefined ? undefined : `${operation.operationId} answered ${given.status}: ${fault}`
    },
    examples: () =>
      [
        ...Object.entries(document.components.responses).map(([name, response]) => ({
          pointer: ['components', 'responses', name],
          response,
        })),
        ...routes.flatMap(({ template, methods }) =>
          Object.entries(methods).flatMap(([method, { responses }]) =>
            Object.entries(responses).map(([status, response]) => ({
              pointer: ['paths', template, method, 'responses', status],
              response,
            })),
          ),
        ),
      ].flatMap(({ pointer, response }) =>
        Object.entries(response.content ?? {})
          .filter(([, { example }]) => example !== undefined)
          .map(([type, { example }]) => ({
            place: pointer.join(' '),
            example,
            faults: faultsOf([...pointer, 'content', type, 'schema'], example),
          })),
      ),
  }
}

/** Objects that name their members have no others, unless they say so; texts that name their values have no others. */
function close(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (KNOWN_VALUES in value) {
    // a schema that the document makes; where null is a type, it is a value too
    const { [KNOWN_VALUES]: known, type } = value as {
      readonly [KNOWN_VALUES]: readonly string[]
      readonly type: unknown
    }
    return { ...value, enum: Array.isArray(type) && type.includes('null') ? [...known, null] : known }
  }
  const isOpen =
    'type' in value && value.type === 'object' && 'properties' in value && !('additionalProperties' in value)
  return isOpen ? { ...value, additionalProperties: false } : value
}

const published = new Map<Route['audience'], DocumentCheck>()

/** The check of the document that is published for the audience. */
export function documentCheckFor(audience: Route['audience']): DocumentCheck {
  const check = published.get(audience) ?? openDocumentCheck(documentFor(audience))
  published.set(audience, check)
  return check
}

/** What clients read of an answer, by its coding. */
const DECODERS: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  none: (bytes) => Buffer.from(bytes),
  gzip: gunzipSync,
  br: brotliDecompressSync,
}

/** The service, whose every answer is held against the published document; one that is not as it says is reported,
 *  which is an error unless said otherwise. */
export const documented =
  (audience: Route['audience'], service: HttpService, report: (fault: string) => void = raise): HttpService =>
  async (request) => {
    const response = await service(request)
    const { body, headers, status } = response
    const text =
      typeof body === 'string'
        ? body
        : body instanceof Uint8Array
          ? DECODERS[headers['content-encoding']?.toString() ?? 'none']?.(body).toString()
          : undefined
    const fault = documentCheckFor(audience).faultOf(request.method, request.target, {
      status,
      text,
      header: (name) => headers[name]?.toString(),
    })
    if (fault !== undefined) report(`${request.method} ${request.target}: ${fault}`)
    return response
  }

function raise(fault: string): never {
  throw new Error(fault)
}
