/** Whether the route accepts this kind of credentials at all: session-only routes, routes closed to support
 *  sessions. */
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../step.ts'

export const checkCredentialKind: StepMaker = (route) => {
  const takesToken = route.credentials.includes('token')
  if (takesToken && !route.isRefusedToSupport) return undefined
  return ({ caller }) => {
    if (!isSignedIn(caller)) return
    if (route.isRefusedToSupport && caller.support !== undefined) throw forbidden('A support session may not do this.')
    if (caller.kind === 'token' && !takesToken)
      throw forbidden('This needs a portal session; API tokens are refused whatever their scope.')
  }
}
