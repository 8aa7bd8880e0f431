/** Refusals with the field names of the interface that a request came through: rules name the fields of the spec. */
import { Problem } from '../../domain/problem.ts'
import { snakeCase } from '../../resources/kit/view.ts'

/** The name that an interface has for a field of the spec. */
export type Rename = (field: string) => string

/** Does the work. Throws what it throws, with the fields of Problems renamed. */
export async function inWords<T>(rename: Rename, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Problem ? renamed(error, rename) : error
  }
}

/** `serverId` is `server_id` in REST, and `spec.serverId` for kubectl. */
export const WORDS = { rest: snakeCase, kubectl: (field) => `spec.${field}` } satisfies Record<string, Rename>

function renamed(problem: Problem, rename: Rename): Problem {
  const { errors } = problem.members
  if (errors === undefined) return problem
  const first = errors[0]?.field ?? ''
  const detail = problem.message.startsWith(`${first}: `)
    ? `${rename(first)}${problem.message.slice(first.length)}`
    : problem.message
  return new Problem(
    problem.status,
    detail,
    { ...problem.members, errors: errors.map((each) => ({ ...each, field: rename(each.field) })) },
    problem.cause,
  )
}
