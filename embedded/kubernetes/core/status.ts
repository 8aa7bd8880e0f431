/** Refusals as Kubernetes Status objects: one named function for each type of response, with the messages that clients
 *  parse. */
import { defined } from '../../../domain/defined.ts'
import type { JsonObject } from './json.ts'

export interface Cause extends JsonObject {
  readonly reason?: string
  readonly message: string
  readonly field?: string
}

export interface StatusDetails extends JsonObject {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly Cause[]
  readonly retryAfterSeconds?: number
}

/** The group and the plural name, for messages and details. */
export interface ResourceName {
  readonly group: string
  readonly resource: string
}

/** A refusal on its way to the client. */
export class Refusal extends Error {
  readonly code: number
  readonly reason: string
  readonly details: StatusDetails | undefined

  constructor(code: number, reason: string, message: string, details?: StatusDetails) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.reason = reason
    this.details = details
  }
}

/** A path outside of the API: answered as plain text. */
export class NoSuchPath extends Error {}

export function toStatus(refusal: Refusal): JsonObject {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: refusal.message,
    ...(refusal.reason === '' ? {} : { reason: refusal.reason }),
    ...defined({ details: refusal.details }),
    code: refusal.code,
  }
}

/** `servers.svccloud.dev`, or `pods` for the core group. */
export const qualified = ({ group, resource }: ResourceName): string =>
  group === '' ? resource : `${resource}.${group}`

const detailsOf = ({ group, resource }: ResourceName, name?: string): StatusDetails => ({
  ...defined({ name }),
  ...(group === '' ? {} : { group }),
  kind: resource,
})

export const badRequest = (message: string): Refusal => new Refusal(400, 'BadRequest', message)
export const unauthorized = (): Refusal => new Refusal(401, 'Unauthorized', 'Unauthorized')
export const notFound = (resource: ResourceName, name: string): Refusal =>
  new Refusal(404, 'NotFound', `${qualified(resource)} "${name}" not found`, detailsOf(resource, name))
/** The resource exists, but not this subresource. */
export const noSuchResource = (): Refusal =>
  new Refusal(404, 'NotFound', 'the server could not find the requested resource', {})
/** The subresource exists, but does not support this method. */
export const notSupported = (verb: string, resource: ResourceName): Refusal =>
  new Refusal(
    405,
    'MethodNotAllowed',
    `${verb} is not supported on resources of kind "${qualified(resource)}"`,
    detailsOf(resource),
  )
export const methodNotAllowed = (): Refusal =>
  new Refusal(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
export const notAcceptable = (accepted: string): Refusal =>
  new Refusal(406, 'NotAcceptable', `only the following media types are accepted: ${accepted}`)
export const unsupportedMediaType = (accepted: string): Refusal =>
  new Refusal(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted}`,
  )
export const MEDIA_TYPES = 'application/json, application/yaml, application/vnd.kubernetes.protobuf'
/** The refusal of unknown patch types. */
export const unknownPatchType = (): Refusal =>
  new Refusal(415, 'UnsupportedMediaType', '415: Unsupported Media Type', {})
export const alreadyExists = (resource: ResourceName, name: string): Refusal =>
  new Refusal(409, 'AlreadyExists', `${qualified(resource)} "${name}" already exists`, detailsOf(resource, name))

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again'
export const conflict = (resource: ResourceName, name: string, why: string = MODIFIED): Refusal =>
  new Refusal(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`,
    detailsOf(resource, name),
  )

export const forbidden = (resource: ResourceName, name: string, why: string, causes?: readonly Cause[]): Refusal =>
  new Refusal(
    403,
    'Forbidden',
    name === ''
      ? `${qualified(resource)} is forbidden: ${why}`
      : `${qualified(resource)} "${name}" is forbidden: ${why}`,
    { ...detailsOf(resource, name === '' ? undefined : name), ...defined({ causes }) },
  )

/** Failures that the real server reports as internal errors. */
export const unexpected = (message: string): Refusal => new Refusal(500, '', message)
export const expired = (message: string): Refusal => new Refusal(410, 'Expired', message)

/** Limit of the faults in one refusal. */
const CAUSES_MAXIMUM = 100

/** All faults of one object: `Server.svccloud.dev "x" is invalid: [...]`. */
export function invalid(
  kind: { readonly group: string; readonly kind: string },
  name: string,
  faults: readonly Cause[],
): Refusal {
  const causes = faults.slice(0, CAUSES_MAXIMUM)
  const lines = [
    ...new Set(
      causes.map(({ field, message }) => (field === undefined || field === '' ? message : `${field}: ${message}`)),
    ),
  ]
  const title = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`
  return new Refusal(
    422,
    'Invalid',
    `${title} "${name}" is invalid: ${lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`}`,
    {
      ...(name === '' ? {} : { name }),
      ...(kind.group === '' ? {} : { group: kind.group }),
      ...(kind.kind === '' ? {} : { kind: kind.kind }),
      causes,
    },
  )
}

/** The client requested a revision that this server has not reached yet; it should retry. */
export const revisionTooLarge = (requested: number, current: number): Refusal =>
  new Refusal(504, 'Timeout', `Too large resource version: ${requested}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })

export const internal = (message: string): Refusal =>
  new Refusal(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] })
export const unavailable = (message: string): Refusal =>
  new Refusal(503, 'ServiceUnavailable', message, { retryAfterSeconds: 1 })
export const bodyTooLarge = (limitBytes: number): Refusal =>
  new Refusal(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`)

/** A fault of one field, with the reason and message of Kubernetes. */
const fault = (kind: string, field: string, message: string): Cause => ({ reason: `FieldValue${kind}`, message, field })
const SHOWN_MOST_LETTERS = 1_000
/** A value for an error message; long values are shortened. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'null' : JSON.stringify(value)
  return text.length > SHOWN_MOST_LETTERS ? `${text.slice(0, SHOWN_MOST_LETTERS)} ...` : text
}

export const fieldRequired = (field: string, detail = ''): Cause =>
  fault('Required', field, detail === '' ? 'Required value' : `Required value: ${detail}`)
export const fieldInvalid = (field: string, value: unknown, detail: string): Cause =>
  fault('Invalid', field, `Invalid value: ${shown(value)}: ${detail}`)
export const fieldTypeInvalid = (field: string, value: unknown, detail: string): Cause =>
  fault('TypeInvalid', field, `Invalid value: ${shown(value)}: ${detail}`)
export const fieldForbidden = (field: string, detail: string): Cause =>
  fault('Forbidden', field, `Forbidden: ${detail}`)
export const fieldDuplicate = (field: string, value: unknown): Cause =>
  fault('Duplicate', field, `Duplicate value: ${shown(value)}`)
export const fieldNotSupported = (field: string, value: unknown, supported: readonly unknown[]): Cause =>
  fault(
    'NotSupported',
    field,
    `Unsupported value: ${shown(value)}: supported values: ${supported.map(shown).join(', ')}`,
  )
export const fieldTooLong = (field: string, limitBytes: number): Cause =>
  fault('TooLong', field, `Too long: may not be more than ${limitBytes} bytes`)
export const fieldTooMany = (field: string, count: number, limit: number): Cause =>
  fault('TooMany', field, `Too many: ${count}: must have at most ${limit} items`)
