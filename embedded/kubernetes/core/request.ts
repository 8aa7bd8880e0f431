/** Parses a request's path and query. */
import { badRequest, fieldNotSupported, invalid } from './status.ts'

/** The same structure as the client's transport request, so that a call needs no network. */
export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
  /** Whether its credentials are still valid for the same user; checked during a watch. */
  readonly isAuthentic?: () => boolean
}

export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Whether the body is sent line by line as changes occur: a watch. */
  readonly isStream: boolean
  text(): Promise<string>
  lines(): AsyncIterable<string>
}

/** A path below /api/v1 or /apis/g/v. */
export interface ResourcePath {
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly resource: string
  readonly name: string
  readonly subresource: string
}

/** Undefined for paths that are not resources. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const parts = path
    .split('/')
    .filter((part) => part !== '')
    .map(decode)
  const [root, ...below] = parts
  const groupParts = root === 'apis' ? 2 : root === 'api' ? 1 : undefined
  if (groupParts === undefined || below.length <= groupParts) return undefined
  const [group = '', version = ''] = root === 'apis' ? below : ['', below[0]]
  const rest = below.slice(groupParts)
  // /namespaces/{name}, its status and its finalize refer to the namespace itself; longer paths refer to objects in it.
  const isInside =
    rest[0] === 'namespaces' &&
    rest.length >= 3 &&
    !(rest.length === 3 && (rest[2] === 'status' || rest[2] === 'finalize'))
  const namespace = isInside ? (rest[1] ?? '') : ''
  const [resource = '', name = '', subresource = '', ...more] = isInside ? rest.slice(2) : rest
  if (more.length > 0) return undefined
  return { group, version, namespace, resource, name, subresource }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw badRequest('the path is not properly encoded')
  }
}

export type Query = URLSearchParams

/** The query of a path; names and values are decoded. */
export function queryOf(path: string): Query {
  const cut = path.indexOf('?')
  return new URLSearchParams(cut < 0 ? '' : path.slice(cut + 1))
}

export const isTrue = (query: Query, name: string): boolean => ['true', '1'].includes(query.get(name) ?? '')

/** A whole number that is not negative; undefined when absent. */
export function countIn(query: Query, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  return Number(text)
}

/** `kind` is the type of the options, for the refusal. */
export function isDryRun(query: Query, kind: string): boolean {
  const requested = query.getAll('dryRun').filter((value) => value !== '')
  if (requested.length === 0) return false
  if (requested.every((value) => value === 'All')) return true
  throw invalid({ group: 'meta.k8s.io', kind }, '', [fieldNotSupported('dryRun', requested, ['All'])])
}

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

/** `kind` is the type of the options, for the refusal. */
export function fieldValidationOf(query: Query, kind: string): FieldValidation {
  const text = query.get('fieldValidation') ?? ''
  if (text === '') return 'Warn'
  if (text === 'Ignore' || text === 'Warn' || text === 'Strict') return text
  throw invalid({ group: 'meta.k8s.io', kind }, '', [
    fieldNotSupported('fieldValidation', text, ['', 'Ignore', 'Strict', 'Warn']),
  ])
}
