/** Authenticates the caller. Public-only routes never read credentials, and routes for tokens never read cookies. */
import { unauthenticated } from '../../../domain/problem.ts'
import type { StepMaker } from '../step.ts'

export const authenticate: StepMaker = (route, parts) => {
  const isPublic = route.credentials.includes('public')
  const takesOnlyTokens = route.credentials.every((credential) => credential === 'token')
  if (isPublic && route.credentials.length === 1) return undefined
  return async (context) => {
    const caller = await parts.authenticate(context.request)
    if (caller !== undefined && !(caller.kind === 'session' && takesOnlyTokens)) context.caller = caller
    else if (!isPublic) throw unauthenticated()
  }
}
