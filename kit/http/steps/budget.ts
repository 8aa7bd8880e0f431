/** The caller's budget of requests, stated in headers on every answer. */
import { rateLimited } from '../../../domain/problem.ts'
import { isSignedIn, type StepContext, type StepMaker } from '../step.ts'
import type { Budget } from '../rates.ts'

export const BUDGETS = {
  requests: { name: 'requests', perMinute: 600, burst: 120 },
  operation_reads: { name: 'operation-reads', perMinute: 1200, burst: 240 },
  mcp: { name: 'mcp', perMinute: 120, burst: 30 },
} as const satisfies Record<string, Budget>

export const spendBudget: StepMaker = (route, parts) => {
  if (route.budget === 'console' || route.budget === 'none') return undefined
  const budget = BUDGETS[route.budget]
  const policy = `"${budget.name}";q=${budget.perMinute};w=60`
  return (context) => {
    const key = keyOf(context)
    if (key === undefined) return
    const state = parts.takeBudget(budget, key)
    const headers = context.headers
    headers['ratelimit-policy'] = policy
    headers['ratelimit'] = `"${budget.name}";r=${state.remaining};t=${state.fullAfterSeconds}`
    headers['ratelimit-limit'] = String(budget.perMinute)
    headers['ratelimit-remaining'] = String(state.remaining)
    headers['ratelimit-reset'] = String(state.fullAfterSeconds)
    if (state.retryAfterSeconds > 0) throw rateLimited(state.retryAfterSeconds)
  }
}

function keyOf({ caller }: StepContext): string | undefined {
  if (!isSignedIn(caller)) return caller.kind === 'operator' ? caller.name : undefined
  return caller.token?.id ?? caller.session?.id ?? caller.userId
}
