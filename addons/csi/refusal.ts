/** Refusals of the driver and of the platform as gRPC codes, by which callers decide whether to retry. */
import { OperationFailed, SvccloudError } from '../../client/index.ts'
import { Unavailable } from '../../domain/problem.ts'

export type Code =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'UNAUTHENTICATED'
  | 'RESOURCE_EXHAUSTED'
  | 'FAILED_PRECONDITION'
  /** Another call for the same object is still running. */
  | 'ABORTED'
  | 'OUT_OF_RANGE'
  | 'INTERNAL'
  | 'UNAVAILABLE'

export class Refused extends Error {
  readonly code: Code
  constructor(code: Code, message: string) {
    super(message)
    this.name = 'Refused'
    this.code = code
  }
}

const CODES: Readonly<Record<number, Code>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'FAILED_PRECONDITION',
  422: 'RESOURCE_EXHAUSTED',
  429: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
}

const codeOf = ({ status, problem: { reason } }: SvccloudError): Code => {
  if (reason === 'operation_in_progress') return 'ABORTED'
  return reason === 'no_capacity' ? 'RESOURCE_EXHAUSTED' : (CODES[status] ?? 'INTERNAL')
}

/** Code and text of any failure; undefined for an unexpected one. */
export function csiRefusal(error: unknown): { readonly code: Code; readonly message: string } | undefined {
  if (error instanceof Refused) return error
  if (error instanceof Unavailable) return { code: 'UNAVAILABLE', message: error.message }
  if (error instanceof SvccloudError) return { code: codeOf(error), message: error.message }
  return error instanceof OperationFailed ? { code: 'INTERNAL', message: error.message } : undefined
}

/** Throws for an empty text. */
export function required(text: string, field: string): string {
  if (text === '') throw new Refused('INVALID_ARGUMENT', `${field} is missing`)
  return text
}
