/** Which database errors are transient. */
import { Unavailable } from '../../domain/problem.ts'

/** SQLSTATE classes and codes: connection, resources, operator intervention, and transactions that were idle for too
 *  long or lost against others. */
const NOT_NOW = /^(08...|53...|57P0[123]|25P03|40001|40P01)$/
const SOCKET_ERRORS = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EHOSTUNREACH']
/** Prefixes of pg's messages, which have no code, when a connection ended or was not available. */
const CONNECTION_ERRORS = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Client has encountered a connection error',
  'Query read timeout',
]

/** Unavailable for a transient error; the error itself otherwise. */
export function databaseUnavailable(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const isNotNow =
    NOT_NOW.test(code) ||
    SOCKET_ERRORS.includes(code) ||
    CONNECTION_ERRORS.some((start) => error.message.startsWith(start))
  return isNotNow ? new Unavailable('the database', error) : error
}
