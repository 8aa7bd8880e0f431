/** Checks that the caller has the route's permission. This happens before any lookup, so a refusal never reveals
 *  whether an id exists. */
import { hasStaffRole } from '../../../domain/permissions.ts'
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../step.ts'

export const checkPermission: StepMaker = ({ permission, selfParameter }) =>
  permission === null
    ? undefined
    : ({ caller, rawParams }) => {
        if (!isSignedIn(caller) || caller.permissions.includes(permission)) return
        const isOnThemselves =
          selfParameter !== null && rawParams[selfParameter] === caller.userId && caller.permissions.includes('self')
        if (!isOnThemselves) throw forbidden(`This needs the permission ${permission}.`)
      }

/** Checks the operator: a member of the staff by the role that the route requires, a token by the management cluster's
 *  answer. */
export const checkOperator: StepMaker = ({ id, staffRole, access }, { requireAccess }) => {
  if (staffRole === null && access === null) return undefined
  if (access !== null && requireAccess === undefined) throw new Error(`nothing decides who may call ${id}`)
  return ({ caller }) => {
    if (caller.kind === 'operator' && caller.staff === undefined && access !== null)
      return access.scope === 'cluster' ? requireAccess?.(caller, access) : undefined
    if (staffRole !== null && (caller.kind !== 'operator' || !hasStaffRole(caller.roles, staffRole)))
      throw forbidden(staffRole === 'any' ? 'This needs a staff role.' : `This needs the staff role ${staffRole}.`)
    return undefined
  }
}
