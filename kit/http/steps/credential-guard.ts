/** Reads that reveal credentials or a live view are closed to read-only tokens and read-only support sessions, for
 *  every id. */
import { forbidden } from '../../../domain/problem.ts'
import type { Customer } from '../call.ts'
import { isSignedIn, type StepMaker } from '../step.ts'

export const guardCredentials: StepMaker = (route) =>
  !route.isCredentialRead
    ? undefined
    : ({ caller }) => {
        if (!isSignedIn(caller)) return
        if (isReadOnlyToken(caller))
          throw forbidden('A read-only API token may not read credentials.', 'read_only_token_cannot_read_credentials')
        if (caller.support?.mode === 'read_only')
          throw forbidden('A read-only support session may not read credentials.')
      }

const READING = ['read', 'billing.read']

/** Whether the token is read-only, as a word or as a list of permissions. */
export function isReadOnlyToken({ token }: Customer): boolean {
  if (token === undefined || token.scope === 'read_write') return false
  return token.scope === 'read' || token.scope.every((permission) => READING.includes(permission))
}
