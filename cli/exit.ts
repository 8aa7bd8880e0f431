/** Results of a command: exit codes for scripts, and the failures that cause them. */
import { z } from 'zod'
import { retryAfterSeconds } from '../client/follow.ts'

export const EXIT = {
  ok: 0,
  refused: 1,
  notAllowed: 2,
  invalid: 3,
  usage: 4,
  operationFailed: 5,
  unreachable: 6,
  interrupted: 130,
} as const

export const EXIT_MEANINGS: readonly (readonly [number, string])[] = [
  [EXIT.ok, 'Done.'],
  [EXIT.refused, 'The service refused (402, 404, 409, 422, 429, 5xx), or another error occurred.'],
  [EXIT.notAllowed, 'Not signed in, or not allowed (401, 403).'],
  [EXIT.invalid, 'The request was invalid (400, 413, 415).'],
  [EXIT.usage, 'The command line is invalid, or a confirmation is missing.'],
  [EXIT.operationFailed, 'The operation failed or was cancelled.'],
  [EXIT.unreachable, 'The service could not be reached.'],
  [EXIT.interrupted, 'Interrupted. A started operation continues.'],
]

/** Shown to the user without a stack trace; the command exits with the code. */
export class Failure extends Error {
  readonly code: number
  /** When the request may be repeated, if the service says so. */
  retryAfterSeconds: number | undefined
  constructor(code: number, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.code = code
  }
}

export const usageFailure = (message: string): Failure => new Failure(EXIT.usage, message)

/** The error as a Failure. An answer of the service that this program does not understand is one; any other error is a
 *  bug here and is rethrown. */
export function programFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (error instanceof z.ZodError) {
    const [issue] = error.issues
    const where = issue === undefined ? '' : `: ${[...issue.path.map(String), issue.message].join(' ')}`
    return new Failure(EXIT.refused, `the service returned an unexpected answer${where}`, error)
  }
  throw error
}

/** A refusal of the service, with the content of its problem document. */
export function serviceFailure(status: number, document: Readonly<Record<string, unknown>>, headers: Headers): Failure {
  const { title, detail, reason, errors } = document
  const code =
    status === 401 || status === 403
      ? EXIT.notAllowed
      : status === 400 || status === 413 || status === 415
        ? EXIT.invalid
        : EXIT.refused
  const fields =
    Array.isArray(errors) && errors.length > 1
      ? errors.map(({ field, detail: fault }: { field: string; detail: string }) => `\n  ${field} ${fault}`).join('')
      : ''
  const requestId = headers.get('x-request-id')
  const facts = [
    ...(typeof reason === 'string' ? [`reason ${reason}`] : []),
    ...(requestId === null ? [] : [`request ${requestId}`]),
  ]
  const failure = new Failure(
    code,
    `${status} ${String(title ?? 'Refused')}: ` +
      `${String(detail ?? '')}${fields}${facts.length === 0 ? '' : `\n  ${facts.join(', ')}`}`,
  )
  failure.retryAfterSeconds = retryAfterSeconds(headers)
  return failure
}
