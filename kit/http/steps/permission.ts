/** The caller holds the route's permission. Checked before anything is looked up, so a refusal never tells whether an id exists. */
import { hasStaffRole } from '../../../domain/permissions.ts'
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../passage.ts'

export const checkPermission: StepMaker = ({ permission, selfParameter }) =>
  permission === null ? undefined : ({ caller, rawParams }) => {
    if (!isSignedIn(caller) || caller.permissions.includes(permission)) return
    const isOnThemselves = selfParameter !== null && rawParams[selfParameter] === caller.userId && caller.permissions.includes('self')
    if (!isOnThemselves) throw forbidden(`This needs the permission ${permission}.`)
  }

/** The operator holds the staff role that the route asks for. */
export const checkStaffRole: StepMaker = ({ staffRole }) =>
  staffRole === null ? undefined : ({ caller }) => {
    if (caller.kind !== 'operator' || !hasStaffRole(caller.roles, staffRole)) throw forbidden(`This needs the staff role ${staffRole}.`)
  }
