/** Logs for operators: JSON lines with constant messages and fields that the caller chose. Never bodies, tokens or
 *  cookies. */
import { destination, pino } from 'pino'
import { traceFields } from './tracing.ts'

export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  with(fields: LogFields): Logger
}

/** `error` is written with its message, stack and cause chain. */
export type LogFields = Readonly<Record<string, unknown>> & { readonly error?: unknown }

interface Sink {
  child(fields: object): Sink
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

const render = (fields: LogFields | undefined): object =>
  fields === undefined ? {} : 'error' in fields ? { ...fields, error: describeError(fields.error) } : fields

function over(sink: Sink): Logger {
  return {
    debug: (message, fields) => sink.debug(render(fields), message),
    info: (message, fields) => sink.info(render(fields), message),
    warn: (message, fields) => sink.warn(render(fields), message),
    error: (message, fields) => sink.error(render(fields), message),
    with: (fields) => over(sink.child(render(fields))),
  }
}

/** A logger on standard error (file descriptor 2), so that standard output stays for people. Lines that belong to a
 *  trace carry its `trace_id`. */
export function openLog(component: string, level: string): Logger {
  return over(
    pino(
      { level, base: { component }, timestamp: pino.stdTimeFunctions.isoTime, mixin: () => ({ ...traceFields() }) },
      destination({ fd: 2, sync: true }),
    ),
  )
}

/** For tests and tools without logs. */
export const silentLog: Logger = { debug() {}, info() {}, warn() {}, error() {}, with: () => silentLog }

/** An error with its causes as plain data; anything else as text. */
export function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error)
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  }
}
