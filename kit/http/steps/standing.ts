/** Routes that create billable resources check whether the account may do so now. */
import { isSignedIn, type StepMaker } from '../step.ts'

export const checkStanding: StepMaker = (route, parts) =>
  !route.requiresStanding
    ? undefined
    : async ({ caller }) => {
        if (isSignedIn(caller)) await parts.requireStanding(caller)
      }
