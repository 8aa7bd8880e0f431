/** The caller holds the route's permission. Checked before anything is looked up, so a refusal never tells whether an id exists. */
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../passage.ts'

export const checkPermission: StepMaker = ({ permission, selfParameter }) =>
  permission === null ? undefined : ({ caller, rawParams }) => {
    if (!isSignedIn(caller) || caller.permissions.includes(permission)) return
    const isOnThemselves = selfParameter !== null && rawParams[selfParameter] === caller.userId && caller.permissions.includes('self')
    if (!isOnThemselves) throw forbidden(`This needs the permission ${permission}.`)
  }
