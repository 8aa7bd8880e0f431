/** The caller's budget of requests, told in headers on every answer. */
import { rateLimited } from '../../../domain/problem.ts'
import { isSignedIn, type Passage, type StepMaker } from '../passage.ts'
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
  return (passage) => {
    const key = keyOf(passage)
    if (key === undefined) return
    const state = parts.takeBudget(budget, key)
    const headers = passage.headers
    headers['ratelimit-policy'] = policy
    headers['ratelimit'] = `"${budget.name}";r=${state.remaining};t=${state.fullAfterSeconds}`
    headers['ratelimit-limit'] = String(budget.perMinute)
    headers['ratelimit-remaining'] = String(state.remaining)
    headers['ratelimit-reset'] = String(state.fullAfterSeconds)
    if (state.retryAfterSeconds > 0) throw rateLimited(state.retryAfterSeconds)
  }
}

function keyOf({ caller }: Passage): string | undefined {
  if (!isSignedIn(caller)) return caller.kind === 'operator' ? caller.name : undefined
  return caller.token?.id ?? caller.session?.id ?? caller.userId
}
