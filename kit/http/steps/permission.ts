/** The caller holds the route's permission. Checked before anything is looked up, so a refusal never tells whether an
 *  id exists. */
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

/** The operator may: a member of the staff by the role that the route asks for, a token by what the management cluster
 *  says of it. */
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
