/** Routes that need a verified address refuse a user whose own is not. */
import { emailUnverified } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../step.ts'

export const checkVerifiedEmail: StepMaker = (route) =>
  !route.requiresVerifiedEmail
    ? undefined
    : ({ caller }) => {
        if (isSignedIn(caller) && !caller.isEmailVerified) throw emailUnverified()
      }
