/** The caller holds the route's permission. Checked before anything is looked up, so a refusal never tells whether an id exists. */
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../passage.ts'

export const checkPermission: StepMaker = ({ permission }) =>
  permission === null ? undefined : ({ caller }) => {
    if (isSignedIn(caller) && !caller.permissions.includes(permission)) throw forbidden(`This needs the permission ${permission}.`)
  }
