/** Limits that count for each user or account, or for the email address that the body names. */
import { rateLimited } from '../../../domain/problem.ts'
import type { RateRule } from '../route.ts'
import { isSignedIn, type StepContext, type StepMaker } from '../step.ts'

export const limitCaller: StepMaker = (route, parts) => {
  const rules = route.rates.filter((rule) => rule.by !== 'address')
  if (rules.length === 0) return undefined
  return async (context) => {
    for (const rule of rules) {
      const key = keyOf(rule, context)
      const waitSeconds = key === undefined ? 0 : await parts.countRequest(rule, key)
      if (waitSeconds > 0) throw rateLimited(waitSeconds)
    }
  }
}

function keyOf(rule: RateRule, { caller, body }: StepContext): string | undefined {
  if (rule.by === 'email') return emailOf(body)
  if (!isSignedIn(caller)) return undefined
  return rule.by === 'user' ? caller.userId : caller.accountId
}

const emailOf = (body: unknown): string | undefined =>
  typeof body === 'object' && body !== null && 'email' in body && typeof body.email === 'string'
    ? body.email
    : undefined
