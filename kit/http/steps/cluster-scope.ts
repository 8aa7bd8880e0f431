/** A token of a cluster reaches the routes of its areas, and no others: routes without an area refuse it. */
import { forbidden } from '../../../domain/problem.ts'
import { isSignedIn, type StepMaker } from '../step.ts'

export const checkClusterScope: StepMaker =
  ({ clusterScopes }) =>
  ({ caller }) => {
    if (!isSignedIn(caller) || caller.clusterScopes === undefined) return
    if (!caller.clusterScopes.some((scope) => clusterScopes.includes(scope)))
      throw forbidden('A token of a cluster may not do this: it is for what its add-on does.')
  }
