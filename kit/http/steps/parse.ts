/** Parses path, query and body with the route's schemas. Everything unknown, repeated or malformed is refused by
 *  name. */
import { z } from 'zod'
import { badRequest, type FieldError, notFound, Problem } from '../../../domain/problem.ts'
import { fieldErrorsOf } from '../../sys/field-errors.ts'
import { DEPTH_MAXIMUM, parseJson } from '../json.ts'
import { loweredId } from '../match.ts'
import type { StepContext, StepMaker } from '../step.ts'
import type { Route } from '../route.ts'

export const parseInput: StepMaker = (route) => {
  const parseQuery = queryParser(route)
  const hasParams = route.path.includes('{')
  const takesBody = route.method !== 'GET'
  return (context) => {
    if (hasParams) {
      const params = route.params.safeParse(context.rawParams)
      // An id that no resource can have is treated like an unknown id.
      if (!params.success) throw notFound('resource')
      context.params = params.data
    } else context.params = {}
    context.query = parseQuery(context.rawQuery)
    return takesBody ? parseBody(context) : undefined
  }
}

/** The most errors that one refusal names. */
const FIELD_ERRORS_MAXIMUM = 50

function queryParser(route: Route): (rawQuery: string) => unknown {
  const repeatable = repeatableFields(route.query)
  let empty: unknown
  return (rawQuery) => {
    if (rawQuery === '') return (empty ??= accept(route.query, {}))
    const raw: Record<string, string | string[]> = {}
    const errors: FieldError[] = []
    for (const [name, value] of new URLSearchParams(rawQuery)) {
      // Nothing is ever carried out for a request that asked for a dry run.
      if (name === 'dry_run' && !route.takesDryRun) {
        const reason = route.noDryRun === null ? '' : `: ${route.noDryRun}`
        errors.push({ field: name, detail: `is not offered by this operation${reason}` })
        continue
      }
      const earlier = Object.hasOwn(raw, name) ? raw[name] : undefined
      if (!isPlainText(value) || !isPlainText(name)) errors.push({ field: name, detail: 'must be well-formed text' })
      else if (repeatable.has(name)) define(raw, name, [...(Array.isArray(earlier) ? earlier : []), value])
      else if (earlier !== undefined) errors.push({ field: name, detail: 'must be given once' })
      else define(raw, name, value)
    }
    if (errors.length > 0) throw invalid(errors)
    return accept(route.query, withLoweredIds(raw))
  }
}

const ID_FIELD = /(^|_)ids?$/

/** The value with ids in their stored form; other texts are not changed. */
function withLoweredIds(value: unknown, isId = false): unknown {
  if (typeof value === 'string') return isId ? loweredId(value) : value
  if (Array.isArray(value)) return value.map((each) => withLoweredIds(each, isId))
  if (typeof value !== 'object' || value === null) return value
  const copy = {}
  for (const [name, inner] of Object.entries(value)) define(copy, name, withLoweredIds(inner, ID_FIELD.test(name)))
  return copy
}

/** Sets an own property, for any name (`__proto__` too). */
const define = (target: object, name: string, value: unknown) =>
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true })

/** The names of query parameters that may be given more than once: those whose schema takes an array. */
function repeatableFields(schema: z.ZodType): ReadonlySet<string> {
  if (!(schema instanceof z.ZodObject)) return new Set()
  return new Set(Object.keys(schema.shape).filter((name) => takesArray(schema.shape[name])))
}

function takesArray(schema: unknown): boolean {
  if (schema instanceof z.ZodArray) return true
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return takesArray(schema.unwrap())
  return schema instanceof z.ZodPipe && takesArray(schema.in)
}

async function parseBody(context: StepContext): Promise<void> {
  const { route } = context
  const bytes = await readBody(context)
  if (route.readsBodyAs === 'bytes') {
    context.body = bytes
    return
  }
  if (bytes.length > 0 && !isJson(context.request.header('content-type')))
    throw new Problem(415, 'Send the body as application/json.')
  const value = bytes.length === 0 ? {} : decode(bytes)
  if (route.body !== null) context.body = accept(route.body, withLoweredIds(value))
  else if (typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0)
    context.body = null
  else throw badRequest('This operation takes no body.')
}

/** Nothing is decompressed here: a compressed body would be read as something else. */
function requireNoEncoding(encoding: string | undefined): void {
  if (encoding !== undefined && !/^\s*(identity)?\s*$/i.test(encoding))
    throw new Problem(415, 'Send the body as it is, without Content-Encoding.')
}

async function readBody({ incoming, request, route }: StepContext): Promise<Uint8Array> {
  const tooLarge = () => new Problem(413, `The body is larger than ${route.bodyBytesMaximum} bytes.`)
  const { body } = incoming
  if (Number(request.header('content-length') ?? 0) > route.bodyBytesMaximum) throw tooLarge()
  if (body === undefined) return new Uint8Array()
  requireNoEncoding(request.header('content-encoding'))
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    if (bytes.length > route.bodyBytesMaximum) throw tooLarge()
    return bytes
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    if (length > route.bodyBytesMaximum) throw tooLarge()
    chunks.push(chunk)
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)
}

const isJson = (contentType: string | undefined): boolean => /^application\/json\s*(;|$)/i.test(contentType ?? '')

function decode(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badRequest('The body is not valid UTF-8.')
  }
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    throw badRequest(
      error instanceof RangeError
        ? `The body is nested deeper than ${DEPTH_MAXIMUM} levels.`
        : 'The body is not valid JSON.',
    )
  }
  if (/\\u(0000|d[89a-f])/i.test(text)) refuseBrokenText(value, '')
  return value
}

/** Text that the database and the audit chain can store: no NUL, no half of a surrogate pair. */
const isPlainText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

function refuseBrokenText(value: unknown, path: string): void {
  if (typeof value === 'string' && !isPlainText(value))
    throw invalid([{ field: path, detail: 'must be well-formed text' }])
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    if (!isPlainText(name)) throw invalid([{ field: path, detail: 'has a field whose name is not well-formed text' }])
    refuseBrokenText(member, path === '' ? name : `${path}.${name}`)
  }
}

function accept(schema: z.ZodType, value: unknown): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw invalid(fieldErrorsOf(parsed.error, value))
}

/** One refusal for all fields at once; the sentence for people names the first. */
function invalid(errors: readonly FieldError[]): Problem {
  const shown = errors.slice(0, FIELD_ERRORS_MAXIMUM)
  const [first] = shown
  const detail =
    first === undefined
      ? 'The request is invalid.'
      : first.field === ''
        ? `The request ${first.detail}.`
        : `${first.field} ${first.detail}.`
  return badRequest(detail, shown)
}
