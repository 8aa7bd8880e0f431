/** The one way in which a request fails: the service refuses it, or did not answer. */
import { retryAfterSeconds } from '../../client/follow.ts'
import type { Problem } from '../../client/schema.ts'
import type { OperationId } from './operations.ts'

export class Refusal extends Error {
  /** HTTP status; 0 when the service did not answer. */
  readonly status: number
  readonly problem: Partial<Problem>
  readonly operation: OperationId
  readonly requestId: string | null
  /** Seconds until a repetition makes sense, if the service says so. */
  readonly retryAfterSeconds: number | undefined

  constructor(operation: OperationId, response: Response | undefined, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? '')
    this.name = 'Refusal'
    this.status = response?.status ?? 0
    this.problem = problem
    this.operation = operation
    this.requestId = response?.headers.get('x-request-id') ?? null
    this.retryAfterSeconds = response === undefined ? undefined : retryAfterSeconds(response.headers)
  }

  get reason(): string | undefined {
    return this.problem.reason
  }

  /** What is wrong with which field, by name. */
  get fields(): Readonly<Record<string, string>> {
    return Object.fromEntries((this.problem.errors ?? []).map(({ field, detail }) => [field, detail]))
  }
}

/** Whatever was thrown, as a refusal. */
export const asRefusal = (operation: OperationId, error: unknown): Refusal =>
  error instanceof Refusal ? error : new Refusal(operation, undefined, {})
